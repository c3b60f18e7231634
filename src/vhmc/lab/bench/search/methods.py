"""The first evaluations of several methods, in the order in which they were made."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import scipy.optimize

from vhmc.evaluation.evaluator import Evaluator
from vhmc.evaluation.target import Target
from vhmc.lab.baselines.nuts import HALF_WIDTH, load_blackjax
from vhmc.lab.baselines.pathfinder import pathfinder
from vhmc.models.traced import TracedTarget
from vhmc.sampler.model_graph import fitting_graph, model_graph
from vhmc.sampler.plan import Plan
from vhmc.sampler.search import search
from vhmc.sampler.warm_up import warm_up

SEARCH = 0.6
"""Share of the evaluations for the search; the Hessian and the warm-up take the rest.

In a run of a thousand evaluations it is 200 of 350.
"""
BATCH = 16
"""Draws of each Gaussian of the warm-up, as in a run of a thousand evaluations."""
WARMUP = 100
"""Steps of NUTS, at most."""


class Trace(NamedTuple):
    """What a method saw, and where it says the mass is.

    thetas, energies: in order; infinite where the model gave no answer.
    mean: of its Gaussian, or its last state; None if it has none.
    note: what it has to say on modes.
    """

    thetas: np.ndarray
    energies: np.ndarray
    mean: np.ndarray | None
    note: str = ""


class _Enough(Exception):
    """The evaluations are spent."""


class Recorder:
    """A model within a number of evaluations, each of which is kept."""

    def __init__(self, target: Target, limit: int):
        self.target, self._limit = target, limit
        self.thetas: list[np.ndarray] = []
        self.energies: list[float] = []

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Energy and gradient at one point; a wall where there is none."""
        if len(self.thetas) >= self._limit:
            raise _Enough
        answer = self.target.evaluate(theta[None])
        self.thetas.append(theta.copy())
        self.energies.append(float(answer.energy[0]))
        if np.isfinite(self.energies[-1]):
            return self.energies[-1], answer.grad[0]
        known = [energy for energy in self.energies if np.isfinite(energy)]
        return (max(known) + 1.0 if known else 1e10), np.zeros_like(theta)

    def trace(self) -> Trace:
        """What was seen; the lowest point is where the mass is said to be."""
        energies = np.array(self.energies)
        lowest = self.thetas[int(np.argmin(energies))] if len(energies) else None
        return Trace(np.array(self.thetas), energies, lowest)


def vhmc(target: Target, number: int, seed: int) -> Trace:
    """The search and the warm-up of `vhmc.sample`."""
    rng = np.random.default_rng(seed)
    evaluator = Evaluator(target, number)
    first = int(SEARCH * number)
    hessian_price = target.hessian_price
    hessian = hessian_price if hessian_price <= (number - first) // 2 else 0
    plan = Plan(first, hessian, number - first - hessian, 0, 0, 0, 0, BATCH)
    structure = model_graph(target)
    graph = fitting_graph(structure, target.parameters)

    def curvature(theta: np.ndarray) -> np.ndarray:
        return evaluator.hessian(theta, "hessian")

    given = curvature if hessian else None
    located = search(rng, evaluator, evaluator.origin, plan, graph, given)
    warm = min(plan.warm_up, evaluator.left)
    layer = warm_up(rng, evaluator.evaluate, located, warm, BATCH)
    log = evaluator.log
    note = "" if located.modes.has_mode else "no mode"
    return Trace(log.theta, log.energy, layer.mean, note)


def lbfgs(target: Target, number: int, seed: int) -> Trace:
    """SciPy's L-BFGS, begun again from another start whenever it ends."""
    rng = np.random.default_rng(seed)
    record = Recorder(target, number)
    start = target.start
    with contextlib.suppress(_Enough):
        while True:
            record(start)
            scipy.optimize.minimize(record, start, jac=True, method="L-BFGS-B")
            start = target.start + rng.uniform(-HALF_WIDTH, HALF_WIDTH, target.dim)
    return record.trace()


class _Watched(Target):
    """A target that keeps what it is asked."""

    def __init__(self, target: Target):
        super().__init__(target.parameters)
        self.target, self.route, self.price = target, target.route, target.price
        self.thetas: list[np.ndarray] = []
        self.energies: list[np.ndarray] = []

    def _evaluate(self, thetas):
        answers = self.target._evaluate(thetas)
        value = np.where(np.isfinite(answers.value), answers.value, -np.inf)
        self.thetas.append(thetas)
        self.energies.append(-value)
        return answers

    def hessian(self, theta):
        return self.target.hessian(theta)

    @property
    def hessian_price(self):
        return self.target.hessian_price

    @property
    def potential(self):
        """The target's own."""
        return self.target.potential


def pathfinder_paths(target: Target, number: int, seed: int) -> Trace:
    """Four paths of Pathfinder; the best Gaussian's draws give the mean."""
    watched = _Watched(target)
    found = pathfinder(watched, np.random.default_rng(seed), number)
    thetas = np.concatenate(watched.thetas)
    energies = np.concatenate(watched.energies)
    means = [one.draws.mean(axis=0) for one in found]
    means = [mean for mean in means if np.isfinite(mean).all()]
    if not means:
        return Trace(thetas, energies, None)
    best = np.argmin(target.evaluate(np.stack(means)).energy)
    return Trace(thetas, energies, means[int(best)])


def nuts(target: Target, number: int, seed: int) -> Trace:
    """One chain of BlackJAX's NUTS in its warm-up.

    Every state is there as often as its step took evaluations.
    """
    assert isinstance(target, TracedTarget)
    blackjax = load_blackjax()
    warmup = blackjax.window_adaptation(
        blackjax.nuts, lambda theta: -target.energy(theta)
    )
    key = jax.random.key(seed)
    _, info = warmup.run(key, target.start, num_steps=WARMUP)
    steps = np.asarray(info.info.num_integration_steps)
    states = np.asarray(info.state.position)
    ends = np.cumsum(steps)
    taken = max(1, int(np.searchsorted(ends, number, side="right")))
    thetas = np.repeat(states[:taken], steps[:taken], axis=0)
    energies = np.repeat(-np.asarray(info.state.logdensity)[:taken], steps[:taken])
    return Trace(thetas[:number], energies[:number], thetas[-1])


METHODS: dict[str, Callable[[Target, int, int], Trace]] = {
    "vhmc": vhmc,
    "lbfgs": lbfgs,
    "pathfinder": pathfinder_paths,
    "nuts": nuts,
}
