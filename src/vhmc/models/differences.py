"""Gradients of a model that gives values alone, by differences on the free space."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vhmc._arguments import positive, shown
from vhmc.evaluation.target import Answers

KINDS = "forward", "central"


class Differences(NamedTuple):
    """How a gradient is made of values.

    kind: `forward` takes one more value for each dimension, `central` two.
    step: distance between them, relative to a coordinate's size where that is above 1.
    """

    kind: str
    step: float

    def price(self, dim: int) -> int:
        """Values for one point with its gradient."""
        return 1 + dim * (1 if self.kind == "forward" else 2)

    def answers(
        self, values: Callable[[np.ndarray], Answers], thetas: np.ndarray
    ) -> Answers:
        """Values and gradients; all values are asked for in one batch.

        A point one of whose neighbours has no value fails for the same reason.
        """
        number, dim = thetas.shape
        widths = self.step * np.maximum(1.0, np.abs(thetas))
        moves = widths[:, None, :] * np.eye(dim)
        sides = [thetas[:, None, :], thetas[:, None, :] + moves]
        if self.kind == "central":
            sides.append(thetas[:, None, :] - moves)
        points = np.concatenate(sides, axis=1)
        said = values(points.reshape(-1, dim))
        value = said.value.reshape(number, -1)
        # What was rounded is the distance that counts.
        if self.kind == "central":
            rise = value[:, 1 : dim + 1] - value[:, dim + 1 :]
            run = np.einsum("nii->ni", sides[1] - sides[2])
        else:
            rise = value[:, 1:] - value[:, :1]
            run = np.einsum("nii->ni", sides[1] - sides[0])
        price = value.shape[1]
        reasons = [
            next(filter(None, said.reason[i * price : (i + 1) * price]), "")
            for i in range(number)
        ]
        with np.errstate(invalid="ignore"):
            return Answers(value[:, 0], rise / run, reasons)


def differences(kind: str, step: float | None) -> Differences:
    """Check what the user chose, and find the step that rounding asks for.

    kind: `forward` or `central`.
    step: see `Differences`; a model with noise of its own, such as an adaptive solver,
        wants one well above the default.
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
