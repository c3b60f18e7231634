"""The ledger of a run: made, or found and known again, before anything is spent."""

import contextlib
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.evaluation.evaluator import Account, RunFailure
from vhmc.evaluation.guard import NO_DENSITY
from vhmc.evaluation.ledger import LedgerError, LedgerFile, Round
from vhmc.evaluation.replay import ASIDE, Replay
from vhmc.evaluation.space import in_words
from vhmc.evaluation.target import Target
from vhmc.sampler.run import Settings, chart_of
from vhmc.surrogate.residual import Charted
from vhmc.surrogate.trainer import Learner, default_num_features

CLOSE = 1e-6
"""Relative difference at which two answers of a model are still the same."""
FEWEST_POINTS = 20
"""Points on file below which there is no surrogate to fit."""
PROBES = 3
"""Points at which a model that fails now and then is asked again."""


@contextlib.contextmanager
def opened(
    path: str | Path | None, target: Target, budget: int, settings: Settings
) -> Iterator[tuple[Replay, list[int], Callable[[], None]]]:
    """What is on file, the budgets of the run, and how to say that it is over."""
    if path is None:
        yield Replay(None), [budget], lambda: None
        return
    file = LedgerFile(path)
    try:
        budgets = _admitted(file, target, budget, settings)
        if file.facts().get("failed"):
            _forget_outage(file)
        yield Replay(file), budgets, lambda: file.note(finished=budgets[-1])
    except (RunFailure, ValueError):
        with contextlib.suppress(LedgerError):  # it may be why the run ends
            file.note(failed=True)
        raise
    finally:
        file.close()


def _admitted(
    file: LedgerFile, target: Target, budget: int, settings: Settings
) -> list[int]:
    """The budgets of the run, if the file is of this model and of these settings."""
    facts = file.facts()
    shapes = {name: list(shape) for name, shape in target.parameters.shapes.items()}
    known: dict[str, Any] = {"dim": target.dim, "shapes": shapes, "price": target.price}
    chosen = settings._asdict()
    if not facts:
        file.note(
            **known,
            settings=chosen,
            budgets=[budget],
            model=target.fingerprint(),
            vhmc=metadata.version("vhmc"),
            made=time.time(),
        )
        return [budget]
    if any(facts[name] != value for name, value in known.items()):
        raise LedgerError(
            f"{file.path} was made for another model: one with parameters "
            f"{in_words(facts['shapes'])}, this one has {in_words(shapes)}"
        )
    for name, value in chosen.items():
        if facts["settings"][name] != value:
            raise LedgerError(
                f"{file.path} was begun with {name}={facts['settings'][name]}, this "
                f"call has {value}: give the same, or another file"
            )
    budgets = facts["budgets"]
    if budget < budgets[-1]:
        raise LedgerError(
            f"{file.path} was begun with a budget of {budgets[-1]}: give at least that"
        )
    mark = target.fingerprint()
    if not mark or mark != facts["model"]:
        _know_again(file, target)
    if budget > budgets[-1]:
        budgets = [*budgets, budget]
        file.note(budgets=budgets)
    return budgets


def _forget_outage(file: LedgerFile) -> None:
    """Set the rounds aside in which the model failed: it may be well again.

    From the end back to the last in which it mostly answered, and that one as well if
    it failed within it.
    """
    number = 0
    for entry in reversed([e for e in file.rounds() if e.kind not in ASIDE]):
        share = np.mean(_failed(entry))
        if share > 0.5 or (number and share):
            number += 1
        if share <= 0.5:
            break
    file.set_aside(number)
    file.note(failed=False)


def _failed(entry: Round) -> np.ndarray:
    """Where the model had no answer; minus infinity is one."""
    if entry.kind == "hessian":
        return ~np.isfinite(entry.grad).all(axis=1)
    return (entry.reason != "") & (entry.reason != NO_DENSITY)


def _know_again(file: LedgerFile, target: Target) -> None:
    """Ask a model without a fingerprint at a point on file; one call, not budgeted."""
    rounds = [entry for entry in file.rounds() if entry.kind == "points"]
    if not rounds:
        return
    theta, energy, grad = (
        np.concatenate([getattr(entry, name) for entry in rounds])
        for name in ("theta", "energy", "grad")
    )
    for place in np.flatnonzero(np.isfinite(energy))[:PROBES]:
        began, clock = time.time(), time.perf_counter()
        answer = target.evaluate(theta[place : place + 1])
        seconds = time.perf_counter() - clock
        rows = theta[place : place + 1], *answer
        file.append(Round("probe", "probe", *rows, target.price, began, seconds))
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


def surrogate_on_file(path: str | Path, target: Target) -> Charted:
    """A surrogate fitted to all that the ledger of a related run has on file."""
    file = LedgerFile(path, is_read_only=True)
    try:
        facts = file.facts()
        shapes = {name: list(shape) for name, shape in target.parameters.shapes.items()}
        if facts.get("shapes") != shapes:
            raise LedgerError(
                f"{file.path} is of a model with parameters "
                f"{in_words(facts.get('shapes', {}))}, this one has {in_words(shapes)}"
            )
        account = Account(target, 0, Replay(file))
        account.absorb()
    finally:
        file.close()
    paid = account.paid
    if paid.is_finite.sum() < FEWEST_POINTS:
        raise LedgerError(f"{file.path} has too few points to begin with")
    rng = np.random.default_rng(0)
    learner = Learner(account, chart_of(paid), default_num_features(target.dim), rng)
    learner.learn(redraw=True)
    recent = slice(-max(len(paid.energy) // 3, FEWEST_POINTS), None)
    known = paid.is_finite[recent]
    learner.reframe(paid.theta[recent][known], paid.grad[recent][known])
    learner.learn(redraw=True)
    return learner.potential
