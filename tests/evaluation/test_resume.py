"""Which ledger may be resumed: decided before anything is evaluated."""

from pathlib import Path

import numpy as np
import pytest

from vhmc.evaluation.ledger import LedgerError, LedgerFile, Round
from vhmc.evaluation.replay import Diverged, Replay
from vhmc.evaluation.resume import admit

PATH = Path("run.vhmc")
MODEL = {"dim": 2, "shapes": {"mu": [], "tau": []}, "price": 1}
SETTINGS = {"draws": 100, "chains": 4, "correction": "auto", "seed": 0}
FACTS = {**MODEL, "settings": SETTINGS, "budgets": [300], "model": "abc"}


def test_the_same_run_goes_on_and_a_larger_budget_is_added():
    assert admit(PATH, FACTS, MODEL, 300, SETTINGS) == [300]
    assert admit(PATH, FACTS, MODEL, 500, SETTINGS) == [300, 500]
    assert FACTS["budgets"] == [300], "what is on file is not changed here"


@pytest.mark.parametrize(
    ("model", "budget", "settings", "message"),
    [
        ({"dim": 3}, 300, {}, "made for another model"),
        ({"shapes": {"mu": [2]}}, 300, {}, r"parameters mu, tau, this one has mu\[2\]"),
        ({"price": 5}, 300, {}, "made for another model"),
        ({}, 200, {}, "begun with a budget of 300: give at least that"),
        ({}, 300, {"seed": 1}, "begun with seed=0, this call has 1"),
    ],
)
def test_another_run_is_refused_in_one_sentence(model, budget, settings, message):
    with pytest.raises(LedgerError, match=message):
        admit(PATH, FACTS, MODEL | model, budget, SETTINGS | settings)


def points(phase, thetas):
    zeros = np.zeros(len(thetas))
    reasons = np.array([""] * len(thetas), dtype=object)
    return Round("points", phase, thetas, zeros, thetas, reasons, len(thetas), 0.0, 0.0)


@pytest.fixture
def file(tmp_path):
    ledger = LedgerFile(tmp_path / "run.vhmc")
    yield ledger
    ledger.close()


def test_a_replay_answers_until_the_file_ends(file):
    thetas = np.arange(6.0).reshape(3, 2)
    file.append(points("search", thetas[:2]))
    replay = Replay(file)
    replayed = replay.recall("points", "search", thetas)
    np.testing.assert_array_equal(replayed.theta, thetas[:2])
    assert replay.is_over and replay.recall("points", "search", thetas[2:]) is None


@pytest.mark.parametrize(
    ("phase", "shift"), [("training", 0.0), ("search", 1e-12)], ids=["phase", "point"]
)
def test_another_question_than_the_one_on_file_is_noticed(file, phase, shift):
    thetas = np.ones((2, 2))
    file.append(points("search", thetas))
    with pytest.raises(Diverged):
        Replay(file).recall("points", phase, thetas + shift)


def test_phases_of_the_first_version_are_known_by_their_names_of_today(file):
    for old in ("scouting", "settling", "checking", "correcting", "training"):
        file.append(points(old, np.ones((1, 2))))
    phases = [entry.phase for entry in file.rounds()]
    assert phases == ["screening", "warm-up", "check", "correction", "training"]
