"""Gradients by finite differences, for models that return values only."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc._arguments import positive, shown
from vhmc.evaluation.target import Answers

KINDS = "forward", "central"


class Differences(NamedTuple):
    """A finite-difference scheme on the unconstrained space.

    kind: `forward` takes one more value per dimension, `central` two.
    step: width, relative to the magnitude of a coordinate where that is above 1.
    """

    kind: str
    step: float

    def price(self, dim: int) -> int:
        """Values that one point with its gradient takes."""
        return 1 + dim * (1 if self.kind == "forward" else 2)

    def answers(
        self, values: Callable[[np.ndarray], Answers], thetas: np.ndarray
    ) -> Answers:
        """Values and gradients at points, from one batch of values.

        If a neighbour of a point has no value, the point fails for the same reason.
        """
        number, dim = thetas.shape
        widths = self.step * np.maximum(1.0, np.abs(thetas))
        moves = widths[:, None, :] * np.eye(dim)
        sides = [thetas[:, None, :], thetas[:, None, :] + moves]
        if self.kind == "central":
            sides.append(thetas[:, None, :] - moves)
        points = np.concatenate(sides, axis=1)
        answers = values(points.reshape(-1, dim))
        value = answers.value.reshape(number, -1)
        # Divide by the width after rounding, not by the one that was asked for.
        if self.kind == "central":
            rise = value[:, 1 : dim + 1] - value[:, dim + 1 :]
            run = np.einsum("nii->ni", sides[1] - sides[2])
        else:
            rise = value[:, 1:] - value[:, :1]
            run = np.einsum("nii->ni", sides[1] - sides[0])
        price = value.shape[1]
        reasons = [
            next(filter(None, answers.reason[i * price : (i + 1) * price]), "")
            for i in range(number)
        ]
        outputs = answers.outputs
        if outputs is not None:
            outputs = outputs[::price]
        with np.errstate(invalid="ignore"):
            return Answers(value[:, 0], rise / run, reasons, outputs)


def differences(kind: str, step: float | None) -> Differences:
    """Check the user's choice of scheme, and choose the step if there is none.

    kind: `forward` or `central`.
    step: see `Differences`; by default the width that balances rounding against
        truncation. A noisy model, such as an adaptive solver, needs a larger one.
    """
    if kind not in KINDS:
        raise ValueError(
            f"differences must be one of {', '.join(KINDS)}, got {shown(kind)}"
        )
    if step is None:
        step = np.finfo(float).eps ** (1 / 2 if kind == "forward" else 1 / 3)
    step = positive("step", step)
    if step >= 1:
        raise ValueError(f"step must be between 0 and 1, got {step}")
    return Differences(kind, step)
