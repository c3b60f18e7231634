"""Stan programs as targets, with Stan's own transforms."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Target
from vhmc.models.caller import Caller
from vhmc.models.host import HostTarget
from vhmc.models.stan import bridge
from vhmc.models.stan.build import build
from vhmc.models.stan.resident import Resident, to_json

LOG_LIKELIHOOD = "log_lik"
"""Generated quantity that holds log likelihoods of single data, by custom."""


def from_stan(
    code_or_file: str | Path,
    data: dict[str, Any] | str | Path | None = None,
    *,
    init: dict[str, Any] | None = None,
    parallel: Any = None,
    timeout: float | None = None,
) -> Target:
    """Target of a Stan program; draws come back with all that the program computes.

    The program is compiled, once, by BridgeStan if it is here with its sources, else
    with what httpstan's wheel carries; `target.route` says which. The log likelihood
    for ArviZ is the generated quantity `log_lik`, if there is one.

    code_or_file: a program, or the path of one that ends in `.stan`.
    data: a dict of numbers and arrays, or the path of a JSON file.
    init: values of the parameters to start from; zero on the free space unless given.
    parallel: as in `from_callable`; threads will do, as Stan runs beside Python.
    timeout: as in `from_callable`.
    """
    code = _program(code_or_file)
    model: Resident | bridge.Bridge
    if bridge.is_there():
        model, route = bridge.Bridge(code, _data(data)), "compiled by BridgeStan"
    else:
        model = Resident(build(code), _data(data))
        route = "compiled by Stan of httpstan"
    if not model.dim:
        raise ValueError("the Stan program has no parameters")
    start = np.zeros(model.dim) if init is None else model.unconstrain(init)
    caller = Caller(model.value_and_grad, parallel=parallel, timeout=timeout)
    space = StanSpace(model, start)
    return HostTarget(caller, space, route, is_serial=caller.is_serial)


class StanSpace(Space):
    """Parameters of a program in their supports, by Stan's transforms."""

    def __init__(self, model: Resident | bridge.Bridge, start: np.ndarray):
        self._model, self.start = model, start
        self.shapes = model.layout(False)
        self._all_shapes = model.layout(True)
        self.names = list(self.shapes)
        owners = [name.split(".")[0] for name in model.free_names()]
        self.free_sizes = [owners.count(name) for name in self.names]
        self.dims, self.coords = {}, {}

    def label(self, index: int) -> str:
        """Parameter and place, from zero on as ArviZ's tables have it."""
        name, *places = self._model.free_names()[index].split(".")
        inside = ", ".join(str(int(place) - 1) for place in places)
        return f"{name}[{inside}]" if places else name

    def constrain(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters in their supports."""
        return self._write(thetas, False)

    def expand(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters, transformed parameters, generated quantities."""
        return self._write(thetas, True)

    def log_likelihood(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """The generated quantity of that name."""
        if LOG_LIKELIHOOD not in self._all_shapes:
            return {}
        return {LOG_LIKELIHOOD: self.expand(thetas)[LOG_LIKELIHOOD]}

    def flatten(self, init: Any) -> np.ndarray:
        """Values of the parameters as a free vector."""
        return self._model.unconstrain(init)

    def _write(self, thetas: np.ndarray, is_whole: bool) -> dict[str, np.ndarray]:
        rows = self._model.write(thetas.reshape(-1, self.dim), is_whole, seed=0)
        leading, begin = thetas.shape[:-1], 0
        values = {}
        for name, shape in (self._all_shapes if is_whole else self.shapes).items():
            end = begin + int(np.prod(shape))
            # Stan's first index is the fastest.
            part = rows[:, begin:end].reshape(-1, *shape[::-1])
            part = part.transpose(0, *range(part.ndim - 1, 0, -1))
            values[name] = part.reshape(*leading, *shape)
            begin = end
        return values


def _program(code_or_file: str | Path) -> str:
    if isinstance(code_or_file, Path) or code_or_file.strip().endswith(".stan"):
        return Path(code_or_file).read_text()
    if "{" not in code_or_file:
        raise ValueError(
            "the first argument must be a Stan program or the path of one that ends in "
            f".stan, got {code_or_file!r}"
        )
    return code_or_file


def _data(data: dict[str, Any] | str | Path | None) -> str:
    if data is None:
        return "{}"
    if isinstance(data, dict):
        return to_json(data)
    text = Path(data).read_text()
    json.loads(text)  # a broken file is the user's to know before Stan's
    return text
