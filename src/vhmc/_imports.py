"""Libraries that are imported late: they take seconds, or a user may not have them."""

import importlib
import warnings
from types import ModuleType


def load_arviz() -> ModuleType:
    """Import ArviZ without the announcement of its successor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing a major")
        import arviz
    return arviz


def load_extra(module: str, needed_by: str, extra: str) -> ModuleType:
    """Import a module, or say in one line what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{needed_by} needs {error.name}: pip install 'vhmc[{extra}]'"
        ) from error
