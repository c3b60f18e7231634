"""Run-time shape checks, the seed, and the standard-error rule for all tests."""

import os

import jaxtyping
import pytest
from jaxtyping import install_import_hook

from tests import shape_checks

# Before anything imports the package: every annotated shape is checked at each call.
install_import_hook("vhmc", f"{shape_checks.__name__}.checked")


@pytest.fixture(scope="session")
def seed() -> int:
    """Zero unless the environment says otherwise; a release runs many."""
    return int(os.environ.get("VHMC_TEST_SEED", "0"))


@pytest.fixture
def no_shape_checks():
    """As a user has it: the run-time checks of the tests would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
