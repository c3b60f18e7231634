"""ArviZ, imported late and quietly."""

import warnings
from types import ModuleType


def load() -> ModuleType:
    """Import ArviZ: it takes seconds, and version 0.23 announces its successor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing a major")
        import arviz
    return arviz
