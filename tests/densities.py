"""Densities that a step of a run can be tested on without a target."""

import jax
import numpy as np

from vhmc.evaluation.evaluator import EvaluationLog
from vhmc.evaluation.target import Evaluations, joined


class Density:
    """A log density as a step sees the model: batches in, energies and gradients out.

    counts: points evaluated, by phase.
    """

    def __init__(self, log_density):
        self._both = jax.jit(jax.vmap(jax.value_and_grad(lambda x: -log_density(x))))
        self.counts = {}
        self._parts = []

    def __call__(self, thetas, phase):
        self.counts[phase] = self.counts.get(phase, 0) + len(thetas)
        energy, grad = map(np.asarray, self._both(thetas))
        known = np.isfinite(energy) & np.isfinite(grad).all(axis=1)
        reason = np.where(known, "", "the log density is -inf").astype(object)
        grad = np.where(known[:, None], grad, 0.0)
        answer = Evaluations(np.where(known, energy, np.inf), grad, reason)
        self._parts.append((thetas, answer, np.repeat(phase, len(thetas))))
        return answer

    def hessian(self, theta):
        """Second derivatives of the energy, by differences of gradients."""
        steps = 1e-5 * np.eye(len(theta))
        ahead, behind = (np.asarray(self._both(theta + s)[1]) for s in (steps, -steps))
        matrix = (ahead - behind) / 2e-5
        return (matrix + matrix.T) / 2

    @property
    def log(self):
        thetas, answers, phases = zip(*self._parts, strict=True)
        energy, grad, reason, _ = joined(answers)
        return EvaluationLog(
            np.concatenate(thetas),
            energy,
            grad,
            np.isfinite(energy),
            np.concatenate(phases),
            reason,
        )
