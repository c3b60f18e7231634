"""Find the graph of a black box by moving its parameters, and put it to the test."""

import numpy as np
import scipy.sparse as sp

from vhmc.evaluation.evaluator import Evaluator
from vhmc.evaluation.target import Target
from vhmc.report.watch import LOG
from vhmc.sampler.model_graph import unread
from vhmc.structure.differenced import changed, graph_of, trials
from vhmc.structure.record import Source, Structure
from vhmc.transport.affine import Affine

SOURCE: Source = "gradient differences"
LEAST_DIM = 8
"""Dimensions below which a full graph has no more unknowns than there are points."""
MOST = 0.5
"""Evaluations for the differences, over those of the search, at most."""
SPARSE = 0.9
"""Share of all pairs beyond which the graph says nothing."""
NUM_PILOT = 8
"""Parameters that are moved first: if each is linked to nearly all, no more are."""
STEP = 0.5
"""Least step, on the unconstrained scale; the largest is twice as long."""
CLOSER = 0.2
"""Distance from the start at which it is tried again, over that of the last trial."""
NUM_STARTS = 4
NUM_TRIALS = 8
"""Sets of parameters that are moved near the mass to look for links that were missed.

A link that is missing is found by one with a probability of about a fifth to a half."""


def is_affordable(structure: Structure, target: Target, allowance: int) -> bool:
    """Whether the graph is unknown, and a gradient for each parameter is no burden.

    Gradients that are differences themselves have noise.

    allowance: evaluations of the search.
    """
    dim = structure.dim
    is_sought = structure.source == "assumed" and dim >= LEAST_DIM
    is_exact = target.price == 1 and target.observable is None
    return is_sought and is_exact and dim + NUM_STARTS <= MOST * allowance


def differenced(
    rng: np.random.Generator,
    evaluator: Evaluator,
    structure: Structure,
    origin: np.ndarray,
) -> Structure:
    """The structure with the graph seen at a random point near the origin.

    Itself if nearly all pairs are linked, as they also are where gradients have noise.
    Costs one evaluation for each parameter and one more.
    """
    base = origin + rng.uniform(-1.0, 1.0, structure.dim)
    for _ in range(NUM_STARTS):
        answer = evaluator.evaluate(base[None], "search")
        if np.isfinite(answer.energy[0]):
            break
        base = origin + CLOSER * (base - origin)
    else:
        return structure
    steps = STEP * rng.uniform(1.0, 2.0, len(base)) * rng.choice([-1, 1], len(base))
    found = _seen_at(rng, evaluator, base, answer.grad[0], steps)
    return structure if found is None else structure.with_graph(found, SOURCE)


def confirmed(
    rng: np.random.Generator,
    evaluator: Evaluator,
    structure: Structure,
    layer: Affine,
    allowance: int,
) -> Structure:
    """The structure, with links that were missed at the point of the differences.

    There a link may be too weak to be seen, such as that of distant places while a
    length scale is short. If parameters near the mass turn out to matter to others to
    which they are not linked, the differences are taken again there.

    layer: Gaussian near the mass, whose draws were the last to be evaluated.
    allowance: evaluations.
    """
    graph = structure.graph
    if structure.source != SOURCE or graph is None:
        return structure
    sets = trials(rng, graph, min(NUM_TRIALS, allowance))
    if not sets:
        return structure
    log = evaluator.log
    base, grad = log.theta[log.is_finite][-1], log.grad[log.is_finite][-1]
    other = layer.forward(rng.standard_normal((1, structure.dim)))[0]
    moved = np.array([np.isin(np.arange(len(base)), one.moved) for one in sets])
    answer = evaluator.evaluate(np.where(moved, other, base), "warm-up")
    known = np.isfinite(answer.energy)
    is_missed = changed(grad, answer.grad) & [one.still for one in sets]
    is_missed[~known] = False
    if not is_missed.any():
        return structure
    LOG.info("the graph misses links: more are looked for near the mass")
    if structure.dim <= allowance - len(sets):
        found = _seen_at(rng, evaluator, base, grad, other - base)
        if found is None:
            return unread(structure)
        return structure.with_graph(found + graph, SOURCE)
    links = graph.toarray()
    for row, one in zip(is_missed, sets, strict=True):
        links[np.ix_(one.moved, row)] = True
    return structure.with_graph(graph_of(links), SOURCE)


def _seen_at(
    rng: np.random.Generator,
    evaluator: Evaluator,
    base: np.ndarray,
    grad: np.ndarray,
    steps: np.ndarray,
) -> sp.csr_matrix | None:
    """The links seen at a point by moving one parameter at a time; None if nearly all.

    grad: at the point.
    """
    dim = len(base)
    is_changed = np.zeros((dim, dim), dtype=bool)
    order = rng.permutation(dim)
    for part in filter(len, (order[:NUM_PILOT], order[NUM_PILOT:])):
        answer = evaluator.evaluate(base + np.diag(steps)[part], "search")
        grads = np.where(np.isfinite(answer.energy)[:, None], answer.grad, np.nan)
        is_changed[part] = changed(grad, grads)
        if is_changed[part].mean() > SPARSE:
            return None
    found = graph_of(is_changed)
    return found if found.nnz <= SPARSE * dim**2 else None
