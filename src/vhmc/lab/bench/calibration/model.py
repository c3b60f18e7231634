"""Models of the calibration problems, and the quantities reported of them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array

from vhmc.lab.bench.problem import Draws
from vhmc.numerics.constraints import AbstractConstraint


class Model(NamedTuple):
    """A log density with its parameters, and what is reported of them.

    report: maps named draws to named quantities, both of any leading shape.
    is_gaussian: whether the posterior is close to a Gaussian when unconstrained.
    """

    log_density: Callable[[Any], Array]
    init: Any
    constraints: Mapping[str, AbstractConstraint] = {}
    report: Callable[[Draws], Draws] = dict
    is_gaussian: bool = False


def quantities(model: Model, draws: Draws) -> np.ndarray:
    """What the model reports, along a last axis."""
    name, shape = next((k, v.shape) for k, v in _start(model).items())
    values = np.asarray(draws[name])
    leading = values.shape[: values.ndim - len(shape)]
    parts = model.report(draws).values()
    return np.concatenate([np.reshape(part, (*leading, -1)) for part in parts], axis=-1)


def quantity_names(model: Model) -> tuple[str, ...]:
    """Names in the order of `quantities`, entries of an array counted from one."""
    names: list[str] = []
    for name, value in model.report(_start(model)).items():
        entries = [f"{name}[{i + 1}]" for i in range(np.size(value))]
        names += entries if np.ndim(value) else [name]
    return tuple(names)


def _start(model: Model) -> Draws:
    init = model.init if isinstance(model.init, dict) else {"theta": model.init}
    return {name: np.asarray(value, dtype=float) for name, value in init.items()}


def logs(*names: str) -> Callable[[Draws], Draws]:
    """Report these parameters on a log scale, since their tails are long."""

    def report(draws):
        return {
            f"log_{name}" if name in names else name: (
                np.log(value) if name in names else value
            )
            for name, value in draws.items()
        }

    return report
