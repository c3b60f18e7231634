"""All that the page of a run shows, as arrays and plain words that a file can hold."""

import contextlib
import importlib.metadata
import json
import platform
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from vhmc.numerics.effective_size import bulk_ess, split_rhat
from vhmc.numerics.hmc import energies_and_grads
from vhmc.structure.record import Structure

KIND = "vhmc run 5"
MODE_VALUES = 4
"""Numbers by which the place of a mode is described."""
VERSIONED = (
    *("vhmc", "jax", "jaxlib", "equinox", "numpy", "scipy", "matplotlib", "arviz"),
    "blackjax",
)


class Facts(NamedTuple):
    """A run, without its model.

    names: of single numbers in the user's space, `theta[3]`.
    values: draws of them, shape (chain, draw, name).
    mean_bounds, sd_bounds: of the errors of means, in posterior sd, and of sds,
        relative; those of ranks if there is no sd; NaN if not known.
    moments: how many of mean and sd exist, by name, as far as draws can tell.
    means, errors: best estimates of the means, and their standard errors.
    ess, rhat: by name.
    predicted, true: gradients of surrogate and model at checked draws, in posterior sd.
    log_weights: of the checked draws, the surrogate's energy less the true one.
    history: of the rounds: evaluations so far, score error, true acceptance.
    labels: of the unconstrained parameters, if their graph is known.
    edges: pairs of them that are linked, shape (2, number).
    hubs: places of the hubs.
    words: what is text or a single number: verdict, costs, settings, versions.
    """

    names: list[str]
    values: np.ndarray
    mean_bounds: np.ndarray
    sd_bounds: np.ndarray
    moments: np.ndarray
    means: np.ndarray
    errors: np.ndarray
    ess: np.ndarray
    rhat: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    log_weights: np.ndarray
    history: np.ndarray
    labels: list[str]
    edges: np.ndarray
    hubs: np.ndarray
    words: dict[str, Any]


def facts_of(posterior: Any) -> Facts:
    """Gather what the page shows; no evaluation is made."""
    draws, names = posterior.draws, posterior.names
    values = _flat(draws)
    mean_bounds, sd_bounds = posterior.error_bounds
    checked = posterior.check
    if checked is None:
        unknown = np.full(len(names), np.nan)
        means = np.where(posterior.moments > 0, values.mean(axis=(0, 1)), np.nan)
        errors = unknown
        predicted = true = np.zeros((0, posterior.unconstrained.shape[-1]))
        log_weights = np.zeros(0)
    else:
        estimate = posterior.expect(_flat)
        means, errors = estimate.value, estimate.error
        predicted, true, log_weights = _checks(posterior)
    return Facts(
        names=names,
        values=values,
        mean_bounds=mean_bounds,
        sd_bounds=sd_bounds,
        moments=posterior.moments,
        means=means,
        errors=errors,
        ess=np.minimum(bulk_ess(values), posterior.max_ess),
        rhat=split_rhat(values),
        predicted=predicted,
        true=true,
        log_weights=log_weights,
        history=np.array(posterior.history, dtype=float).reshape(-1, 3),
        **_graph(posterior.structure),
        words=_words(posterior),
    )


def save(facts: Facts, path: str | Path) -> Path:
    """One file of NumPy's format, without pickles."""
    text = {"words": json.dumps(facts.words)}
    lists = {n: np.array(getattr(facts, n), dtype=str) for n in ("names", "labels")}
    path = Path(path)
    with path.open("wb") as stream:
        np.savez_compressed(stream, kind=KIND, **facts._asdict() | text | lists)
    return path


def load(path: str | Path) -> Facts:
    """What `save` wrote."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a run that vhmc saved")
    try:
        with np.load(path, allow_pickle=False) as stored:
            found = {name: stored[name] for name in stored.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError) as error:
        raise ValueError(f"{path} is damaged: make it again") from error
    if str(found.pop("kind", "")) != KIND:
        raise ValueError(f"{path} is not a run that this version of vhmc saved")
    words = json.loads(str(found.pop("words")))
    lists = {name: found.pop(name).tolist() for name in ("names", "labels")}
    return Facts(**lists, words=words, **found)


def structure_of(facts: Facts) -> Structure | None:
    """The graph of the run, with its hubs; None if it is not known."""
    if not facts.labels:
        return None
    dim = len(facts.labels)
    rows, columns = facts.edges
    entries = np.ones(len(rows), dtype=bool), (rows, columns)
    one_way = sp.csr_matrix(entries, shape=(dim, dim))
    graph = sp.csr_matrix(one_way + one_way.T + sp.eye(dim, dtype=bool, format="csr"))
    structure = Structure(tuple(facts.labels), graph, facts.words["source"])
    return structure.with_hubs(facts.hubs.tolist())


def _flat(draws: dict[str, np.ndarray]) -> np.ndarray:
    leading = next(iter(draws.values())).shape[:2]
    return np.concatenate([v.reshape(*leading, -1) for v in draws.values()], axis=-1)


def _checks(posterior: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients in units of posterior sd, and log weights around their median."""
    check = posterior.check
    known = np.isfinite(check.energy)
    thetas = jnp.asarray(check.theta[known])
    energies, predicted = energies_and_grads(posterior.surrogate.potential, thetas)
    scale = posterior.uncorrected.std(axis=(0, 1))
    log_weights = np.asarray(energies) - check.energy[known]
    if len(log_weights):
        log_weights = log_weights - np.median(log_weights)
    return np.asarray(predicted) * scale, check.grad[known] * scale, log_weights


def _graph(structure: Structure | None) -> dict[str, Any]:
    """The fields of a run's graph; empty if it is not known."""
    if structure is None or structure.graph is None:
        empty = np.zeros(0, dtype=np.int32)
        return {"labels": [], "edges": np.stack([empty, empty]), "hubs": empty}
    return {
        "labels": list(structure.labels),
        "edges": np.stack(sp.triu(structure.graph, 1).nonzero()).astype(np.int32),
        "hubs": np.array(structure.hubs, dtype=np.int32),
    }


def _words(posterior: Any) -> dict[str, Any]:
    verdict = posterior.verdict
    return {
        "status": "" if verdict is None else verdict.status,
        "reasons": [*posterior.warnings, *(verdict.notes if verdict else ())],
        "statistics": {} if verdict is None else verdict.numbers(),
        "correction": posterior.correction,
        "is_exact": posterior.is_exact,
        "costs": posterior.costs,
        "seconds": posterior.seconds,
        "failures": dict(Counter(f.reason for f in posterior.failures).most_common(5)),
        "settings": posterior.settings,
        "evidence": _evidence(posterior),
        "modes": _modes(posterior),
        "structure": str(posterior.structure or ""),
        "source": posterior.structure.source if posterior.structure else "none",
        "versions": versions(),
    }


def _evidence(posterior: Any) -> str:
    """The log evidence and its error; empty if there is none."""
    has_meaning = posterior.evidence is not None and not posterior.constants
    return str(posterior.evidence) if has_meaning else ""


def _modes(posterior: Any) -> list[dict[str, str]]:
    """Mass and place of each mode in words; nothing if there is but one."""
    if len(posterior.modes) < 2:
        return []
    space = posterior.parameters
    shown = [
        label
        for name in space.names
        for label in space.labels(name, space.shapes[name])
    ]
    found = []
    for mode in posterior.modes:
        values = space.values(mode.center[None])[0][:MODE_VALUES]
        places = [f"{n} {v:.3g}" for n, v in zip(shown, values, strict=False)]
        copied = mode.copy_of
        found.append(
            {
                "mass": f"{mode.mass:.3f} ± {mode.error:.3f}",
                "place": ", ".join(places),
                "note": ""
                if copied is None
                else f"copy of mode {copied + 1}, relabelled",
            }
        )
    return found


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on, if installed."""
    found = {"python": platform.python_version()}
    for name in VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
