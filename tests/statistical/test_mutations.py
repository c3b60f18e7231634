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
ACCEPT_STEP, ACQUISITION = "sampler/accept_step.py", "sampler/acquisition.py"
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
        "numerics/hmc.py",
        "drop = (before - after) / self.temperature",
        "drop = (after - before) / self.temperature",
        JOINT,
        "hmc and normal",
    ),
    "every proposal accepted": Mutation(
        "numerics/hmc.py",
        "is_accepted = uniforms[1:] < accept_prob",
        "is_accepted = uniforms[1:] < 2.0",
        JOINT,
        "hmc and normal",
    ),
    "no kinetic energy at the end": Mutation(
        "numerics/hmc.py",
        "after = end.energy + self.mass.kinetic(end.momentum)",
        "after = end.energy + self.mass.kinetic(momentum)",
        JOINT,
        "hmc and normal",
    ),
    "gradient kept from a refused proposal": Mutation(
        "numerics/hmc.py",
        "jnp.where(rows, new.grad, old.grad)",
        "new.grad",
        JOINT,
        "hmc and normal",
    ),
    "energy kept from a refused proposal": Mutation(
        "numerics/hmc.py",
        "jnp.where(chosen, new.energy, old.energy)",
        "new.energy",
        JOINT,
        "hmc and normal",
    ),
    "first half kick forgotten": Mutation(
        "numerics/hmc.py",
        "momentum = momentum - 0.5 * step_size * start.grad",
        "momentum = momentum + 0.0 * start.grad",
        JOINT,
        "hmc and normal",
    ),
    "length that depends on the state": Mutation(
        "numerics/hmc.py",
        "length = self._length(uniforms[0])",
        "length = self._length(uniforms[0]) + (state.theta[0, 0] > 0.5)",
        JOINT,
        "hmc and normal",
    ),
    "momenta of another mass": Mutation(
        "numerics/hmc.py",
        "momentum = self.mass.sample(key_momentum, num_chains, dim)",
        "momentum = jax.random.normal(key_momentum, (num_chains, dim))",
        JOINT,
        "hmc and logistic",
    ),
    "Jacobian with the wrong sign": Mutation(
        "models/parameters.py",
        "jnp.sum(jnp.stack(log_jacobians))",
        "-jnp.sum(jnp.stack(log_jacobians))",
        JOINT,
        "hmc and normal",
    ),
    "Jacobian forgotten by from_jax": Mutation(
        "models/from_jax.py",
        "dtype=float) + log_jacobian)",
        "dtype=float))",
        SAMPLERS,
        "HMC-skewed",
    ),
    "Jacobian forgotten by from_callable": Mutation(
        "models/from_callable.py",
        "return pulled + jax.grad(log_jacobian)(theta)",
        "return pulled",
        "tests/models/test_from_callable.py",
    ),
    "true energy in the accept step with the wrong sign": Mutation(
        ACCEPT_STEP,
        "log_ratio = states.energy - answer.energy + proposal.log_correction",
        "log_ratio = answer.energy - states.energy + proposal.log_correction",
        JOINT,
        "accept and normal",
    ),
    "no true energy in the accept step": Mutation(
        ACCEPT_STEP,
        "log_ratio = states.energy - answer.energy + proposal.log_correction",
        "log_ratio = 0.0 * answer.energy + proposal.log_correction",
        JOINT,
        "accept and normal",
    ),
    "every proposal of a round accepted": Mutation(
        ACCEPT_STEP,
        "is_moved = rng.uniform(size=len(accept_prob)) < accept_prob",
        "is_moved = rng.uniform(size=len(accept_prob)) < (accept_prob > 0)",
        JOINT,
        "accept and normal",
    ),
    "true energy kept from a rejected proposal": Mutation(
        ACCEPT_STEP,
        "np.where(is_moved, answer.energy, states.energy)",
        "answer.energy",
        JOINT,
        "accept and normal",
    ),
    "true gradient kept from a rejected proposal": Mutation(
        ACCEPT_STEP,
        "np.where(is_moved[:, None], answer.grad, states.grad)",
        "answer.grad",
        "tests/sampler/test_acquisition.py",
    ),
    "kinetic energy forgotten by single trajectories": Mutation(
        ACQUISITION,
        "np.asarray(moves.trajectory.kinetic_drop) + (log_det - moves.log_det)",
        "0.0 * np.asarray(moves.trajectory.kinetic_drop) + (log_det - moves.log_det)",
        "tests/sampler/test_acquisition.py",
    ),
    "determinant forgotten by single trajectories": Mutation(
        ACQUISITION,
        "np.asarray(moves.trajectory.kinetic_drop) + (log_det - moves.log_det)",
        "np.asarray(moves.trajectory.kinetic_drop) + 0.0 * log_det",
        "tests/sampler/test_acquisition.py",
    ),
    "correction of delayed acceptance upside down": Mutation(
        ACQUISITION,
        "return surrogate.energies(theta) - surrogate.energies(states.theta)",
        "return surrogate.energies(states.theta) - surrogate.energies(theta)",
        JOINT,
        "accept and normal",
    ),
    "delayed acceptance without its correction": Mutation(
        ACQUISITION,
        "return surrogate.energies(theta) - surrogate.energies(states.theta)",
        "return 0.0 * surrogate.energies(theta)",
        JOINT,
        "accept and normal",
    ),
    "tempered proposals accepted": Mutation(
        ACQUISITION,
        "return np.full(len(theta), -np.inf)",
        "return surrogate.energies(theta) - surrogate.energies(states.theta)",
        "tests/sampler/test_acquisition.py",
    ),
    "determinant of the map forgotten": Mutation(
        "surrogate/surrogate.py",
        "return 0.5 * length**2 + residual + self.guard.energy(length) + log_det",
        "return 0.5 * length**2 + residual + self.guard.energy(length)",
        JOINT,
        "accept and logistic",
    ),
    "network forgotten by the host": Mutation(
        "surrogate/network.py",
        "return self.nodes.outputs(x) @ self.weights",
        "return 0.0 * self.nodes.outputs(x) @ self.weights",
        JOINT,
        "accept and logistic",
    ),
    "importance weights upside down": Mutation(
        "sampler/check.py",
        "raw = surrogate.energies(draws) - energy",
        "raw = energy - surrogate.energies(draws)",
        "tests/sampler/test_correction.py",
    ),
    "a statistic with a default": Mutation(
        "sampler/verdict.py",
        "    pareto_k: float\n",
        "    pareto_k: float = 0.0\n",
        "tests/sampler/test_verdict.py",
    ),
    "a value that is not a number is good": Mutation(
        "sampler/verdict.py",
        "if not self.sign * value <= self.sign * self.bad:",
        "if self.sign * value > self.sign * self.bad:",
        "tests/sampler/test_verdict.py",
    ),
    "temperature forgotten by the momentum": Mutation(
        "numerics/hmc.py",
        "jnp.sqrt(jnp.reshape(self.temperature, (-1, 1)))",
        "1.0",
        "tests/numerics/test_hmc.py",
        "temperature",
    ),
    "an evaluation that is not counted": Mutation(
        "evaluation/target.py",
        "self._counter.add(self.price * len(thetas))",
        "self._counter.add(len(thetas) - 1)",
        "tests/models/test_targets.py",
    ),
    "a round that is not written down": Mutation(
        "evaluation/ledger.py",
        'self._run("COMMIT")',
        'self._run("ROLLBACK")',
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
