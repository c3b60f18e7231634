"""Load a model from a file for `vhmc sample`."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from vhmc.evaluation.target import Target

OTHERS = (
    "for a NumPyro model, or a function that returns a gradient, define a target in "
    "the file, target = vhmc.from_numpyro(...) or vhmc.from_callable(...), and give "
    "FILE.py:target"
)


def load_model(model: str, init: Path | None, data: Path | None) -> Target:
    """Target of `FILE.py:NAME` or `FILE.stan`.

    NAME is a target, a PyMC model, or a log density that JAX can trace, for which the
    file may also define `init` and `constraints`.
    """
    path, _, name = model.rpartition(":") if ".py:" in model else (model, "", "")
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {path}")
    values = None if init is None else _json(init)
    if file.suffix == ".stan":
        from vhmc.models.stan.from_stan import from_stan

        return from_stan(file, None if data is None else _json(data), init=values)
    if file.suffix != ".py" or not name:
        raise ValueError(
            f"a model is FILE.py:NAME or FILE.stan, got {model}: NAME is the function "
            "or the model in the file"
        )
    if data is not None:
        raise ValueError("--data is for Stan; a Python file reads its own")
    return _target(_module(file), name, values)


def _target(module: ModuleType, name: str, init: Any) -> Target:
    if not hasattr(module, name):
        known = [n for n, v in vars(module).items() if callable(v) and n[0] != "_"]
        raise ValueError(
            f"{module.__file__} has no {name}; it has {', '.join(known) or 'nothing'}"
        )
    found = getattr(module, name)
    is_pymc = type(found).__module__.split(".")[0] == "pymc"
    if init is not None and (isinstance(found, Target) or is_pymc):
        raise ValueError(
            f"--init is for log densities and Stan: {name} has its own initial values"
        )
    if isinstance(found, Target):
        return found
    if is_pymc:
        from vhmc.models.from_pymc import from_pymc

        return from_pymc(found)
    if not callable(found):
        raise ValueError(
            f"{name} in {module.__file__} is neither a target, nor a PyMC model, nor a "
            "log density"
        )
    from vhmc.models.from_jax import from_jax

    init = getattr(module, "init", None) if init is None else init
    if init is None:
        raise ValueError(
            f"give initial values with --init, or define init in {module.__file__}; "
            + OTHERS
        )
    try:
        return from_jax(found, init, getattr(module, "constraints", None))
    except TypeError as error:  # the function has other arguments or results
        raise ValueError(f"{name} is no log density ({error}); {OTHERS}") from error


def _module(file: Path) -> ModuleType:
    """The file as a module; it can import modules in its folder."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[spec.name] = module  # workers unpickle its functions by module name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise anything
        raise ValueError(
            f"{file} does not run: {type(error).__name__}: {error}"
        ) from error
    return module


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
