"""Stan programs by BridgeStan, for users who have it installed with its sources."""

import contextlib
import hashlib
import importlib.util
import io

import numpy as np
import pooch


def is_installed() -> bool:
    """Whether BridgeStan and its sources are installed; downloads nothing."""
    if importlib.util.find_spec("bridgestan") is None:
        return False
    from bridgestan.compile import get_bridgestan_path, verify_bridgestan_path

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what is missing
            verify_bridgestan_path(get_bridgestan_path(download=False))
    except ValueError:
        return False
    return True


class BridgeStanModel:
    """A Stan model compiled by BridgeStan; several threads may call it at once.

    code: the program.
    data: the program's data as JSON.
    """

    def __init__(self, code: str, data: str):
        import bridgestan

        digest = hashlib.sha256(code.encode()).hexdigest()[:20]
        program = pooch.os_cache("vhmc") / "bridgestan" / digest / "program.stan"
        program.parent.mkdir(parents=True, exist_ok=True)
        # Written once, as `make` compiles again if the file is newer.
        if not program.exists():
            program.write_text(code)
        try:
            self._model = bridgestan.StanModel(
                str(program), data, make_args=["STAN_THREADS=true"], warn=False
            )
        except RuntimeError as error:
            message = f"Stan refuses the program or its data: {error}"
            raise ValueError(message) from error
        self.dim = self._model.param_unc_num()

    def unconstrained_names(self) -> list[str]:
        """Names of the entries of the unconstrained vector."""
        return self._model.param_unc_names()

    def layout(self, is_whole: bool) -> dict[str, tuple[int, ...]]:
        """Shapes by name of the parameters, or of every quantity of the program."""
        names = self._model.param_names(include_tp=is_whole, include_gq=is_whole)
        shapes: dict[str, tuple[int, ...]] = {}
        for name in names:
            root, *places = name.replace(":", ".").split(".")
            shapes[root] = tuple(int(place) for place in places)
        return shapes

    def value_and_grad(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density with all constants and Jacobians, and its gradient."""
        value, grad = self._model.log_density_gradient(theta, propto=False)
        return value, np.asarray(grad)

    def write(self, thetas: np.ndarray, is_whole: bool, seed: int) -> np.ndarray:
        """Quantities of `layout`, flat, one row for each row of `thetas`."""
        rng = self._model.new_rng(seed) if is_whole else None
        rows = []
        for theta in thetas:
            try:
                rows.append(
                    self._model.param_constrain(
                        theta, include_tp=is_whole, include_gq=is_whole, rng=rng
                    )
                )
            except RuntimeError:  # raised by the program at this draw
                width = self._model.param_num(include_tp=is_whole, include_gq=is_whole)
                rows.append(np.full(width, np.nan))
        return np.array(rows)

    def unconstrain(self, values: str) -> np.ndarray:
        """Unconstrained vector of parameter values, which are given as JSON."""
        try:
            return np.asarray(self._model.param_unconstrain_json(values))
        except RuntimeError as error:
            raise ValueError(f"Stan refuses the start: {error}") from error
