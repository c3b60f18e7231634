"""The target of whatever a user calls a model: of PyMC, NumPyro, Stan, or made here."""

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from vhmc._arguments import shown
from vhmc.evaluation.target import Target
from vhmc.models.from_numpyro import from_numpyro
from vhmc.models.from_pymc import from_pymc
from vhmc.models.stan.from_stan import from_stan

Model: TypeAlias = Target | Callable[..., Any] | str | Path | Any | None
"""A target, a PyMC model, a NumPyro model with its arguments bound, or the path of a
Stan program; none for the PyMC model of the surrounding `with` block."""
Data: TypeAlias = dict[str, Any] | str | Path | None
"""Of a Stan program: a dict, or the path of a JSON file."""
FRONT_ENDS = (
    "a PyMC model, a NumPyro model with its arguments bound, the path of a Stan "
    "program, or a target, as from_jax, from_callable, from_forward, from_rows and "
    "from_umbridge make one"
)


def model_target(model: Model, data: Data = None) -> Target:
    """The target of a model, made by the front end that it calls for.

    model: in one of the forms that `Model` lists.
    data: of a Stan program.
    """
    path = Path(model) if isinstance(model, str | os.PathLike) else None
    if data is not None and path is None:
        raise ValueError(f"data is for a Stan program, and model is {shown(model)}")
    if isinstance(model, Target):
        return model
    if path is not None:
        if path.suffix != ".stan":
            raise ValueError(
                f"the path of a model must end in .stan, got {shown(model)}"
            )
        return from_stan(path, data)
    if _is_of(model, "pymc", "Model") or (model is None and _has_context()):
        return from_pymc(model)
    if callable(model) and "numpyro" in sys.modules:
        if missing := _missing_arguments(model):
            raise TypeError(
                f"the model needs {', '.join(missing)}: bind the arguments of a "
                "NumPyro model, as vhmc.from_numpyro(model, ...) does; a log density "
                "is for vhmc.from_jax or vhmc.from_callable"
            )
        return from_numpyro(model)
    raise TypeError(f"the model must be {FRONT_ENDS}; got {shown(model)}")


def _is_of(model: Any, package: str, kind: str) -> bool:
    """Whether it is an instance of a class of a package, which is not imported here."""
    module = sys.modules.get(package)
    return module is not None and isinstance(model, getattr(module, kind))


def _has_context() -> bool:
    """Whether a `with` block of PyMC surrounds the call."""
    pymc = sys.modules.get("pymc")
    try:
        return pymc is not None and pymc.modelcontext(None) is not None
    except TypeError:
        return False


def _missing_arguments(model: Callable[..., Any]) -> list[str]:
    """Arguments without a default that a call would lack."""
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):
        return []
    empty = inspect.Parameter.empty
    named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return [
        one.name
        for one in parameters
        if one.default is empty
        and one.kind in (*named, inspect.Parameter.POSITIONAL_ONLY)
    ]
