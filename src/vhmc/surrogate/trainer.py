"""The trainer: fits a surrogate to the evaluation log, again and again."""

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.evaluation.observable import Observable
from vhmc.surrogate.competing_fit import ENOUGH, default_fit
from vhmc.surrogate.moves import SEGMENT, Pace
from vhmc.surrogate.near_mass import FEWEST_FOR_GRAPH, near_mass
from vhmc.surrogate.plausible import is_plausible
from vhmc.surrogate.residual import Guard, ZeroResidual
from vhmc.surrogate.residual_fit import (
    AbstractResidualFit,
    Fitted,
    hold_out,
    zero_error,
)
from vhmc.surrogate.ridge_bound import RidgeBound
from vhmc.surrogate.separated_fit import separable_model
from vhmc.surrogate.surrogate import Surrogate
from vhmc.surrogate.training_set import (
    LatentLog,
    TrainingSet,
    training_set,
)
from vhmc.transport.affine import divergence
from vhmc.transport.affine_fit import fit_affine, widen, widen_along
from vhmc.transport.graph import Graph
from vhmc.transport.hub_dictionary import Choice
from vhmc.transport.influence import influence
from vhmc.transport.map_fit import (
    STRAIGHT,
    EvaluatedPoints,
    fit_map,
    typical_error,
    typicality,
    weighted_error,
)
from vhmc.transport.structured_fit import best_structured, is_sane
from vhmc.transport.transport_map import TransportMap

GUARD_CURVATURE = 3.0
REACH = 1.2
"""Radius of the guard over the distance of the farthest typical point."""
NEGLIGIBLE = 1e-3
"""Mean squared score error by dimension at which a map needs no residual.

On average over directions means are then off by 0.03 sd at most (all of it in one
direction of d: by 0.03 times the root of d), which the checks would show; a residual
would cost more than it gives.
"""
SUFFICIENT = 4e-3
"""The same while the surrogate has no residual yet, as estimates vary.

A map is fitted to the scores: what is left of them moves means and widths in second
order only.
"""
SUFFICIENT_TOTAL = 0.2
"""The same for all dimensions together."""
BETTER = 0.9
"""A new map must have less than this of the score error of the old one."""
MAX_DENSE = 200
"""Dimensions beyond which no coupling layers are tried."""
HELD_OUT = 0.25
NUM_CHAINS = 16
"""Of the surrogate, whose draws a dense map is fitted to."""


def default_num_features(dim: int) -> int:
    """Nodes of the network; fewer are used where the held-out error says so."""
    return int(np.clip(150 * dim, 300, 1500))


class Trainer:
    """Fits surrogates of a run; each fit returns a new one.

    transport: map to begin with.
    num_features: nodes of the network, at most; none leaves the affine map alone.
    rng: places the nodes and splits the data.
    residual_fit: family of residuals; random-feature networks unless given.
    graph: of the model, along which maps are fitted as well.
    observable: of the model, whose outputs may be emulated.
    """

    def __init__(
        self,
        transport: TransportMap,
        num_features: int,
        rng: np.random.Generator,
        residual_fit: AbstractResidualFit | None = None,
        graph: Graph | None = None,
        observable: Observable | None = None,
    ):
        self._graph = graph
        self._choice: Choice | None = None
        self._rng = rng
        self._has_residual = num_features > 0
        model = None if graph is None else separable_model(graph, transport.dim)
        self._residual_fit = residual_fit or default_fit(
            observable, num_features, model
        )
        guard = Guard(np.inf, GUARD_CURVATURE)
        self.surrogate = Surrogate(transport, ZeroResidual(), guard)
        self._latent_log = LatentLog(transport)
        self._error = np.inf
        self._least_ridge = RidgeBound()
        self._origin = 0.0
        # In many dimensions the log weights add up what each has left.
        self._sufficient = max(
            NEGLIGIBLE, min(SUFFICIENT, SUFFICIENT_TOTAL / transport.dim)
        )

    @property
    def is_map_sufficient(self) -> bool:
        """Whether the transport map needs no residual."""
        return self.surrogate.residual.is_zero and self._error <= self._sufficient

    @property
    def score_error(self) -> float:
        """Mean squared score error by dimension at points held out of the last fit."""
        return self._error

    def use_graph(self, graph: Graph | None) -> None:
        """Fit maps along this graph from now on."""
        self._graph = graph

    def require_residual(self) -> None:
        """Fit a residual from now on: without one the draws were not good."""
        self._sufficient = 0.0

    def start(self, log: EvaluationLog) -> Surrogate:
        """Fit a residual on the first map."""
        return self._fit(log, self.surrogate.transport, redraw=True)

    def update(self, log: EvaluationLog, *, choose_anew: bool = False) -> Surrogate:
        """Fit the residual to all points on the same map.

        choose_anew: choose ridge and number of nodes again.
        """
        transport = self.surrogate.transport
        return self._fit(log, transport, redraw=False, choose_anew=choose_anew)

    def refit(
        self, log: EvaluationLog, thetas: np.ndarray, grads: np.ndarray
    ) -> Surrogate:
        """Fit the map to states of the chains, then a new residual to all points.

        A map that is the posterior already, all but exactly, is left alone: there is
        only noise to be fitted.
        """
        transport = self.surrogate.transport
        if self.surrogate.residual.holds_everywhere and self._error <= ENOUGH:
            thetas, grads = self._own_draws(thetas)
        if transport.is_skewed:
            # The chains' few states say less than the draws it was fitted to.
            return self._fit(log, transport, redraw=True)
        x, grad = transport.pull_back(thetas, grads)
        if not (len(x) and np.mean((grad - x) ** 2) <= self._enough):
            is_curved = self._has_residual and not self._residual_fit.needs_affine
            if transport.cliques is None:
                transport = transport.then(fit_affine(x, grad, influence(x, grad)))
                if is_curved and 1 < transport.dim <= MAX_DENSE:
                    transport = self._better_map(log, transport)
            if is_curved and self._graph is not None and self._graph.is_structured:
                transport = self._along_graph(log, transport)
            if self._has_residual and transport.cliques is None:
                # Only a residual can take back what a wider Gaussian has too much.
                transport = _widened(transport, thetas)
            if not is_plausible(transport, self.surrogate, thetas, grads):
                transport = self.surrogate.transport
        return self._fit(log, transport, redraw=True)

    def _own_draws(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Draws of the surrogate with its gradients, as many as a dense map needs.

        thetas: where its chains start.
        """
        surrogate = self.surrogate
        starts = surrogate.transport.inverse(thetas[-NUM_CHAINS:])
        pace = Pace(surrogate.dim**-0.25 / 2, 12)
        first = surrogate.draw(self._rng, starts, pace).x
        second = surrogate.draw(self._rng, first[:, -1], pace).x
        x = np.concatenate([first[:, SEGMENT // 2 :], second], axis=1)
        x = x.reshape(-1, surrogate.dim)
        x = x[np.isfinite(x).all(axis=1)]
        grad = x + surrogate.residual.grads(x) + surrogate.guard.grads(x)
        transport = surrogate.transport
        return transport.forward(x), transport.push_forward(x, grad)

    def _along_graph(self, log: EvaluationLog, transport: TransportMap) -> TransportMap:
        """A map along the model's graph, if it is better at points held out."""
        assert self._graph is not None
        points = near_mass(log)
        weights = typicality(transport, points)
        if len(weights) < FEWEST_FOR_GRAPH:
            return transport
        if typical_error(transport, points, weights) < STRAIGHT / 4:
            return transport
        if transport.cliques is None and not self._gains_by_graph(points, transport):
            return transport
        trial = best_structured(self._rng, points, self._graph, weights, self._choice)
        if trial is None or not is_sane(self._rng, trial.transport, points, weights):
            return transport
        common = np.minimum(weights, typicality(trial.transport, points)) + 1e-6
        errors = [
            typical_error(one, points, common) for one in (trial.transport, transport)
        ]
        if errors[0] > errors[1]:
            return transport
        self._choice = trial.choice
        return trial.transport

    def _gains_by_graph(self, points: EvaluatedPoints, transport: TransportMap) -> bool:
        """Whether a map along the graph is better at points held out."""
        assert self._graph is not None
        weights = typicality(transport, points)
        is_out = self._rng.uniform(size=len(weights)) < HELD_OUT
        if is_out.sum() < 4 or (~is_out).sum() < FEWEST_FOR_GRAPH:
            return False
        kept, out = points.where(~is_out), points.where(is_out)
        trial = best_structured(
            self._rng, kept, self._graph, weights[~is_out], self._choice
        )
        if trial is None:
            return False
        old, new = (
            typical_error(one, out, weights[is_out])
            for one in (transport, trial.transport)
        )
        return new < BETTER * old

    def drift(self, thetas: np.ndarray, grads: np.ndarray) -> float:
        """Divergence by dimension of the chains' states from the map's Gaussian.

        Where they are wider along a single direction, that divergence counts alone.
        """
        transport = self.surrogate.transport
        x, grad = transport.pull_back(thetas, grads)
        if transport.cliques is not None:
            # By coordinate: a dense matrix would be noise in many dimensions.
            spread, mean = np.std(x, axis=0), np.mean(x, axis=0)
            spread = np.maximum(spread, 1e-6)
            return float(np.mean((spread**2 + mean**2 - 1) / 2 - np.log(spread)))
        change = divergence(fit_affine(x, grad, influence(x, grad))) / transport.dim
        outgrown = divergence(widen_along(x, transport.directions))
        return max(change, outgrown)

    def training_set(self, log: EvaluationLog) -> TrainingSet:
        """The evaluated points in the coordinates of the current map."""
        latent = self._latent_log
        return training_set(log, latent.transport, self._origin, latent)

    def adapt_ridge(self, log_weights: np.ndarray) -> None:
        """Follow draws of the surrogate: its energies less the true ones.

        A map without a network says nothing of the holes that one would have.
        """
        if not self.surrogate.residual.is_zero:
            self._least_ridge.adapt(log_weights)

    def keep_ridge(self, log_weights: np.ndarray) -> None:
        """Follow checked draws in the same way: holes bound the ridge for good."""
        if not self.surrogate.residual.is_zero:
            self._least_ridge.keep(log_weights)

    @property
    def _enough(self) -> float:
        """Score error that is small enough; a residual comes in for a clear reason."""
        if self.is_map_sufficient:
            return self._sufficient
        return min(NEGLIGIBLE, self._sufficient)

    def _fit(
        self,
        log: EvaluationLog,
        transport: TransportMap,
        *,
        redraw: bool,
        choose_anew: bool = False,
    ) -> Surrogate:
        """Fit a residual to all points on this map.

        redraw: the map has changed.
        """
        if transport is not self._latent_log.transport:
            self._latent_log = LatentLog(transport)
        training = self.training_set(log)
        if redraw:
            # About the constant that a map leaves between the two energies.
            self._origin += float(np.median(training.energy))
            training = self.training_set(log)
        fitted = Fitted(ZeroResidual(), self._error)
        if self._has_residual:
            is_out = hold_out(self._rng, training)
            error = zero_error(training, is_out)
            if error <= self._enough:
                self._residual_fit.reset()
                fitted = Fitted(ZeroResidual(), error)
            else:
                fitted = self._residual_fit.fit(
                    self._rng,
                    training,
                    is_out,
                    redraw=redraw,
                    choose_anew=choose_anew,
                    least_ridge=self._least_ridge.value,
                )
        self._error = fitted.error
        self.surrogate = Surrogate(transport, fitted.residual, _guard(training))
        return self.surrogate

    def _better_map(self, log: EvaluationLog, transport: TransportMap) -> TransportMap:
        """A map fitted from the start, curved layers and all, if it is better."""
        is_typical = self.training_set(log).is_typical
        known = np.flatnonzero(log.is_finite)[is_typical]
        points = EvaluatedPoints(log.theta[known], log.energy[known], log.grad[known])
        if len(known) < 4:
            return transport
        new = fit_map(self._rng, points, transport.layers[0])
        weights = typicality(transport, points)
        old_error, new_error = (
            weighted_error(one, points, weights) for one in (transport, new)
        )
        return new if new_error < BETTER * old_error else transport


def _guard(training: TrainingSet) -> Guard:
    """Around the typical points of low energy."""
    dim = training.x.shape[1]
    energy = training.energy + 0.5 * np.sum(training.x**2, axis=1)
    is_inside = training.is_typical & (energy < energy.min() + dim + 12)
    inside = np.linalg.norm(training.x[is_inside], axis=1).max(initial=0.0)
    return Guard(REACH * max(inside, np.sqrt(dim)), GUARD_CURVATURE)


def _widened(transport: TransportMap, thetas: np.ndarray) -> TransportMap:
    """As wide as the states, where they are wider than the map."""
    transport = transport.then(widen(transport.inverse(thetas)))
    return transport.then(widen_along(transport.inverse(thetas), transport.directions))
