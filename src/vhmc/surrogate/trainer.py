"""All that was paid for, as a chart and a network: the surrogate and its fit."""

import jax
import jax.numpy as jnp
import numpy as np

from vhmc.evaluation.evaluator import Account
from vhmc.numerics.bases import Additive
from vhmc.surrogate import network_fit as residual_fit
from vhmc.surrogate.network_fit import Choice, Lessons, Nodes, NormalSums
from vhmc.surrogate.residual import Charted, Residual
from vhmc.transport.affine import Frame, divergence
from vhmc.transport.affine_fit import refit, stretch, stretch_along
from vhmc.transport.coupling_fit import capped, influence
from vhmc.transport.map_fit import Points, straighten, typicality, weighted_error
from vhmc.transport.transport_map import Chart

AWAY = "search", "scouting"
"""Phases whose points may be far from the posterior's mass."""
GUARD = 3.0
"""Curvature that is added outside of the taught ball."""
REACH = 1.2
"""Radius of that ball over the distance of the farthest typical point."""
HOLE = 4.0
"""Nats by which the surrogate is too low where it has a hole."""
MOST_IN_HOLES = 0.1
"""Share of draws in holes above which the network is too free."""
FLOORS = 1e-8, 1e-4, 1e-1
"""Smallest, first and largest least ridge."""
NEARLY = 1e-3
"""Mean squared score error by dimension at which a chart needs no network.

On average over directions means are then off by 0.03 sd at most (all of it in one
direction of d: by 0.03 times the root of d), which the checks would show; the network
would cost more than it gives.
"""
PLAIN = 4e-3
"""The same for a surrogate that has no network yet, as estimates vary.

A chart is fitted to the scores: what is left of them moves means and widths in second
order only.
"""
PLAIN_TOTAL = 0.2
"""The same for all dimensions together."""
STRAIGHTER = 0.9
"""A new chart must have less than this of the score error of the old one."""


def default_num_features(dim: int) -> int:
    """Nodes of the network; fewer are used where the held-out error says so."""
    return int(np.clip(150 * dim, 300, 1500))


class Learner:
    """The surrogate of a run, refitted to everything in the account.

    account: what was paid for.
    chart: whitened coordinates to begin with.
    num_features: nodes of the network, at most; none leaves the Gaussian.
    rng: places the nodes and splits the data.
    """

    def __init__(
        self,
        account: Account,
        chart: Chart,
        num_features: int,
        rng: np.random.Generator,
    ):
        self.account, self._rng = account, rng
        self.chart = chart
        self.choice = Choice(1.0, 0, np.inf)
        self._num_features = num_features
        self._nodes = Nodes(
            np.zeros((num_features, account.target.dim)), np.zeros(num_features)
        )
        self._weights = np.zeros(num_features)
        self._radius = np.inf
        self._floor = FLOORS[1]
        self._num_learnt = 0
        self._sums: NormalSums | None = None
        self._origin = 0.0
        # In many dimensions the log weights add up what each has left.
        self._plain = max(NEARLY, min(PLAIN, PLAIN_TOTAL / account.target.dim))

    def try_harder(self) -> None:
        """Bring in a network from now on: without one the draws were not good."""
        self._plain = 0.0

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self._nodes.directions.shape[1]

    @property
    def is_plain(self) -> bool:
        """Whether the chart is the posterior already, so that no network is needed."""
        return not self.choice.num_features and self.choice.error <= self._plain

    @property
    def _enough(self) -> float:
        """Score error that is small enough; a network comes in for a clear reason."""
        return self._plain if self.is_plain else min(NEARLY, self._plain)

    def residual(self) -> Residual:
        """The surrogate in the chart's coordinates, for JAX.

        All nodes or none: two shapes, so two programs, and that for none is much faster
        to compile and to run.
        """
        number = self._num_features if self.choice.num_features else 0
        directions, offsets = (jnp.asarray(rows) for rows in self._nodes.first(number))
        return Residual(
            Additive(directions, offsets),
            jnp.asarray(self._weights[:number]),
            jnp.asarray(self._radius),
            jnp.asarray(GUARD),
        )

    @property
    def potential(self) -> Charted:
        """The surrogate on the unconstrained space."""
        chart = jax.tree.map(jnp.asarray, self.chart)
        return Charted(chart, self.residual())

    def energies(self, thetas: np.ndarray) -> np.ndarray:
        """Surrogate energies of points, up to a constant."""
        x, log_volumes = self.chart.locate(thetas)
        length = np.linalg.norm(x, axis=1)
        guard = 0.5 * GUARD * np.maximum(length - self._radius, 0.0) ** 2
        number = self.choice.num_features  # the others have no weight
        network = self._nodes.first(number).outputs(x) @ self._weights[:number]
        return 0.5 * length**2 + network + guard + log_volumes

    def score_errors(self, thetas: np.ndarray, grads: np.ndarray) -> np.ndarray:
        """Gradients of the surrogate less the true ones, in the chart's coordinates."""
        x, grad = self.chart.scores(thetas, grads)
        length = np.linalg.norm(x, axis=1, keepdims=True)
        beyond = np.maximum(length - self._radius, 0.0) / np.maximum(length, 1e-9)
        number = self.choice.num_features
        nodes, weights = self._nodes.first(number), self._weights[:number]
        network = (nodes.slopes(x) * weights) @ nodes.directions
        return x + network + GUARD * beyond * x - grad

    def lessons(self) -> Lessons:
        """The account in the chart's coordinates, with capped influence."""
        paid = self.account.paid
        known = paid.is_finite
        dim = self.dim
        is_search = np.isin(paid.phase[known], AWAY)
        theta = paid.theta[known]
        # Points too far away for the chart teach nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            x, grad = self.chart.scores(theta, paid.grad[known])
            energy = paid.energy[known] - self.chart.locate(theta)[1]
            lost = ~np.isfinite(np.sum(x + grad, axis=1) + energy)
        x[lost], grad[lost], energy[lost] = 0.0, 0.0, np.inf
        level = energy - 0.5 * np.sum(x**2, axis=1) - self._origin
        cap, energy_cap = influence(x, grad), capped(level**2, dim)
        # Only the search goes where the posterior is not. Elsewhere a high energy is
        # news, often of a hole: weights by energy alone would never fill it.
        lowest = energy[~is_search] if not is_search.all() else energy
        excess = energy - lowest.min()
        search = np.exp(-np.maximum(excess - 2 * dim, 0) / dim)
        far = (1 + np.maximum(excess - 5 * dim - 20, 0) / dim) ** -2
        weight = cap * far * np.where(is_search, search, 1.0)
        is_typical = ~is_search & (excess < 5 * dim + 20)
        level[lost] = 0.0
        return Lessons(x, grad - x, level, weight, weight * energy_cap, is_typical)

    def reframe(self, thetas: np.ndarray, grads: np.ndarray) -> None:
        """Refit the chart to states of the chains; `learn(redraw=True)` must follow.

        A chart that is the posterior already, all but exactly, is left alone: there is
        only chance to be fitted to.
        """
        x, grad = self.chart.scores(thetas, grads)
        if len(x) and np.mean((grad - x) ** 2) <= self._enough:
            return
        chart = self.chart.then(refit(x, grad, influence(x, grad)))
        if self._num_features and self.dim > 1:
            chart = self._straighter(chart)
        if self._num_features:
            # Only a network can take back what a wider Gaussian has too much.
            chart = _widened(chart, thetas)
        self.chart = chart

    def drift(self, thetas: np.ndarray, grads: np.ndarray) -> float:
        """How far the states have gone from the chart: divergence by dimension.

        Where they outgrow it along a single direction, that divergence counts alone.
        """
        x, grad = self.chart.scores(thetas, grads)
        change = divergence(refit(x, grad, influence(x, grad))) / self.dim
        outgrown = divergence(stretch_along(x, self.chart.directions))
        return max(change, outgrown)

    def _straighter(self, chart: Chart) -> Chart:
        """A chart made anew, bends and all, if it is better than this one."""
        paid, is_typical = self.account.paid, self.lessons().is_typical
        known = np.flatnonzero(paid.is_finite)[is_typical]
        points = Points(paid.theta[known], paid.energy[known], paid.grad[known])
        outer = chart.layers[0]
        if len(known) < 4 or not isinstance(outer, Frame):
            return chart
        new = straighten(self._rng, points, outer)
        share = typicality(chart, points)
        old_error, new_error = (
            weighted_error(one, points, share) for one in (chart, new)
        )
        return new if new_error < STRAIGHTER * old_error else chart

    def learn(self, *, redraw: bool, choose: bool = False) -> None:
        """Fit the network to all that was paid for.

        redraw: draw nodes anew; needed after the frame has changed.
        choose: choose ridge and number of nodes anew, as `redraw` does anyway, with
            the nodes' scale.
        """
        if redraw:
            # The constant that a chart leaves between the two energies, about.
            self._origin += float(np.median(self.lessons().energy))
        lessons = self.lessons()
        energy = lessons.energy + 0.5 * np.sum(lessons.x**2, axis=1)
        is_inside = lessons.is_typical & (energy < energy.min() + self.dim + 12)
        inside = np.linalg.norm(lessons.x[is_inside], axis=1).max(initial=0.0)
        self._radius = REACH * max(inside, np.sqrt(self.dim))
        if not self._num_features:
            return
        is_out = residual_fit.hold_out(self._rng, lessons)
        alone = residual_fit.error_of_none(lessons, is_out)
        if alone <= self._enough:
            self.choice = Choice(1.0, 0, alone)
            self._weights, self._sums = np.zeros(self._num_features), None
            return
        if redraw or self._sums is None:
            nodes = residual_fit.place(self._rng, self._num_features, lessons)
            self._nodes = residual_fit.sharpen(nodes, lessons, is_out)
            self._sums = residual_fit.normal_sums(self._nodes, lessons)
        else:
            new = Lessons(*(rows[self._num_learnt :] for rows in lessons))
            self._sums = self._sums.plus(residual_fit.normal_sums(self._nodes, new))
        self._num_learnt = len(lessons.x)
        if redraw or choose or not self.choice.num_features:
            self.choice = residual_fit.choose(self._nodes, lessons, self._sums, is_out)
        ridge = max(self.choice.ridge, self._floor)
        self._weights = residual_fit.solve(
            self._sums.equations(), ridge, self.choice.num_features
        )

    def mind_holes(self, log_weights: np.ndarray) -> None:
        """Raise the least ridge while the surrogate's draws fall into its holes.

        log_weights: surrogate energies less true ones at draws of the surrogate.
        """
        if not len(log_weights):
            return
        depth = np.median(log_weights) - log_weights
        is_deep = ~(depth < HOLE)
        self._floor *= 10.0 if is_deep.mean() > MOST_IN_HOLES else 0.8
        self._floor = float(np.clip(self._floor, FLOORS[0], FLOORS[2]))


def _widened(chart: Chart, thetas: np.ndarray) -> Chart:
    """As wide as the states, where they have outgrown it."""
    chart = chart.then(stretch(chart.to_x(thetas)))
    return chart.then(stretch_along(chart.to_x(thetas), chart.directions))
