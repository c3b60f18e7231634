"""The command `vhmc`, in a process of its own or, where that suffices, in this one.

A new process takes seconds to import JAX; bad input is tested in this one.
"""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import vhmc
from vhmc import cli


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


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Run the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # models beside it are found
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda *arguments: CliRunner().invoke(cli.app, list(arguments))


def test_version():
    done = call("--version")
    assert done.returncode == 0
    assert done.stdout.strip() == vhmc.__version__


def test_help_names_the_experiments(here):
    assert "reproduce" in here("--help").stdout
    shown = here("reproduce", "--help").stdout
    first_words = {line.split()[0] for line in shown.splitlines() if line.strip()}
    assert {"beta-binomial", "probit", "logistic", "ica", "all"} <= first_words


@pytest.mark.slow
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
        (["--out", __file__], "is a file: --out names a folder"),
    ],
)
def test_bad_input_gets_one_line_and_leaves_nothing(arguments, message, here, tmp_path):
    done = here("reproduce", "beta-binomial", *arguments)
    assert done.exit_code == 2
    assert list(tmp_path.iterdir()) == []
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_unknown_experiment_is_refused(here):
    done = here("reproduce", "alchemy")
    assert done.exit_code == 2
    assert "alchemy" in done.stderr


def test_a_ledger_is_shown(tmp_path, here):
    target = vhmc.from_callable(lambda t: (-0.5 * t @ t, -t), 2, names=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(
            target, 60, draws=20, chains=2, ledger=tmp_path / "run.vhmc"
        )
    done = here("ledger", "show", "run.vhmc")
    assert done.exit_code == 0, done.stderr
    assert "parameters a, b; dimension 2" in done.stdout
    assert "budget 60 evaluations; finished" in done.stdout
    rows = [re.split("[|│]", line) for line in done.stdout.splitlines()]
    table = {row[1].strip(): [cell.strip() for cell in row] for row in rows if row[1:]}
    for phase, number in posterior.costs.items():
        assert table[phase][4] == str(number)
    missing = here("ledger", "show", "no.vhmc")
    assert missing.exit_code == 2
    assert missing.stderr.strip() == "vhmc: there is no ledger no.vhmc"


MODEL = """
import math

import jax.numpy as jnp
import numpy as np
import vhmc

y = np.array([2.1, 1.9, 3.0, 2.4, 2.8, 1.7])
constraints = {"scale": vhmc.positive}


def log_density(p):
    standardised = (y - p["mean"]) / p["scale"]
    return -0.5 * jnp.sum(standardised**2) - (len(y) + 1) * jnp.log(p["scale"])


def fails(p):
    raise KeyError("mean")


def branches(p):
    return -p["mean"] if p["scale"] > 1 else p["mean"]


def powers(p):
    return math.pow(p["mean"], 2)


def argless():
    return 0.0


target = vhmc.from_jax(lambda x: -0.5 * x @ x, np.zeros(2))
broken = vhmc.from_callable(lambda x: (1 / 0, x), 2)
"""


@pytest.fixture
def model_folder(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "init.json").write_text('{"mean": 0.0, "scale": 1.0}')
    (tmp_path / "bad.json").write_text('{"mean": ')
    return tmp_path


def test_a_posterior_without_python(model_folder, here):
    command = "sample", "model.py:log_density", "--init", "init.json", "--seed", "1"
    more = "--budget", "200", "--draws", "50", "--out", "run"
    done = call(*command, *more, folder=model_folder)
    assert done.returncode in (0, 3), done.stderr  # a small budget may end badly
    assert ("verdict: bad" in done.stdout) == (done.returncode == 3)
    assert "verdict: " in done.stdout and "run/report.html" in done.stdout
    assert "vhmc: training: " in done.stderr
    out = model_folder / "run"
    before = done.returncode
    left = {"report.html", "summary.csv", "draws.csv", "run.npz", "ledger.vhmc"}
    assert left <= {path.name for path in out.iterdir()}
    assert len((out / "draws.csv").read_text().splitlines()) == 401
    first = (out / "draws.csv").read_text()

    done = here(*command, *more)
    assert done.exit_code == 2
    assert done.stderr.startswith(
        "vhmc: run has a run already: continue it with --resume"
    )
    assert done.stderr.count("\n") == 1

    done = call(*command, *more, "--resume", "--no-progress", folder=model_folder)
    assert done.returncode == before and "Traceback" not in done.stderr
    assert (out / "draws.csv").read_text() == first

    (out / "report.html").unlink()
    assert here("report", "run").exit_code == 0
    text = (out / "report.html").read_text()
    assert "<strong>" in text
    assert "vhmc sample model.py:log_density --init init.json --seed 1" in text

    whole = (out / "run.npz").read_bytes()
    (out / "run.npz").write_bytes(whole[:2000] + bytes(200) + whole[2200:])
    done = here("report", "run")
    assert done.exit_code == 2
    assert "run.npz is damaged: make it again" in " ".join(done.stderr.split())
    (out / "run.npz").unlink()
    done = here("report", "run")
    assert done.exit_code == 2 and "has not ended" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.py:nothing"], "has no nothing; it has log_density, fails"),
        (["model.py:log_density"], "give initial values with --init, or define init"),
        (["model.py:y"], "is neither a target, nor a PyMC model, nor a log density"),
        (["model.py"], "a model is FILE.py:NAME or FILE.stan, got model.py"),
        (["nowhere.stan"], "there is no file nowhere.stan"),
        (["model.py:target", "--data", "init.json"], "--data is for Stan"),
        (["model.py:log_density", "--init", "bad.json"], "cannot be read as JSON"),
        (["model.py:fails", "--init", "init.json"], "KeyError: 'mean'"),
        (["model.py:target", "--budget", "3"], "budget must be at least 20"),
        (["model.py:target", "--correction", "more"], "correction must be one of"),
        (["model.py:target", "--resume"], "vhmc-run has no run to continue"),
        (["model.py:target", "--init", "init.json"], "--init is for log densities"),
        (["model.py:branches", "--init", "init.json"], "jnp.where for `if`"),
        (["model.py:powers", "--init", "init.json"], "use jax.numpy"),
        (["model.py:argless", "--init", "init.json"], "define a target in the file"),
    ],
)
def test_bad_models_get_one_line_and_leave_nothing(
    model_folder, arguments, message, here
):
    done = here("sample", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (model_folder / "vhmc-run").exists()


def test_a_failing_model_gets_one_line_and_with_debug_a_traceback(model_folder):
    done = call("sample", "model.py:broken", "--no-progress", folder=model_folder)
    assert done.returncode == 2  # no answer at the start: bad input
    assert done.stderr.count("\n") == 1 and "ZeroDivisionError" in done.stderr
    more = "--debug", "--out", "other"
    done = call("sample", "model.py:nothing", *more, folder=model_folder)
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_something_that_is_no_run_has_no_report(model_folder, here):
    for name, message in (
        ("nowhere", "there is no run at nowhere"),
        ("init.json", "init.json is not a run that vhmc saved"),
    ):
        done = here("report", name)
        assert done.exit_code == 2 and message in done.stderr


def test_the_demo(tmp_path):
    done = call("demo", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "verdict: good" in done.stdout
    text = (tmp_path / "vhmc-demo" / "report.html").read_text()
    assert "<strong>good</strong>" in text


def test_a_demo_with_too_small_a_budget_gets_a_line(tmp_path, here):
    done = here("demo", "--budget", "5")
    assert done.exit_code == 2
    assert done.stderr.endswith("budget must be at least 20 evaluations, got 5\n")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "taken").touch()
    done = here("demo", "--out", "taken")
    assert done.exit_code == 2
    assert "File exists" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command",
    ["demo", "sample", "report", "ledger show", "bench tall", "reproduce probit"],
)
def test_help_has_an_example(command, here):
    shown = here(*command.split(), "--help").stdout
    assert f"vhmc {command} " in shown.split("\n\n", 2)[2]


def test_shells_can_complete():
    asked = {
        "_VHMC_COMPLETE": "complete_bash",
        "COMP_WORDS": "vhmc s",
        "COMP_CWORD": "1",
    }
    command = Path(sys.executable).with_name("vhmc")
    done = subprocess.run(
        [command], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["sample"]


def test_an_unexpected_error_is_one_line(monkeypatch, capsys):
    """A long message is cut, and --debug shows all of it."""

    def broken():
        raise RuntimeError("first line\n  more\n\nlast line\n")

    monkeypatch.setattr(cli, "app", broken)
    with pytest.raises(SystemExit, match="1"):
        cli.main()
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.startswith("vhmc: RuntimeError: first line ... last line")
    cli.is_debugging.set(True)
    try:
        with pytest.raises(RuntimeError, match="first line"):
            cli.main()
    finally:
        cli.is_debugging.set(False)
