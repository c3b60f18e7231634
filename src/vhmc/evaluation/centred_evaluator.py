"""Evaluate a model in other coordinates than those that it is written in."""

from typing import Any

import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog, Evaluator
from vhmc.evaluation.target import Evaluations
from vhmc.transport.layer import AbstractLayer

STEP = 1e-4
"""Of differences of the layer's derivatives."""


class CentredEvaluator(Evaluator):
    """An evaluator whose points are those inside of a layer.

    The ledger, the counts and the user see the parameters of the model as it is
    written; the sampler sees those of its centred form.
    """

    layer: AbstractLayer

    def __init__(self, layer: AbstractLayer, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.layer = layer
        self._inner: list[tuple[np.ndarray, Evaluations]] = []

    @property
    def origin(self) -> np.ndarray:
        return self.layer.inverse(self.target.start[None])[0]

    def outward(self, thetas: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            flat = self.layer.forward(thetas.reshape(-1, self.target.dim))
        return flat.reshape(thetas.shape)

    def evaluate(self, thetas: np.ndarray, phase: str) -> Evaluations:
        x = np.array(thetas, dtype=float)
        answer = super().evaluate(self.outward(x), phase)
        return self._inside(x, answer)

    def hessian(self, theta: np.ndarray, phase: str) -> np.ndarray:
        """Second derivatives of the energy in these coordinates."""
        matrix = super().hessian(self.outward(theta[None])[0], phase)
        x = np.tile(theta, (len(theta), 1))
        # Twice, once for each side.
        for _ in range(2):
            matrix = self.layer.pull_back(x, matrix).T
        grad = self._grad_at(self.outward(theta[None])[0])
        ends = []
        for side in (-1, 1):
            moved = x + side * STEP * np.eye(len(theta))
            pulled = self.layer.pull_back(moved, np.tile(grad, (len(theta), 1)))
            ends.append(pulled - self.layer.log_det_grad(moved))
        bent = (ends[1] - ends[0]) / (2 * STEP)
        return matrix + (bent + bent.T) / 2

    @property
    def log(self) -> EvaluationLog:
        log = self.evaluation_log
        num_known = sum(len(rows.energy) for _, rows in self._inner)
        if num_known < len(log.energy):
            x = self.layer.inverse(log.theta[num_known:])
            answer = Evaluations(
                log.energy[num_known:], log.grad[num_known:], log.reason[num_known:]
            )
            self._inner.append((x, self._inside(x, answer)))
        if not self._inner:
            return log
        energy, grad = (
            np.concatenate([rows[kind] for _, rows in self._inner]) for kind in (0, 1)
        )
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

    def _inside(self, x: np.ndarray, answer: Evaluations) -> Evaluations:
        with np.errstate(all="ignore"):
            energy = answer.energy - self.layer.log_det(x)
            grad = self.layer.pull_back(x, answer.grad) - self.layer.log_det_grad(x)
        is_known = np.isfinite(energy + grad.sum(axis=1)) & np.isfinite(answer.energy)
        return answer._replace(
            energy=np.where(is_known, energy, np.inf),
            grad=np.where(is_known[:, None], grad, 0.0),
        )
