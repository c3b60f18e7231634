"""The Hessian of a black box whose graph is known, from few differences."""

import numpy as np

from vhmc.evaluation.evaluator import Evaluator
from vhmc.structure.colouring import groups_of, hessian_from
from vhmc.structure.record import Structure

WIDTH = float(np.cbrt(np.finfo(float).eps))
"""Of a difference, relative: it balances rounding against truncation."""


class SparseHessian:
    """Second derivatives by central differences: unlinked parameters move together.

    evaluator: of the model.
    structure: of the model, with a graph.

    price: evaluations for one.
    """

    def __init__(self, evaluator: Evaluator, structure: Structure):
        assert structure.graph is not None
        self._evaluator, self._graph = evaluator, structure.graph
        self._groups = groups_of(structure.graph)
        self.price = 2 * len(self._groups)

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """The Hessian at a point; NaN where a gradient is missing."""
        widths = WIDTH * np.maximum(1.0, np.abs(theta))
        steps = np.zeros((len(self._groups), len(theta)))
        for step, group in zip(steps, self._groups, strict=True):
            step[group] = widths[group]
        points = np.concatenate([theta + steps, theta - steps])
        answer = self._evaluator.evaluate(points, "search")
        is_known = np.isfinite(answer.energy)[:, None]
        above, below = np.split(np.where(is_known, answer.grad, np.nan), 2)
        # In units of the widths, in which the matrix is symmetric as well.
        changes = (above - below) / 2 * widths
        scaled = hessian_from(self._graph, self._groups, changes)
        return scaled / np.outer(widths, widths)
