"""The graph of a model: found or given, and how its parameters are constrained."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from vhmc._types import Potential
from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Target
from vhmc.structure.centred import centred
from vhmc.structure.given import given
from vhmc.structure.predictor import predictor
from vhmc.structure.record import Structure
from vhmc.structure.separated import separated
from vhmc.structure.traced import traced_graph
from vhmc.surrogate.separable_fit import groups_of
from vhmc.transport.centring import Centring
from vhmc.transport.graph import Graph
from vhmc.transport.hub_functions import Link
from vhmc.transport.walls import Walls

MAX_DENSE = 40
"""Dimensions up to which a model of unknown graph is taken as fully connected."""
LEAST_DIM = 3
"""Dimensions below which there is nothing to gain from a graph."""
MAX_SCALARS = 4
"""Entries of an array each of which may be a scale of many parameters."""
TOLERANCE = 1e-6


def identified(target: Target, structure: Any) -> bool | dict[str, Any]:
    """What identifies the argument `structure` of a run; refuse what is none."""
    labels = labels_of(target.parameters)
    known = given(structure, labels)
    if known is None:
        return True
    if known.is_off:
        return False
    facts: dict[str, Any] = {"hubs": [labels[hub] for hub in known.hubs]}
    if known.graph is not None:
        pairs = np.stack(known.graph.nonzero()).astype("int64")
        facts["graph"] = hashlib.sha256(pairs.tobytes()).hexdigest()[:16]
    return facts


def model_graph(
    target: Target, structure: Any = True, *, centre: bool = True
) -> Structure:
    """The structure of a model: what is given of it, and the graph of its program.

    A model that JAX cannot trace counts as fully connected in few dimensions; in more
    its graph is not known.

    structure: as in `sample`.
    centre: take the graph of the centred form where that is sparser by far.
    """
    labels = labels_of(target.parameters)
    known = given(structure, labels)
    if known is not None and (known.is_off or known.graph is not None):
        return known
    known = known or Structure(labels)
    energy, dim = target.traced_energy, target.dim
    if dim < LEAST_DIM:
        return Structure(labels)
    edges = None if energy is None else traced_graph(energy, dim)
    if energy is not None and edges is not None:
        found = known.with_graph(scipy.sparse.csr_matrix(edges), "traced program")
        return _sparser(found, target, energy) if centre else found
    # Emulated outputs, which need an affine map, know more than a full graph does.
    is_black = target.observable is None
    return unread(known) if is_black else known.with_graph(None, "assumed")


def unread(structure: Structure) -> Structure:
    """The structure of a model whose graph could not be read: a full one or none."""
    dim = structure.dim
    full = scipy.sparse.csr_matrix(np.ones((dim, dim), dtype=bool))
    graph = full if dim <= MAX_DENSE else None
    known = replace(structure, graph=graph, source="assumed")
    return replace(known, predictor=None, separated=None)


def _sparser(structure: Structure, target: Target, energy: Potential) -> Structure:
    """The structure of the centred form, if that has fewer links by far."""
    space = target.parameters
    sizes = dict(zip(space.names, space.unconstrained_sizes, strict=True))
    assert structure.graph is not None
    real = frozenset(_unconstrained(space))
    form = centred(energy, target.start, sizes, structure.graph, real)
    if form is None or set(form.places) & set(structure.hubs):
        return _with_predictor(structure, target, energy)
    shocks = form.predictor
    if shocks is not None and not set(structure.hubs) <= set(shocks.hubs):
        shocks = None
    return replace(structure, graph=form.graph, centred=form, predictor=shocks)


def _with_predictor(
    structure: Structure, target: Target, energy: Potential
) -> Structure:
    """The structure with the linear predictor, where the graph says too little.

    That is where the graph is not sparse, or where effects depend on more than scales,
    such as on correlations: the program knows how, functions of scales do not.
    """
    graph = fitting_graph(structure, target.parameters)
    if graph is None:
        return structure
    others = _other_hubs(graph, target.parameters)
    if graph.is_sparse and not others:
        return _with_separated(structure, graph, energy)
    found = predictor(energy, target.start)
    if found is None or not set(structure.hubs) <= set(found.hubs):
        return _with_separated(structure, graph, energy)
    if graph.is_sparse and not others & set(found.hubs):
        return structure
    return replace(structure, predictor=found)


def _with_separated(structure: Structure, graph: Graph, energy: Potential) -> Structure:
    """The structure with the quantity that the data see, where effects are crossed.

    Nested ones need no more than a map along the graph, and a full graph has next to
    none of them. What the priors link must be effects with scales.
    """
    if not graph.is_crossed or structure.hubs:
        return structure
    found = separated(energy, structure.dim)
    if found is None or groups_of(found, structure.dim, graph.links) is None:
        return structure
    return replace(structure, separated=found)


def _other_hubs(graph: Graph, space: Space) -> set[int]:
    """Constrained parameters with many neighbours that are no scales of their own.

    Such as correlations, autoregressive coefficients and vectors of scales.
    """
    return set(graph.well_linked) - set(graph.scales) - _unconstrained(space)


def behind(structure: Structure, walls: Walls, space: Space) -> Structure:
    """The structure in coordinates in which there are no walls.

    Walls of single parameters leave the graph as it is. Oblique ones, and those of
    parameters that are constrained as well, leave nothing that is known.
    """
    if structure.graph is None:
        return structure
    is_oblique = bool(np.any(walls.matrix != np.eye(structure.dim)))
    if not is_oblique and not set(walls.places) & set(links_of(space)):
        return replace(structure, predictor=None, separated=None)
    return unread(structure)


def fitting_graph(structure: Structure, space: Space) -> Graph | None:
    """What the fit of a map needs to know of a structure; None if it is off."""
    if structure.graph is None:
        return None
    # Where there is no program to look into, scales in short arrays count as well.
    most = MAX_SCALARS if structure.source == "gradient differences" else 1
    scalars: tuple[int, ...] = ()
    sizes, begin = space.unconstrained_sizes, 0
    for size, shape in zip(sizes, space.shapes.values(), strict=True):
        if shape == () or (len(shape) == 1 and size == shape[0] <= most):
            scalars += tuple(range(begin, begin + size))
        begin += size
    hubs = structure.hubs or None
    quantities = structure.predictor, structure.separated
    return Graph(structure.graph, links_of(space), hubs, scalars, *quantities)


def centring(structure: Structure, space: Space) -> Centring | None:
    """The layer from the form whose graph is used to the one that is written."""
    form = structure.centred
    if form is None:
        return None
    return Centring(form.places, form.given, form.quantity, space.start)


def _unconstrained(space: Space) -> set[int]:
    """Coordinates that are parameters as the user knows them."""
    point = np.linspace(-1.0, 1.0, space.dim)
    values, begin, found = space.constrain(point[None]), 0, set()
    for name, size in zip(space.names, space.unconstrained_sizes, strict=True):
        own = point[begin : begin + size]
        if values[name].size == size and np.allclose(np.ravel(values[name]), own):
            found |= set(range(begin, begin + size))
        begin += size
    return found


def labels_of(space: Space) -> tuple[str, ...]:
    """Names of the entries of the unconstrained vector."""
    return tuple(space.label(i) for i in range(space.dim))


def links_of(space: Space) -> dict[int, Link]:
    """How constrained parameters depend on their unconstrained coordinates.

    Found by moving all coordinates at once: what is not a function of its own
    coordinate alone, such as an ordered vector, is taken as real.
    """
    steps = np.arange(-2.0, 3.0)
    values = space.constrain(np.repeat(steps[:, None], space.dim, axis=1))
    links, begin = {}, 0
    for name, size in zip(space.names, space.unconstrained_sizes, strict=True):
        rows = np.reshape(values[name], (len(steps), -1))
        if rows.shape[1] == size:
            for entry in range(size):
                link = _link(rows[:, entry])
                if link is not None:
                    links[begin + entry] = link
        begin += size
    return links


def _link(values: np.ndarray) -> Link | None:
    """The link of a parameter with these values at -2, -1, 0, 1 and 2."""
    if not np.isfinite(values).all():
        return None
    steps = np.arange(-2.0, 3.0)
    exponential = np.exp(steps)
    logistic = 1 / (1 + np.exp(-steps))
    for kind, shape in (("exp", exponential), ("logit", logistic)):
        slope, shift = np.polyfit(shape, values, 1)
        if np.allclose(slope * shape + shift, values, rtol=TOLERANCE, atol=TOLERANCE):
            ends = np.array([shift, shift + slope])
            ends[np.abs(ends) < TOLERANCE * np.abs(slope)] = 0.0  # but for rounding
            return Link(kind, float(ends[0]), float(ends[1]))
    return None
