"""The command, as its user meets it: in a process of its own."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import vhmc


def call(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess:
    command = Path(sys.executable).with_name("vhmc")
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        [command, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=280,
        check=False,
    )


def test_version():
    done = call("--version")
    assert done.returncode == 0
    assert done.stdout.strip() == vhmc.__version__


def test_help_names_the_experiments():
    assert "reproduce" in call("--help").stdout
    shown = call("reproduce", "--help").stdout
    assert all(
        name in shown for name in ("beta-binomial", "probit", "logistic", "ica", "all")
    )


def test_a_small_experiment_from_end_to_end(tmp_path):
    done = call(
        *("reproduce", "beta-binomial", "--nodes", "10,40", "--repetitions", "1"),
        *("--train", "200"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "The surrogate becomes more accurate" in done.stdout
    results = tmp_path / "vhmc-results" / "beta-binomial"
    assert (results / "contours.png").stat().st_size > 10_000
    assert (results / "run.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ridge", "0"], "ridge must be positive, got 0.0"),
        (["--nodes", "0"], "the number of nodes must be at least 1, got 0"),
        (["--nodes", "ten"], "--nodes takes numbers with commas between them, got ten"),
        (["--start", "2,1000"], "start of m must be strictly between 0 and 1, got 2.0"),
        (["--start", "0.1"], "--start takes 2 numbers, got 0.1"),
        (["--train", "0"], "num_train must be at least 1, got 0"),
        (["--out", __file__], "File exists"),
    ],
)
def test_bad_input_gets_one_line_and_a_non_zero_exit(arguments, message, tmp_path):
    done = call("reproduce", "beta-binomial", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unknown_experiment_is_refused():
    done = call("reproduce", "alchemy")
    assert done.returncode == 2
    assert "alchemy" in done.stderr


def test_a_ledger_is_shown(tmp_path):
    target = vhmc.from_callable(lambda t: (-0.5 * t @ t, -t), 2, names=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(
            target, 60, draws=20, chains=2, ledger=tmp_path / "run.vhmc"
        )
    done = call("ledger", "show", "run.vhmc", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "parameters a, b; dimension 2" in done.stdout
    assert "budget 60 calls; finished" in done.stdout
    for phase, calls in posterior.costs.items():
        (line,) = (line for line in done.stdout.splitlines() if f" {phase} " in line)
        assert f" {calls} " in line
    missing = call("ledger", "show", "no.vhmc", folder=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.strip() == "vhmc: there is no ledger no.vhmc"
