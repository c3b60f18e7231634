"""Libraries that a front end needs and a user may not have."""

import importlib
from types import ModuleType


def load(module: str, needed_by: str, extra: str) -> ModuleType:
    """Import a module, or say in one line what to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{needed_by} needs {error.name}: pip install 'vhmc[{extra}]'"
        ) from error
