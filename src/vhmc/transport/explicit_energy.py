r"""The hubs' marginal of a model that is Gaussian given its hubs, in closed form.

With $U = e(c) + \frac12 r^\top P(c) r - h(c)^\top r$ the marginal energy of the hubs is

$$e(c) + \tfrac12 \log \det P(c) - \tfrac12 h(c)^\top P(c)^{-1} h(c).$$

Where $e$ is a combination of a few functions of single hubs, exactly, it is known for
all hubs, also far from those that were evaluated: the mass is found without a search.
"""

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy.optimize

from vhmc.transport.conditional_fit import Scores
from vhmc.transport.hub_functions import POWERS, Atom, evaluate
from vhmc.transport.joint import Joint
from vhmc.transport.latent_gaussian import LatentGaussian
from vhmc.transport.marginal import AbstractMarginal

EXACT = 1e-4
"""Largest error of hub gradients, in nats, of a form that counts as exact."""
EXACT_BY_PREDICTOR = 1e-2
"""The same through a linear predictor, whose factors are fitted with a ridge."""
SHARE = 0.9
"""Share of the weight of the points that must be within it."""
WORTHWHILE = 0.5
"""A further function must leave less than this of the error."""
MAX_FUNCTIONS = 3
"""Functions of one hub beside the linear one, at most."""
TAIL_POWERS = 2.0, 1.0
"""Of a scale with a half-Cauchy or half-t prior or a correlation, and of a share."""
TAIL_PLACES = np.linspace(-6.0, 8.0, 29)
"""Logarithms of scales of a half-Cauchy or half-t prior that are tried first."""
NUM_REFINED = 6
"""Combinations of functions for which the scale is found exactly."""
MIN_POINTS = 20
REACH = 12.0
"""Half of the range of hubs that holds the mass, in sds of the marginal's curvature."""
LEAST_REACH = 3.0
"""The same in units of the hub."""
NUM_STARTS = 6
SAME = 1e-3
"""Nats within which two descents have found the same mode."""
OUTSIDE = 1e100
"""Energy where rounding leaves nothing of the matrix."""
OFFSET = 1e-2
"""Of the differences that give the curvature at the mode."""
LEAST_CURVATURE, MAX_CURVATURE = 0.05, 1e12
STEP = 1e-30
_Found: TypeAlias = tuple[list[Atom], list[float], np.ndarray]
"""Functions of a hub, their weights, and what they leave of its gradient."""


class ExplicitEnergy(AbstractMarginal):
    """The marginal energy of hubs, in closed form.

    low, high: range of hubs that holds the mass.
    scale: zero, as the density may be as narrow as it likes.
    functions: of single hubs, in which it is linear.
    """

    def __init__(
        self,
        layer: Joint | LatentGaussian,
        functions: list[Atom],
        weights: np.ndarray,
    ):
        self._layer, self.functions, self._weights = layer, functions, weights
        self.scale = np.zeros(len(layer.hubs))
        self.low = self.high = self.scale

    def __call__(self, c: np.ndarray) -> np.ndarray:
        """Energies of hubs, the rest integrated out, one point a row."""
        with np.errstate(all="ignore"):
            own = self._weights @ _values(self.functions, c)
            energy = self._layer.rest_energy(c) + own
        return np.where(np.isfinite(energy), energy, OUTSIDE)

    def locate(self, starts: np.ndarray) -> bool:
        """Find the range of the mass by descents; whether there is a mode.

        starts: hubs, one a row.
        """
        size = starts.shape[1]

        def value_and_grad(c: np.ndarray) -> tuple[float, np.ndarray]:
            energy = float(self(c[None])[0])
            with np.errstate(all="ignore"):
                grad = self._layer.rest_slopes(c[None])[0]
                for atom, weight in zip(self.functions, self._weights, strict=True):
                    grad[atom.hub] += weight * _derivative(atom, c[None])[0]
            if energy >= OUTSIDE or not np.isfinite(grad).all():
                return OUTSIDE, np.zeros(size)
            return energy, grad

        best = None
        for start in starts:
            found = scipy.optimize.minimize(
                value_and_grad, start, jac=True, method="BFGS"
            )
            if best is not None and abs(found.fun - best.fun) < SAME:
                break  # two descents that agree are enough
            if best is None or found.fun < best.fun:
                best = found
        assert best is not None
        rows = best.x + OFFSET * np.concatenate([np.eye(size), -np.eye(size)])
        sides = self(rows).reshape(2, size).sum(axis=0)
        curvature = (sides - 2 * best.fun) / OFFSET**2
        if not np.all((curvature > LEAST_CURVATURE) & (curvature < MAX_CURVATURE)):
            return False
        width = np.maximum(REACH / np.sqrt(curvature), LEAST_REACH)
        self.low, self.high = best.x - width, best.x + width
        return True


def explicit_energy(
    rng: np.random.Generator,
    layer: Joint | LatentGaussian,
    scores: Scores,
    level: np.ndarray,
    slopes: np.ndarray,
    known: Sequence[Atom] = (),
) -> ExplicitEnergy | None:
    """The closed form, if it reproduces the gradients of the hubs; else None.

    level, slopes: marginal energies at the points, and their gradients.
    known: functions that did for other points, which are tried first.
    """
    c = scores.theta[:, layer.hubs]
    with np.errstate(all="ignore"):
        left = slopes - layer.rest_slopes(c)
    is_usable = np.isfinite(left.sum(axis=1) + level) & (scores.weight > 0)
    if is_usable.sum() < MIN_POINTS:
        return None
    c, left, weight = c[is_usable], left[is_usable], scores.weight[is_usable]
    exact = EXACT if isinstance(layer, Joint) else EXACT_BY_PREDICTOR
    functions: list[Atom] = []
    weights: list[float] = []
    for hub in range(c.shape[1]):
        own = [atom for atom in known if atom.hub == hub]
        chosen, slope_weights, error = _as_before(
            c, left[:, hub], weight, own, exact
        ) or _of_one_hub(c, left[:, hub], weight, hub, exact)
        if not _quantile(np.abs(error), weight, SHARE) < exact:
            return None
        functions += chosen
        weights += slope_weights
    energy = ExplicitEnergy(layer, functions, np.array(weights))
    some = rng.choice(len(c), NUM_STARTS - 1, p=weight / weight.sum())
    starts = np.concatenate([(weight @ c / weight.sum())[None], c[some]])
    return energy if energy.locate(starts) else None


def _as_before(
    c: np.ndarray,
    slope: np.ndarray,
    weight: np.ndarray,
    known: list[Atom],
    exact: float,
) -> _Found | None:
    """The functions that are known, if they still leave next to no error."""
    if not known:
        return None
    columns = np.stack([_derivative(atom, c) for atom in known], axis=1)
    weights, error = _robust_fit(columns, slope, weight)
    is_exact = _quantile(np.abs(error), weight, SHARE) < exact / 100
    return (known, list(weights), error) if is_exact else None


def _of_one_hub(
    c: np.ndarray, slope: np.ndarray, weight: np.ndarray, hub: int, exact: float
) -> _Found:
    """Functions of a hub whose derivatives add up to its gradient, the fewest first."""
    center = float(np.average(c[:, hub], weights=weight))
    atoms = [Atom(hub, "polynomial", power, center, 1.0) for power in (1, 2)]
    atoms += [Atom(hub, "exp", power, center, 1.0) for power in POWERS]
    columns = np.stack([_derivative(atom, c) for atom in atoms])
    best: tuple[float, list[int], np.ndarray, np.ndarray] = (
        *(np.inf, [0]),
        *_robust_fit(columns[:1].T, slope, weight),
    )
    for number in range(MAX_FUNCTIONS + 1):
        for more in itertools.combinations(range(1, len(atoms)), number):
            used = [0, *more]
            weights, error = _robust_fit(columns[used].T, slope, weight)
            size = _quantile(np.abs(error), weight, SHARE)
            if size < WORTHWHILE * best[0]:
                best = size, used, weights, error
        if best[0] < exact / 100:
            break
    size, used, weights, error = best
    found = [atoms[i] for i in used], list(weights), error
    if size < exact / 100:
        return found
    # Wrong functions may do within a narrow range: the right ones do better.
    other = _with_heavy_tail(c, slope, weight, hub, atoms, exact / 100)
    return other if _quantile(np.abs(other[2]), weight, SHARE) < size else found


def _with_heavy_tail(
    c: np.ndarray,
    slope: np.ndarray,
    weight: np.ndarray,
    hub: int,
    atoms: list[Atom],
    enough: float,
) -> _Found:
    r"""The same with $\log(1 + e^{p (c - a)})$.

    From a half-Cauchy or half-t prior, or from a prior of a bounded parameter.
    """
    candidates = [[], *([atom] for atom in atoms[1:])]

    def fit(tail: Atom, more: list[Atom]) -> tuple[np.ndarray, np.ndarray]:
        used = [atoms[0], tail, *more]
        columns = np.stack([_derivative(atom, c) for atom in used], axis=1)
        return _robust_fit(columns, slope, weight)

    def size(tail: Atom, more: list[Atom]) -> float:
        return float(np.median(np.abs(fit(tail, more)[1])))

    def tail(power: float, place: float) -> Atom:
        return Atom(hub, "softplus", power, float(place), 1.0)

    step = TAIL_PLACES[1] - TAIL_PLACES[0]
    trials = []
    for power, more in itertools.product(TAIL_POWERS, candidates):
        sizes = [size(tail(power, place), more) for place in TAIL_PLACES]
        trials.append((min(sizes), power, TAIL_PLACES[np.argmin(sizes)], more))
    # Between the places tried first, others may do better than the right one. Of
    # those that leave no error the simplest come first: others are wrong far out.
    trials.sort(key=lambda one: one[0])
    refined = [one for one in trials if not one[3]] + trials[:NUM_REFINED]
    best: tuple[float, float, float, list[Atom]] = np.inf, 0.0, 0.0, []
    for _, power, near, more in refined:
        found = scipy.optimize.minimize_scalar(
            lambda place, power=power, more=more: size(tail(power, place), more),
            bounds=(near - step, near + step),
            method="bounded",
            options={"xatol": 1e-10},
        )
        if found.fun < WORTHWHILE * best[0]:
            best = float(found.fun), power, float(found.x), more
        if best[0] < enough:
            break
    _, power, place, more = best
    last = tail(power, place)
    weights, error = fit(last, more)
    return [atoms[0], last, *more], list(weights), error


def _robust_fit(
    columns: np.ndarray, right: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least squares, reweighted so that large errors count little."""
    trust = weight / (1 + right**2)
    for _ in range(4):
        unit = np.sqrt(trust @ columns**2) + 1e-300
        root = np.sqrt(trust)
        scaled = columns / unit
        solution = np.linalg.lstsq(scaled * root[:, None], right * root, rcond=1e-13)[0]
        error = right - scaled @ solution
        size = _quantile(np.abs(error), weight, 0.5) + 1e-12
        trust = weight / (size**2 + error**2)
    return solution / unit, error


def _values(functions: list[Atom], c: np.ndarray) -> np.ndarray:
    return evaluate(tuple((atom,) for atom in functions), c)


def _derivative(atom: Atom, c: np.ndarray) -> np.ndarray:
    shifted = c.astype(complex)
    shifted[:, atom.hub] += 1j * STEP
    return np.imag(atom(shifted)) / STEP


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    order = np.argsort(values)
    total = np.cumsum(weight[order]) / weight.sum()
    place = min(int(np.searchsorted(total, share)), len(order) - 1)
    return float(values[order[place]])
