"""Versions that numbers depend on."""

import contextlib
import importlib.metadata
import platform

VERSIONED = (
    "vhmc",
    "jax",
    "jaxlib",
    "equinox",
    "numpy",
    "scipy",
    "matplotlib",
    "arviz",
    "blackjax",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on, if installed."""
    found = {"python": platform.python_version()}
    for name in VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
