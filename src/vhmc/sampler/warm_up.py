"""Warm-up: refit a Gaussian at its own draws until it covers the posterior."""

import numpy as np

from vhmc.evaluation.evaluator import Evaluate, Evaluator
from vhmc.sampler.locate import Located
from vhmc.surrogate.near_mass import near_mass
from vhmc.transport.affine import Affine, divergence, evidence_bound
from vhmc.transport.affine_fit import fit_affine
from vhmc.transport.graph import Graph
from vhmc.transport.hub_dictionary import Choice
from vhmc.transport.influence import influence
from vhmc.transport.map_fit import EvaluatedPoints, typicality
from vhmc.transport.structured_fit import (
    Structured,
    best_structured,
    first_weights,
    is_sane,
)
from vhmc.transport.transport_map import TransportMap

CONVERGED = 0.02
"""Divergence by dimension below which the Gaussian has converged."""
WORSE = 2.0
"""Nats by which a Gaussian may be worse than the best before that is taken again."""
FEWEST = 3
"""Batches before the Gaussian may have converged, and finite points in a batch."""
SCREENING_DRAWS = 6
"""At each of several Gaussians, to choose one."""
COVERED = 1.0
"""Log weight, above the median, that a point beyond the hubs may have."""
NARROW = 0.5
"""Spread of log weights, in nats, at which a map has converged."""
END = 2.0
"""Latent place of a hub at which its range is compared between maps."""
SETTLED = 0.1
"""Change of an end, over the range, at which a hub's range has settled."""
FLAT = 0.3
"""Mean squared score error of a coordinate, beyond which the map is too narrow."""
MAX_FAILED = 5
"""Maps in a row that are worse than the best one, after which no more are fitted."""
NUM_DRAWS = 100
"""Draws of a map that must be finite before it is used."""
FAR = 30.0
"""Ranges of the points beyond which a map with draws there is absurd."""
MAX_SPREAD = 2.0
"""Half the range of log weights, over the root of the dimension, that is still good."""


def warm_up(
    rng: np.random.Generator,
    evaluate: Evaluate,
    located: Located,
    allowance: int,
    batch_size: int,
) -> Affine:
    """Refit a Gaussian to gradients at batches of its own draws until it converges.

    A mode may be far from the mass, and have another curvature. The points are spread
    as the surrogate will need them, so they serve training as well. Where there is no
    mode, or the log weights of draws around it vary too much, Gaussians on the way
    there are tried as well.

    allowance: evaluations.
    """
    if allowance < 2 * batch_size:
        return located.layer
    num_candidates = allowance // 2 // SCREENING_DRAWS
    layer, num_spent = _screened(rng, evaluate, located, batch_size, num_candidates)
    dim = len(layer.mean)
    best, kept = -np.inf, layer
    thetas, grads = [], []
    for count in range(1, (allowance - num_spent) // batch_size + 1):
        theta = layer.forward(rng.standard_normal((batch_size, dim)))
        answer = evaluate(theta, "warm-up")
        known = np.isfinite(answer.energy)
        if known.sum() < FEWEST:
            layer = Affine(layer.mean, layer.factor / 2)
            continue
        bound = evidence_bound(layer, answer.energy)
        if count > 2 and bound < best - WORSE - 0.1 * dim:
            return kept
        if bound > best:
            best, kept = bound, layer
        thetas.append(theta[known])
        grads.append(answer.grad[known])
        theta, grad = np.concatenate(thetas[-3:]), np.concatenate(grads[-3:])
        x = layer.inverse(theta)
        grad = layer.pull_back(x, grad)
        change = not_narrower(fit_affine(x, grad, influence(x, grad)))
        layer = layer.compose(change)
        if count >= FEWEST and divergence(change) < CONVERGED * dim:
            break
    return layer


def warm_up_along(
    rng: np.random.Generator,
    evaluator: Evaluator,
    transport: TransportMap,
    graph: Graph,
    allowance: int,
    batch_size: int,
) -> TransportMap:
    """Refit a map along the model's graph at its own draws until it converges.

    transport: the map so far, which is kept while the new ones are worse, and if it
        has converged already.
    allowance: evaluations.
    """
    current, best = transport, -np.inf
    choice: Choice | None = None
    num_own = batch_size - batch_size // 4
    left, is_first, num_failed, is_failed = allowance, True, 0, False
    families = graph.simpler()
    family = 0
    while left >= batch_size and num_failed < MAX_FAILED:
        trial: Structured | None = None
        if not is_first and not is_failed:
            is_near = num_failed > 0
            trial = _refitted(
                rng, evaluator, current, families[family], choice, is_near
            )
        drawn_from = current if trial is None else trial.transport
        theta = drawn_from.forward(rng.standard_normal((num_own, transport.dim)))
        if trial is not None:
            beyond = trial.frontier(rng)
            some = rng.permutation(len(beyond))[: batch_size - num_own]
            theta = np.concatenate([theta, beyond[some]])
        answer = evaluator.evaluate(theta, "warm-up")
        left -= len(theta)
        log_weight = log_weights(drawn_from, theta, answer.energy)
        own, others = np.split(log_weight, [num_own])
        bound = float(np.median(own))
        if is_first:
            best, is_first = bound, False
            if _spread(own) < NARROW and _is_wide(drawn_from, theta, answer.grad):
                return transport
        elif is_failed:
            is_failed = False
        elif trial is None or not bound > best - WORSE:
            # Points of a bad map teach little: the next are those of the best one.
            num_failed, is_failed = num_failed + 1, True
            family, choice = (family + 1) % len(families), None
        else:
            num_failed = 0
            best, choice = max(bound, best), trial.choice
            is_settled = _is_settled(current, trial.transport)
            current = trial.transport
            is_covered = bool(np.all(others < bound + COVERED))
            if _spread(own) < NARROW and is_covered and is_settled:
                break
    return current


def _is_wide(transport: TransportMap, theta: np.ndarray, grad: np.ndarray) -> bool:
    """Whether no coordinate of a map is so narrow that its draws do not feel it.

    Given its hubs any hierarchical posterior is all but Gaussian: a map that is far
    too narrow along a hub has log weights that hardly vary. Along it the posterior's
    gradient is zero next to the map's, whose mean square is one.

    theta, grad: draws of the map, and gradients there.
    """
    x, pulled = transport.pull_back(theta, grad)
    return bool(np.all(np.mean((pulled - x) ** 2, axis=0) < FLAT))


def _is_settled(old: TransportMap, new: TransportMap) -> bool:
    """Whether the range of the hubs has stopped growing from one map to the next."""
    hubs = new.hubs
    if old.hubs != hubs:
        return False
    ends = []
    for one in (old, new):
        x = np.zeros((2 * len(hubs), one.dim))
        for row, hub in enumerate(hubs):
            x[2 * row, hub], x[2 * row + 1, hub] = -END, END
        theta = one.forward(x)
        ends.append([theta[2 * row : 2 * row + 2, hub] for row, hub in enumerate(hubs)])
    before, after = np.array(ends).reshape(2, len(hubs), 2)
    width = after[:, 1] - after[:, 0]
    return bool(np.all(np.abs(after - before) < SETTLED * width[:, None]))


def _refitted(
    rng: np.random.Generator,
    evaluator: Evaluator,
    current: TransportMap,
    graph: Graph,
    choice: Choice | None,
    is_near: bool,
) -> Structured | None:
    """The better of two maps for all points; None if its draws are absurd.

    choice: of hubs and functions of the last map, which is tried again.
    is_near: fit it to points near the mass of the current map only.
    """
    log = evaluator.log
    if current.cliques is None and not is_near:
        # Gradients tell conditionals wherever they are: the search's points count.
        known = log.is_finite
        points = EvaluatedPoints(log.theta[known], log.energy[known], log.grad[known])
        weights = first_weights(points)
    else:
        points = near_mass(log)
        weights = typicality(current, points)
    trial = best_structured(rng, points, graph, weights, choice)
    if trial is None:
        return None
    with np.errstate(all="ignore"):
        draws = trial.transport.forward(rng.standard_normal((NUM_DRAWS, current.dim)))
        beyond = trial.frontier(rng)
    is_finite = np.isfinite(draws).all() and np.isfinite(beyond).all()
    if not is_finite or not is_sane(rng, trial.transport, points, weights, FAR):
        return None
    return trial


def spread_of_log_weights(
    transport: TransportMap, draws: np.ndarray, energy: np.ndarray
) -> float:
    """Half the range of the middle two thirds, in nats.

    draws: of the map.
    energy: true energies there.
    """
    return _spread(log_weights(transport, draws, energy))


def log_weights(
    transport: TransportMap, theta: np.ndarray, energy: np.ndarray
) -> np.ndarray:
    """Log importance weights of draws of a map, by their true energies."""
    x, log_det = transport.inverse_and_log_det(theta)
    weights = 0.5 * np.sum(x**2, axis=1) + log_det - energy
    return np.nan_to_num(weights, nan=-np.inf)


def _spread(log_weights: np.ndarray) -> float:
    """Half the range of the middle two thirds."""
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(log_weights, (0.16, 0.84))
    return float(high - low) / 2 if np.isfinite(low) else np.inf


def _screened(
    rng: np.random.Generator,
    evaluate: Evaluate,
    located: Located,
    batch_size: int,
    num_candidates: int,
) -> tuple[Affine, int]:
    """The Gaussian at the mode, or a better one on the way there; also the cost.

    num_candidates: Gaussians on the way that may be tried.
    """
    layer = located.layer
    x = rng.standard_normal((batch_size, len(layer.mean)))
    energy = evaluate(layer.forward(x), "screening").energy
    if located.modes.has_mode and _is_close(x, energy):
        return layer, batch_size
    others = located.others[:num_candidates]
    if not others:
        return layer, batch_size
    white = rng.standard_normal((len(others), SCREENING_DRAWS, len(layer.mean)))
    thetas = [other.forward(x) for other, x in zip(others, white, strict=True)]
    energies = evaluate(np.concatenate(thetas), "screening").energy
    energies = energies.reshape(len(others), SCREENING_DRAWS)
    bounds = np.array(
        [evidence_bound(*pair) for pair in zip(others, energies, strict=True)]
    )
    bounds = np.nan_to_num(bounds, nan=-np.inf)
    cost = batch_size + len(others) * SCREENING_DRAWS
    is_better = bounds.max() > evidence_bound(layer, energy)
    return (others[int(np.argmax(bounds))] if is_better else layer), cost


def _is_close(x: np.ndarray, energy: np.ndarray) -> bool:
    """Whether the log weights of a Gaussian's draws vary little."""
    log_weights = 0.5 * np.sum(x**2, axis=1) - energy
    with np.errstate(invalid="ignore"):  # infinite energies: not close
        low, high = np.quantile(log_weights, (0.16, 0.84))
    return bool(high - low < 2 * MAX_SPREAD * np.sqrt(x.shape[1]))


def not_narrower(layer: Affine) -> Affine:
    """Widths of one at least.

    Where the posterior is stiff on one side, gradients at a Gaussian's own draws make
    it too narrow to leave; a residual can take back what is too wide.
    """
    values, vectors = np.linalg.eigh(layer.factor @ layer.factor.T)
    covariance = (vectors * np.maximum(values, 1.0)) @ vectors.T
    return Affine(layer.mean, np.linalg.cholesky(covariance))
