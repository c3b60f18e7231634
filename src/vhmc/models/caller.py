"""Evaluate the user's function at many points: serially, in a batch, or by workers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vhmc._arguments import positive, shown
from vhmc.evaluation.target import Answers
from vhmc.evaluation.user_code import Guarded


class Checked:
    """The user's function with the shapes of its answer checked.

    Picklable if the function is, so that workers can run it.

    function: from a vector to a log density and its gradient, or to a log density
        alone.
    with_grad: whether it returns the gradient.
    with_outputs: whether it returns a pair of that and the outputs of a forward model.
    """

    def __init__(
        self, function: Callable[..., Any], with_grad: bool, with_outputs: bool = False
    ):
        self._function, self._with_grad = function, with_grad
        self._with_outputs = with_outputs

    def __call__(
        self, point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Log density, gradient and outputs at one point, or at rows of points."""
        # A copy: a function that works in place must not change the caller's points.
        answer, outputs = self._function(point.copy()), None
        if self._with_outputs:
            answer, outputs = answer
        value, grad = answer, np.zeros_like(point)
        if self._with_grad:
            try:
                value, grad = answer
            except (TypeError, ValueError) as error:
                raise ValueError(
                    "the model must return the log density and its gradient"
                ) from error
        # The gradient is copied: PyTensor's functions, for one, reuse its memory.
        value, grad = np.asarray(value, dtype=float), np.array(grad, dtype=float)
        leading = point.shape[:-1]
        if value.size != np.prod(leading):
            expected = f"{leading[0]} numbers" if leading else "one number"
            raise ValueError(
                f"the log density must be {expected}, got shape {value.shape}"
            )
        if grad.shape != point.shape:
            raise ValueError(
                f"the gradient must have shape {point.shape}, got {grad.shape}"
            )
        return value.reshape(leading), grad, outputs


class Caller:
    """The user's function at many points, with failures returned as reasons.

    function, with_grad: as in `Checked`.
    num_outputs: numbers that the forward model inside the function returns beside its
        answer; 0 if there is none.
    batch: whether the function takes all points at once, one per row.
    parallel: object with a `map`, such as a pool of processes or a Dask client.
    timeout: seconds to wait for one evaluation.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        with_grad: bool = True,
        num_outputs: int = 0,
        batch: bool = False,
        parallel: Any = None,
        timeout: float | None = None,
    ):
        if not callable(function):
            raise ValueError(f"the model must be a function, got {shown(function)}")
        if parallel is not None and not callable(getattr(parallel, "map", None)):
            raise ValueError(f"parallel must have a `map`, got {shown(parallel)}")
        if parallel is not None and batch:
            raise ValueError(
                "a batch is evaluated at once: give batch or parallel, not both"
            )
        if timeout is not None:
            timeout = positive("timeout", timeout)
        self._ask = Guarded(Checked(function, with_grad, num_outputs > 0), timeout)
        self._is_batch, self._parallel = batch, parallel
        self._num_outputs = num_outputs

    @property
    def is_serial(self) -> bool:
        """Whether points are evaluated one after the other."""
        return self._parallel is None and not self._is_batch

    def __call__(self, points: np.ndarray) -> Answers:
        """Log densities and gradients at the rows of `points`."""
        values, grads = np.full(len(points), np.nan), np.full_like(points, np.nan)
        if self._is_batch:
            answer, reason = self._ask(points)
            if not reason:
                values, grads, _ = answer
            return Answers(values, grads, [reason] * len(points))
        is_parallel = self._parallel is not None
        rows = self._in_parallel(points) if is_parallel else map(self._ask, points)
        reasons = []
        outputs = np.full((len(points), self._num_outputs), np.nan)
        for i, (answer, reason) in enumerate(rows):
            if not reason:
                values[i], grads[i], more = answer
                if more is not None:
                    outputs[i] = more
            reasons.append(reason)
        return Answers(values, grads, reasons, outputs if self._num_outputs else None)

    def _in_parallel(self, points: np.ndarray) -> Sequence[tuple[Any, str]]:
        """Answers in order; if the workers fail, the remaining points say so."""
        rows: list[tuple[Any, str]] = []

        def collect() -> None:
            for row in self._parallel.map(self._ask, list(points)):
                # The `map` of Dask and of some others returns futures.
                rows.append(row.result() if hasattr(row, "result") else row)

        _, obstacle = Guarded(collect)()  # a broken pool, a cluster that is gone
        missing = len(points) - len(rows)
        return rows + [(None, f"the workers failed: {obstacle}")] * missing
