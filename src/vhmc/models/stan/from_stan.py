"""Turn a Stan program into a target, with Stan's own transforms."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.evaluation.space import Space
from vhmc.evaluation.target import Target
from vhmc.models.caller import Caller
from vhmc.models.host import HostTarget
from vhmc.models.stan.bridgestan_model import BridgeStanModel, is_installed
from vhmc.models.stan.httpstan_model import HttpstanModel

LOG_LIKELIHOOD = "log_lik"
"""Generated quantity that holds pointwise log likelihoods, by convention."""


def from_stan(
    code_or_file: str | Path,
    data: dict[str, Any] | str | Path | None = None,
    *,
    init: dict[str, Any] | None = None,
    log_likelihood: str = LOG_LIKELIHOOD,
    parallel: Any = None,
    timeout: float | None = None,
) -> Target:
    """Target of a Stan program.

    The program is compiled once, by BridgeStan if it is installed with its sources,
    else with httpstan's wheel; `target.route` says which. Draws have the parameters,
    transformed parameters and generated quantities.

    code_or_file: a program, or the path of one that ends in `.stan`.
    data: a dict of numbers and arrays, or the path of a JSON file.
    init: initial values of the parameters; by default zero on the unconstrained space.
    log_likelihood: generated quantity that is the pointwise log likelihood, as ArviZ's
        `loo` and `compare` need it, if there is one.
    parallel: as in `from_callable`; threads suffice, as Stan runs without the GIL.
    timeout: as in `from_callable`.
    """
    code = _program(code_or_file)
    model: HttpstanModel | BridgeStanModel
    if is_installed():
        model, route = BridgeStanModel(code, _data(data)), "compiled by BridgeStan"
    else:
        model = HttpstanModel(code, _data(data))
        route = "compiled by Stan of httpstan"
    if not model.dim:
        raise ValueError("the Stan program has no parameters")
    start = np.zeros(model.dim) if init is None else model.unconstrain(to_json(init))
    caller = Caller(model.value_and_grad, parallel=parallel, timeout=timeout)
    space = StanSpace(model, start, log_likelihood)
    return HostTarget(caller, space, route, is_serial=caller.is_serial)


class StanSpace(Space):
    """Parameters of a program, with Stan's transforms to their supports."""

    def __init__(
        self,
        model: HttpstanModel | BridgeStanModel,
        start: np.ndarray,
        log_likelihood: str = LOG_LIKELIHOOD,
    ):
        self._model, self.start = model, start
        self.shapes = model.layout(False)
        self._all_shapes = model.layout(True)
        self._log_likelihood = log_likelihood
        if log_likelihood not in (*self._all_shapes, LOG_LIKELIHOOD):
            raise ValueError(
                f"the Stan program has no quantity {log_likelihood}, only "
                f"{', '.join(self._all_shapes)}"
            )
        self.names = list(self.shapes)
        owners = [name.split(".")[0] for name in model.unconstrained_names()]
        self.unconstrained_sizes = [owners.count(name) for name in self.names]
        self.dims, self.coords = {}, {}

    def label(self, index: int) -> str:
        """Name with indices, which count from zero as in ArviZ's tables."""
        name, *places = self._model.unconstrained_names()[index].split(".")
        inside = ", ".join(str(int(place) - 1) for place in places)
        return f"{name}[{inside}]" if places else name

    def constrain(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        return self._write(thetas, False)

    def expand(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        return self._write(thetas, True)

    def log_likelihood(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        name = self._log_likelihood
        return {name: self.expand(thetas)[name]} if name in self._all_shapes else {}

    def flatten(self, init: Any) -> np.ndarray:
        return self._model.unconstrain(to_json(init))

    def _write(self, thetas: np.ndarray, is_whole: bool) -> dict[str, np.ndarray]:
        def write(thetas: np.ndarray) -> dict[str, np.ndarray]:
            rows = self._model.write(thetas, is_whole, seed=0)
            values, begin = {}, 0
            for name, shape in (self._all_shapes if is_whole else self.shapes).items():
                end = begin + int(np.prod(shape))
                # Stan writes arrays in column-major order.
                part = rows[:, begin:end].reshape(-1, *shape[::-1])
                values[name] = part.transpose(0, *range(part.ndim - 1, 0, -1))
                begin = end
            return values

        return self.map_rows(write, thetas)


def to_json(values: dict[str, Any]) -> str:
    """Numbers and arrays by name, in the JSON that Stan reads."""
    return json.dumps(values, default=_listed)


def _listed(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype == bool:
        array = array.astype(int)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"Stan takes numbers and arrays of them, got {value!r}")
    return array.tolist()


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
    json.loads(text)  # a broken file is reported before the program is compiled
    return text
