"""Experiments 2 to 4: what they share, and each in its quick version."""

import csv
import io
import itertools
import json
import re
import time
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import vhmc
from tests.cli.test_cli import call
from vhmc.lab.baselines import ExactHMC
from vhmc.lab.experiments.clock import record
from vhmc.lab.experiments.output import Claim, Panel, Story, judge, write_page
from vhmc.lab.experiments.parts import Part, Progress, Step, run_parts
from vhmc.lab.experiments.truth import covariance_of, exact_moments, relative_error
from vhmc.numerics.gaussian import gaussian
from vhmc.report.status import shown_seconds


def progress():
    return Progress(Console(file=io.StringIO(), width=200), "test")


def shown(reporter):
    return reporter._console.file.getvalue()


def test_a_run_goes_on_where_it_was_cut(tmp_path):
    made = []

    def part(name, is_broken=False):
        def work(on_progress):
            if is_broken:
                raise KeyboardInterrupt
            made.append(name)
            return {"value": np.arange(3), "word": name}

        return Part(name, 1.0, work)

    with pytest.raises(KeyboardInterrupt):
        run_parts(tmp_path, {"a": 1}, [part("one"), part("two", True)], progress())
    reporter = progress()
    done = run_parts(tmp_path, {"a": 1}, [part("one"), part("two")], reporter)
    assert made == ["one", "two"]
    assert "1 of 2 parts" in shown(reporter)
    np.testing.assert_array_equal(done["one"]["value"], np.arange(3))
    assert str(done["two"]["word"]) == "two"
    assert not list((tmp_path / "parts").glob("*.tmp"))


def test_other_settings_do_not_mix(tmp_path):
    part = Part("one", 1.0, lambda on_progress: {"value": 1})
    run_parts(tmp_path, {"limits": (4, 40), "seed": 0}, [part], progress())
    run_parts(tmp_path, {"limits": (4, 40), "seed": 0}, [part], progress())
    with pytest.raises(ValueError, match="other settings, of seed"):
        run_parts(tmp_path, {"limits": (4, 40), "seed": 1}, [part], progress())


def test_the_time_left_learns_from_the_pace(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    step = Step([10.0, 10.0, 20.0])
    assert step.seconds_left() == 40
    now[0] = 20.0  # twice as slow as expected
    step.done()
    assert step.seconds_left() == pytest.approx(60)
    step.advance_to(0.5)
    now[0] = 30.0
    assert step.seconds_left() == pytest.approx(50)
    assert shown_seconds(50) == "50 s"
    assert shown_seconds(600) == "10 min"


def test_a_terminal_shows_the_part_and_the_time_left():
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True)
    with Progress(console, "test").over([("one", 200.0), ("two", 400.0)]) as step:
        step.done()
        step.advance_to(0.5)
        console.print("a line")  # renders the bar again
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    assert re.search("test .* one +about 10 min left", shown)
    assert re.search("test .* two +about 0 s left", shown)


def story(text):
    claim = Claim(text, "held", text)
    return lambda image: Story(
        text,
        text,
        (Panel(text, image, text, (claim,), (text,)),),
        ({"a": text},),
        {},
        1,
    )


def test_a_page_is_one_file_and_escapes_what_it_shows(tmp_path):
    image = tmp_path / "figure.png"
    image.write_bytes(b"not really a picture")
    page = write_page(
        tmp_path / "index.html", [story("<script>alert(1)</script>")(image)]
    )
    text = page.read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "data:image/png;base64," in text
    assert not re.search(r"(src|href)=.(https?:|/)", text)
    assert "quick version" in text


def test_a_claim_holds_wholly_in_part_or_not():
    assert judge([True, True]) == "held"
    assert judge([True, False]) == "held in part"
    assert judge([False, False]) == "not held"


def test_errors_are_those_of_the_paper():
    """By hand: |1 - 2| + |3 - 4| over 2 + 4."""
    assert relative_error(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == 2 / 6
    draws = np.array([[0.0, 0.0], [2.0, 4.0]])
    np.testing.assert_allclose(covariance_of(draws), [[1.0, 2.0], [2.0, 4.0]])


def test_exact_moments_of_a_gaussian():
    """Means to 5 standard errors, variances to 10 %."""
    precision = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    guide = gaussian(jnp.array([1.0, -3.0]), precision)
    found = exact_moments(guide, guide, 8000, 16, 0)
    covariance = np.linalg.inv(np.asarray(precision))
    errors = np.abs(found.mean - [1.0, -3.0]) / np.sqrt(np.diag(covariance) / 8000)
    assert errors.max() < 5
    np.testing.assert_allclose(found.covariance, covariance, atol=0.1)
    assert found.num_draws >= 8000


def test_a_clock_stops_a_chain_and_dates_its_draws(monkeypatch):
    """A reading takes a second here: blocks begin at 0 and 2, and 4 is too late."""
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr("vhmc.lab.experiments.clock.time", clock)
    guide = gaussian(jnp.zeros(2), jnp.eye(2))
    chain = ExactHMC(vhmc.paper.HMC(vhmc.paper.unit_mass(2), 0.5, 3), guide)
    recording = record(chain, chain.init(np.zeros((4, 2))), 5, 4.0, seed=0, began=0.0)
    assert recording.draws.shape == (10, 4, 2)
    assert len(set(recording.seconds)) == 2
    assert len(recording.until(recording.seconds[0])) == 5


@pytest.mark.slow
class Quick:
    """One class an experiment, so that they run beside each other.

    They take more than a minute each: with them the default run would be too long.
    """

    name: str
    files: frozenset[str]

    def test_the_quick_version_leaves_everything(self, tmp_path):
        done = call("reproduce", self.name, "--quick", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "quick version" in done.stdout
        folder = tmp_path / "vhmc-results" / f"{self.name}-quick"
        common = {"numbers.csv", "run.json", "index.html", "parts"}
        assert {path.name for path in folder.iterdir()} == self.files | common
        run = json.loads((folder / "run.json").read_text())
        assert run["is_quick"]
        assert {claim["status"] for claim in run["claims"]} <= {
            "held",
            "held in part",
            "not held",
        }
        if self.name != "probit":
            assert run["data"]["kind"].startswith("real")
            assert len(run["data"]["sha256"]) == 64
        with (folder / "numbers.csv").open() as file:
            methods = {row["method"] for row in csv.DictReader(file)}
        assert len(methods) >= 7
        page = (folder / "index.html").read_text()
        assert page.count("The paper:") == len(run["claims"])
        assert "quick version" in page
        # The same command again runs nothing, and says so.
        again = call("reproduce", self.name, "--quick", folder=tmp_path)
        assert again.returncode == 0
        assert re.search(r"(\d+) of \1 parts are in", again.stdout)


class TestProbit(Quick):
    name = "probit"
    files = frozenset({"rmse.png", "rmse.pdf", "summary.csv"})


class TestLogistic(Quick):
    name = "logistic"
    files = frozenset({"errors.png", "errors.pdf"})


class TestICA(Quick):
    name = "ica"
    files = frozenset({"amari.png", "amari.pdf"})


def test_quick_and_full_exclude_each_other(tmp_path):
    done = call("reproduce", "ica", "--quick", "--full", folder=tmp_path)
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["logistic", "--limits", "40,4"], "limits must be positive and grow"),
        (["logistic", "--data", "nowhere.npz"], "there is no data file nowhere.npz"),
        (["ica", "--limit", "0"], "limit must be above"),
        (["probit", "--runs", "0"], "num_runs must be at least 1, got 0"),
    ],
)
def test_bad_input_gets_one_line(arguments, message, tmp_path):
    done = call("reproduce", *arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
