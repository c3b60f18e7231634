"""Evaluate a model in other coordinates than those that it is written in."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.evaluation.target import Evaluations
from vhmc.transport.layer import AbstractLayer

STEP = 1e-4
"""Of differences of the layer's derivatives."""


class CentredEvaluator(Evaluator):
    """An evaluator whose points are those inside of a layer, if there is one.

    The ledger, the counts and the user see the parameters of the model as it is
    written; the sampler sees those of its centred form, or others without walls.
    """

    on_answer: Callable[[np.ndarray, Evaluations, str], None] | None = None
    """Is told of all points, in the unconstrained space, with answers and phase."""

    def __init__(self, layer: AbstractLayer | None, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.use(layer)

    def use(self, layer: AbstractLayer | None) -> None:
        """Take points inside of another layer from now on."""
        self.layer = layer
        self._inner: list[tuple[np.ndarray, Evaluations]] = []

    @property
    def origin(self) -> np.ndarray:
        """The user's initial values, or the first point that is inside of the layer."""
        if self.layer is None:
            return super().origin
        x = self.inward(self.target.start[None])[0]
        if np.isfinite(x).all():
            return x
        log = self.log
        return log.theta[log.is_finite][0]

    def outward(self, thetas: np.ndarray) -> np.ndarray:
        if self.layer is None:
            return thetas
        with np.errstate(all="ignore"):
            flat = self.layer.forward(thetas.reshape(-1, self.target.dim))
        return flat.reshape(thetas.shape)

    def inward(self, thetas: np.ndarray) -> np.ndarray:
        if self.layer is None:
            return thetas
        with np.errstate(all="ignore"):
            return self.layer.inverse(thetas)

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        x = np.array(thetas, dtype=float)
        answer = self.evaluate_outside(self.outward(x), phase)
        return answer if self.layer is None else self._inside(self.layer, x, answer)

    def evaluate_outside(self, thetas: np.ndarray, phase: str) -> Evaluations:
        """Energies and gradients in the unconstrained space."""
        answer = super().evaluate(thetas, phase)
        if self.on_answer is not None:
            self.on_answer(thetas, answer, phase)
        return answer

    def hessian(self, theta: np.ndarray, phase: str) -> np.ndarray:
        """Second derivatives of the energy in these coordinates."""
        matrix = super().hessian(self.outward(theta[None])[0], phase)
        if (layer := self.layer) is None:
            return matrix
        x = np.tile(theta, (len(theta), 1))
        # Twice, once for each side.
        for _ in range(2):
            matrix = layer.pull_back(x, matrix).T
        grad = self._grad_at(self.outward(theta[None])[0])
        ends = []
        for side in (-1, 1):
            moved = x + side * STEP * np.eye(len(theta))
            pulled = layer.pull_back(moved, np.tile(grad, (len(theta), 1)))
            ends.append(pulled - layer.log_det_grad(moved))
        bent = (ends[1] - ends[0]) / (2 * STEP)
        return matrix + (bent + bent.T) / 2

    @property
    def log(self) -> EvaluationLog:
        log = self.evaluation_log
        if (layer := self.layer) is None:
            return log
        num_known = sum(len(rows.energy) for _, rows in self._inner)
        if num_known < len(log.energy):
            with np.errstate(all="ignore"):
                x = layer.inverse(log.theta[num_known:])
            answer = Evaluations(
                log.energy[num_known:], log.grad[num_known:], log.reason[num_known:]
            )
            self._inner.append((x, self._inside(layer, x, answer)))
        if not self._inner:
            return log
        energy, grad = (
            np.concatenate([rows[kind] for _, rows in self._inner]) for kind in (0, 1)
        )
        energy[self._distrusted] = np.inf
        return log._replace(
            theta=np.concatenate([x for x, _ in self._inner]),
            energy=energy,
            grad=grad,
            is_finite=np.isfinite(energy),
        )

    def _grad_at(self, theta: np.ndarray) -> np.ndarray:
        """Gradient at the evaluated point nearest to an unconstrained one."""
        log = self.evaluation_log
        if not log.is_finite.any():
            return np.zeros_like(theta)
        distance = np.sum((log.theta[log.is_finite] - theta) ** 2, axis=1)
        return log.grad[log.is_finite][np.argmin(distance)]

    def _inside(
        self, layer: AbstractLayer, x: np.ndarray, answer: Evaluations
    ) -> Evaluations:
        with np.errstate(all="ignore"):
            energy = answer.energy - layer.log_det(x)
            grad = layer.pull_back(x, answer.grad) - layer.log_det_grad(x)
            is_known = np.isfinite(energy + grad.sum(axis=1) + answer.energy)
        return answer._replace(
            energy=np.where(is_known, energy, np.inf),
            grad=np.where(is_known[:, None], grad, 0.0),
        )
