"""Open a ledger to resume from, and refuse one of another model or other settings."""

import contextlib
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.evaluation.evaluator import RunFailure
from vhmc.evaluation.ledger import LedgerError, LedgerFile, Round
from vhmc.evaluation.replay import ASIDE, Replay
from vhmc.evaluation.space import in_words
from vhmc.evaluation.target import Evaluations, Target
from vhmc.evaluation.user_code import NO_DENSITY

CLOSE = 1e-6
"""Relative difference at which two answers of a model are still the same."""
MAX_PROBES = 3
"""Points at which a model that fails now and then is evaluated again."""


@contextlib.contextmanager
def opened(
    path: str | Path | None, target: Target, budget: int, settings: dict[str, Any]
) -> Iterator[tuple[Replay, list[int], Callable[[], None]]]:
    """The replay, all budgets the run was given, and a function to call at its end.

    settings: of the run, beside the budget.
    """
    if path is None:
        yield Replay(None), [budget], lambda: None
        return
    file = LedgerFile(path)
    try:
        budgets = _begun(file, target, budget, settings)
        if file.facts().get("failed"):
            _set_outage_aside(file)
        yield Replay(file), budgets, lambda: file.note(finished=budgets[-1])
    except (RunFailure, ValueError):
        with contextlib.suppress(LedgerError):  # it may be why the run ends
            file.note(failed=True)
        raise
    finally:
        file.close()


def shapes_of(target: Target) -> dict[str, list[int]]:
    """Shapes of the parameters, as a ledger has them."""
    return {name: list(shape) for name, shape in target.parameters.shapes.items()}


def admit(
    path: Path,
    facts: dict[str, Any],
    model: dict[str, Any],
    budget: int,
    settings: dict[str, Any],
) -> list[int]:
    """Budgets of the run on file with this one, or an error if it is another run.

    facts: of the ledger.
    model: dimension, shapes and price.
    """
    if any(facts[name] != value for name, value in model.items()):
        raise LedgerError(
            f"{path} was made for another model: one with parameters "
            f"{in_words(facts['shapes'])}, this one has {in_words(model['shapes'])}"
        )
    for name, value in settings.items():
        # A ledger of an earlier version lacks what came later.
        begun = facts["settings"].get(name, value)
        if begun != value:
            raise LedgerError(
                f"{path} was begun with {name}={begun}, this "
                f"call has {value}: give the same, or another file"
            )
    budgets = list(facts["budgets"])
    if budget < budgets[-1]:
        raise LedgerError(
            f"{path} was begun with a budget of {budgets[-1]}: give at least that"
        )
    return [*budgets, budget] if budget > budgets[-1] else budgets


def _begun(
    file: LedgerFile, target: Target, budget: int, settings: dict[str, Any]
) -> list[int]:
    """Budgets of the run; a new file gets all that identifies it."""
    facts = file.facts()
    model: dict[str, Any] = {
        "dim": target.dim,
        "shapes": shapes_of(target),
        "price": target.price,
    }
    fingerprint = target.fingerprint()
    if not facts:
        file.note(
            **model,
            settings=settings,
            budgets=[budget],
            model=fingerprint,
            vhmc=metadata.version("vhmc"),
            made=time.time(),
        )
        return [budget]
    budgets = admit(file.path, facts, model, budget, settings)
    if not fingerprint or fingerprint != facts["model"]:
        _probe(file, target.evaluate, target.price)
    if budgets != facts["budgets"]:
        file.note(budgets=budgets)
    return budgets


def _set_outage_aside(file: LedgerFile) -> None:
    """Mark the rounds in which the model failed: they are evaluated again.

    From the end back to the last in which it mostly answered, and that one as well if
    it failed within it.
    """
    number = 0
    for entry in reversed([e for e in file.rounds() if e.kind not in ASIDE]):
        fraction = np.mean(_is_failed(entry))
        if fraction > 0.5 or (number and fraction):
            number += 1
        if fraction <= 0.5:
            break
    file.set_aside(number)
    file.note(failed=False)


def _is_failed(entry: Round) -> np.ndarray:
    """Where the model had no answer; minus infinity is one."""
    if entry.kind == "hessian":
        return ~np.isfinite(entry.grad).all(axis=1)
    return (entry.reason != "") & (entry.reason != NO_DENSITY)


def _probe(
    file: LedgerFile, evaluate: Callable[[np.ndarray], Evaluations], price: int
) -> None:
    """Evaluate a model without a fingerprint at a point on file, outside the budget."""
    rounds = [entry for entry in file.rounds() if entry.kind == "points"]
    if not rounds:
        return
    theta, energy, grad = (
        np.concatenate([getattr(entry, name) for entry in rounds])
        for name in ("theta", "energy", "grad")
    )
    for place in np.flatnonzero(np.isfinite(energy))[:MAX_PROBES]:
        began, clock = time.time(), time.perf_counter()
        answer = evaluate(theta[place : place + 1])
        seconds = time.perf_counter() - clock
        rows = theta[place : place + 1], *answer[:3]
        file.append(Round("probe", "probe", *rows, price, began, seconds))
        if answer.reason[0]:
            continue
        # Gradients may be differences, which another machine rounds a little otherwise.
        slack = CLOSE + 1e-4 * np.abs(grad[place]).max()
        is_same = np.isclose(answer.energy[0], energy[place], rtol=CLOSE, atol=CLOSE)
        if is_same and np.abs(answer.grad[0] - grad[place]).max() <= slack:
            return
        raise LedgerError(
            f"{file.path} was made for another model: at its first point that had log "
            f"density {-energy[place]:.10g}, this one has {-answer.energy[0]:.10g}"
        )
