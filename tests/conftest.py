"""Run-time shape checks, the seed, and the standard-error rule for all tests."""

import os
import shutil
import tempfile
from pathlib import Path

import jaxtyping
import pytest
from jaxtyping import install_import_hook

from tests import shape_checks

# Workers and the commands that they start share what is compiled, for this run only.
OWN_CACHE = "JAX_COMPILATION_CACHE_DIR" not in os.environ
if OWN_CACHE:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="vhmc-tests-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"

# Programs of the tests run for moments: to optimise them takes longer than they do.
FLAGS = os.environ.get("XLA_FLAGS", "")
if "optimization_level" not in FLAGS:
    os.environ["XLA_FLAGS"] = f"{FLAGS} --xla_backend_optimization_level=0".strip()

# Models of the tests are asked a few hundred times: they need not be fast.
os.environ.setdefault("CXXFLAGS", "-O0")

# Data that lie beside the repository, if they do; commands that tests start see them.
SHARED = Path(__file__).resolve().parents[2] / "shared"
for variable, name in (("VHMC_DATA", "data"), ("VHMC_POSTERIORS", "posteriors")):
    if (SHARED / name).is_dir():
        os.environ.setdefault(variable, str(SHARED / name))

# Before anything imports the package: every annotated shape is checked at each call.
install_import_hook("vhmc", f"{shape_checks.__name__}.checked")


def pytest_unconfigure():
    """Leave nothing behind; workers found the folder made, and leave it."""
    if OWN_CACHE:
        shutil.rmtree(os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)


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
