"""Would the tests notice? Each line of code broken here makes one of them fail.

A copy of the package is changed in one place, and tests of the default run are asked
about it in a process of its own, as they stand. Unchanged, the same tests pass.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = [
    pytest.mark.statistical,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]
ROOT = Path(__file__).parents[2]
JOINT, SAMPLERS = (
    "tests/statistical/test_joint.py",
    "tests/statistical/test_samplers.py",
)
RANKS = "tests/statistical/test_ranks.py"
FAILED, PASSED = 1, 0


class Mutation(NamedTuple):
    """A line of the package, what becomes of it, and tests that must notice."""

    file: str
    line: str
    broken: str
    tests: str
    chosen: str = ""


MUTATIONS = {
    "sign of the accept step": Mutation(
        "core/hmc.py",
        "drop = (before - after) / self.temperature",
        "drop = (after - before) / self.temperature",
        JOINT,
        "hmc and normal",
    ),
    "every proposal accepted": Mutation(
        "core/hmc.py",
        "is_accepted = uniforms[1:] < accept_prob",
        "is_accepted = uniforms[1:] < 2.0",
        JOINT,
        "hmc and normal",
    ),
    "no kinetic energy at the end": Mutation(
        "core/hmc.py",
        "after = end.energy + self.mass.kinetic(end.momentum)",
        "after = end.energy + self.mass.kinetic(momentum)",
        JOINT,
        "hmc and normal",
    ),
    "gradient kept from a refused proposal": Mutation(
        "core/hmc.py",
        "jnp.where(rows, new.grad, old.grad)",
        "new.grad",
        JOINT,
        "hmc and normal",
    ),
    "energy kept from a refused proposal": Mutation(
        "core/hmc.py",
        "jnp.where(chosen, new.energy, old.energy)",
        "new.energy",
        JOINT,
        "hmc and normal",
    ),
    "first half kick forgotten": Mutation(
        "core/hmc.py",
        "momentum = momentum - 0.5 * step_size * start.grad",
        "momentum = momentum + 0.0 * start.grad",
        JOINT,
        "hmc and normal",
    ),
    "length that depends on the state": Mutation(
        "core/hmc.py",
        "length = self._length(uniforms[0])",
        "length = self._length(uniforms[0]) + (state.theta[0, 0] > 0.5)",
        JOINT,
        "hmc and normal",
    ),
    "momenta of another mass": Mutation(
        "core/hmc.py",
        "momentum = self.mass.sample(key_momentum, num_chains, dim)",
        "momentum = jax.random.normal(key_momentum, (num_chains, dim))",
        JOINT,
        "hmc and logistic",
    ),
    "Jacobian with the wrong sign": Mutation(
        "targets/parameters.py",
        "jnp.sum(jnp.stack(log_jacobians))",
        "-jnp.sum(jnp.stack(log_jacobians))",
        JOINT,
        "hmc and normal",
    ),
    "Jacobian forgotten by from_jax": Mutation(
        "targets/from_jax.py",
        "dtype=float) + log_jacobian)",
        "dtype=float))",
        SAMPLERS,
        "HMC-skewed",
    ),
    "Jacobian forgotten by from_callable": Mutation(
        "targets/from_callable.py",
        "return free + jax.grad(log_jacobian)(theta)",
        "return free",
        "tests/models/test_from_callable.py",
    ),
    "weights of delayed acceptance upside down": Mutation(
        "runs/delayed_acceptance.py",
        "log_weight = learner.energies(theta) - answer.energy",
        "log_weight = answer.energy - learner.energies(theta)",
        JOINT,
        "delayed",
    ),
    "weights of delayed acceptance kept from a refused proposal": Mutation(
        "runs/delayed_acceptance.py",
        "np.where(is_moved, log_weight, state.log_weight)",
        "log_weight",
        JOINT,
        "delayed",
    ),
    "delayed acceptance without its weights": Mutation(
        "runs/delayed_acceptance.py",
        "np.exp(np.minimum(log_weight - state.log_weight, 0.0))",
        "np.exp(np.minimum(state.log_weight - answer.energy * 0 - log_weight, 0.0))",
        JOINT,
        "delayed",
    ),
    "volume of the coordinates forgotten": Mutation(
        "methods/learner.py",
        "return 0.5 * length**2 + network + guard + log_volumes",
        "return 0.5 * length**2 + network + guard",
        "tests/surrogate/test_trainer.py",
    ),
    "importance weights upside down": Mutation(
        "runs/check.py",
        "raw = learner.energies(draws) - energy",
        "raw = energy - learner.energies(draws)",
        "tests/sampler/test_correction.py",
    ),
    "temperature forgotten by the momentum": Mutation(
        "core/hmc.py",
        "jnp.sqrt(jnp.reshape(self.temperature, (-1, 1)))",
        "1.0",
        "tests/numerics/test_hmc.py",
        "temperature",
    ),
    "a call that nobody counts": Mutation(
        "targets/target.py",
        "self._counter.add(self.price * len(thetas))",
        "self._counter.add(len(thetas) - 1)",
        "tests/models/test_targets.py",
    ),
    "a round that is not written down": Mutation(
        "ledger/file.py",
        'self._file._run("ROLLBACK" if error else "COMMIT")',
        'self._file._run("ROLLBACK")',
        "tests/evaluation/test_ledger.py",
    ),
}


def outcome(folder: Path, tests: str, chosen: str) -> subprocess.CompletedProcess:
    """Run tests of the default run on the package in a folder."""
    arguments = [*tests.split(), "-x", "-q", "-n0", "-p", "no:cacheprovider"]
    arguments += ["-m", "not slow", "--tb=line"]
    if chosen:
        arguments += ["-k", chosen]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broken_line_is_noticed(name, tmp_path):
    file, line, broken, tests, chosen = MUTATIONS[name]
    shutil.copytree(ROOT / "src" / "vhmc", tmp_path / "vhmc")
    path = tmp_path / "vhmc" / file
    source = path.read_text()
    assert source.count(line) == 1, "the line has changed: break it anew"
    path.write_text(source.replace(line, broken))
    run = outcome(tmp_path, tests, chosen)
    assert run.returncode == FAILED, run.stdout[-2000:]
    assert "SyntaxError" not in run.stdout
    assert "NameError" not in run.stdout


@pytest.mark.parametrize(
    ("tests", "chosen"), sorted({mutation[3:] for mutation in MUTATIONS.values()})
)
def test_unbroken_the_same_tests_pass(tests, chosen):
    run = outcome(ROOT / "src", tests, chosen)
    assert run.returncode == PASSED, run.stdout[-2000:]
