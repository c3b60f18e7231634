"""Nothing lost: every evaluation is on file, and none is made twice."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vhmc
from tests.evaluation import killed_run
from vhmc.evaluation.ledger import LedgerFile, Round

OPTIONS = {"draws": 100, "chains": 2, "seed": 3, "num_features": 30}
BUDGET = 200


def skewed(theta):
    """Logarithms of gamma variables with shapes 3 and 5."""
    shapes = jnp.array([3.0, 5.0])
    return jnp.sum(shapes * theta - jnp.exp(theta))


def traced():
    return vhmc.from_jax(skewed, np.zeros(2))


class Opaque:
    """The same as a black box that counts, and may end the run."""

    def __init__(self, last=None, error=KeyboardInterrupt):
        self.calls, self.last, self.error = 0, last, error

    def __call__(self, theta):
        self.calls += 1
        if self.last is not None and self.calls > self.last:
            raise self.error
        shapes = np.array([3.0, 5.0])
        return shapes @ theta - np.exp(theta).sum(), shapes - np.exp(theta)


def opaque(model):
    return vhmc.from_callable(model, 2)


def sample(target, path, budget=BUDGET, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vhmc.sample(target, budget, ledger=path, **(OPTIONS | options))


@pytest.fixture(scope="module")
def whole():
    """The run without a ledger, and without an interruption."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return vhmc.sample(opaque(Opaque()), BUDGET, **OPTIONS)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The ledger of a finished run of the traced model."""
    path = tmp_path_factory.mktemp("told") / "run.vhmc"
    return path, sample(traced(), path)


@pytest.fixture
def copy(told, tmp_path):
    """A copy of that ledger, to do with as one likes."""
    return Path(shutil.copy(told[0], tmp_path / "copy.vhmc"))


def test_the_ledger_changes_nothing_and_has_everything(whole, tmp_path):
    target = opaque(Opaque())
    posterior = sample(target, tmp_path / "run.vhmc")
    np.testing.assert_array_equal(posterior.unconstrained, whole.unconstrained)
    file = LedgerFile(tmp_path / "run.vhmc", is_read_only=True)
    rounds = file.rounds()
    assert sum(entry.calls for entry in rounds) == target.num_evaluations
    points = [entry for entry in rounds if entry.kind == "points"]
    theta = np.concatenate([entry.theta for entry in points])
    np.testing.assert_array_equal(theta, posterior.evaluation_log.theta)
    grad = np.concatenate([entry.grad for entry in points])
    np.testing.assert_array_equal(grad, posterior.evaluation_log.grad)
    assert file.facts()["finished"] == BUDGET
    file.close()


def test_a_finished_run_is_told_again_for_nothing(told, copy):
    target = traced()
    again = sample(target, copy)
    np.testing.assert_array_equal(again.unconstrained, told[1].unconstrained)
    assert again.num_evaluations == told[1].num_evaluations
    assert target.num_evaluations == 0


def test_a_black_box_is_asked_once_to_know_it_again(whole, tmp_path):
    sample(opaque(Opaque()), tmp_path / "run.vhmc")
    target = opaque(Opaque())
    again = sample(target, tmp_path / "run.vhmc")
    np.testing.assert_array_equal(again.unconstrained, whole.unconstrained)
    assert target.num_evaluations == 1


@pytest.mark.parametrize("last", [3, 61, 130])
def test_a_run_that_died_goes_on_bit_for_bit(whole, tmp_path, last):
    """The model takes the process along; SystemExit is as near as a test can get."""
    path = tmp_path / "run.vhmc"
    model = Opaque(last, SystemExit)
    with pytest.raises(SystemExit):
        sample(opaque(model), path)
    on_file = sum(entry.calls for entry in LedgerFile(path, True).rounds())
    assert last - 32 <= on_file <= last
    again = Opaque()
    posterior = sample(opaque(again), path)
    np.testing.assert_array_equal(posterior.unconstrained, whole.unconstrained)
    assert posterior.num_evaluations == whole.num_evaluations
    num_probes = 1 if on_file else 0
    assert again.calls == whole.num_evaluations - on_file + num_probes


class Hanging(Opaque):
    """It hangs in a corner of the space until it is let go."""

    def __init__(self, is_over, last=None):
        super().__init__(last, SystemExit)
        self.is_over, self.num_hung = is_over, 0

    def __call__(self, theta):
        answer = super().__call__(theta)
        if theta[0] > 1.8:
            self.num_hung += 1
            self.is_over.wait(60)
        return answer


@pytest.mark.parametrize("last", [0, 60, 100])
def test_a_model_that_was_down_is_asked_again(whole, tmp_path, last):
    """Whenever it went down: at the first call, in the search, in training."""
    path = tmp_path / "run.vhmc"
    model = Opaque(last=last, error=ConnectionError("the licence server is down"))
    for _ in range(2):  # down twice
        with pytest.raises((vhmc.RunFailure, ValueError), match="licence server"):
            sample(opaque(model), path)
    model.last = None
    posterior = sample(opaque(model), path)
    np.testing.assert_array_equal(posterior.unconstrained, whole.unconstrained)
    assert not posterior.failures
    assert posterior.num_evaluations == whole.num_evaluations
    kinds = {entry.kind for entry in LedgerFile(path, is_read_only=True).rounds()}
    assert "outage" in kinds
    # And so is the record that was left: told again it is the same run.
    again = sample(opaque(model), path)
    np.testing.assert_array_equal(again.unconstrained, whole.unconstrained)


def test_a_model_that_hangs_is_not_waited_for_again(tmp_path):
    """Points without an answer in time are on file as such, and told as such."""
    is_over = threading.Event()
    path = tmp_path / "run.vhmc"

    def run(model, path):
        return sample(vhmc.from_callable(model, 2, timeout=0.2), path)

    try:
        unbroken = Hanging(is_over)
        expected = run(unbroken, None)
        assert unbroken.num_hung > 0
        first, second = Hanging(is_over, 120), Hanging(is_over)
        with pytest.raises(SystemExit):
            run(first, path)
        posterior = run(second, path)
        # Of the round that was under way all are asked again, and no others.
        again = first.num_hung + second.num_hung - unbroken.num_hung
        assert 0 <= again <= 8
        assert second.num_hung < unbroken.num_hung
        assert {failure.reason for failure in posterior.failures} == {
            "no answer after 0.2 s"
        }
        np.testing.assert_array_equal(posterior.unconstrained, expected.unconstrained)
    finally:
        is_over.set()


@pytest.mark.parametrize(
    "correction", [pytest.param("auto", marks=pytest.mark.slow), "exact"]
)
def test_a_larger_budget_goes_on(tmp_path, correction):
    def ring(theta):
        return -8 * (jnp.linalg.norm(theta) - 2) ** 2

    path = tmp_path / "run.vhmc"
    target = vhmc.from_jax(ring, np.ones(2))
    first = sample(target, path, 200, correction=correction)
    assert first.verdict.status != "good"
    second = sample(target, path, 500, correction=correction)
    assert second.num_evaluations > first.num_evaluations
    assert target.num_evaluations == second.num_evaluations <= 500
    np.testing.assert_array_equal(
        second.evaluation_log.theta[: len(first.evaluation_log.theta)],
        first.evaluation_log.theta,
    )
    # And so does the longer run: both parts are on file.
    third = sample(target, path, 500, correction=correction)
    np.testing.assert_array_equal(third.unconstrained, second.unconstrained)
    assert target.num_evaluations == second.num_evaluations


def test_a_run_begun_small_can_become_good(tmp_path):
    options = {"draws": 100, "seed": 0, "ledger": tmp_path / "run.vhmc"}
    target = vhmc.from_jax(lambda x: -0.5 * x @ x, np.zeros(2))
    first = vhmc.sample(target, 100, **options)
    assert "checked draws to judge by" in first.verdict.reasons[0]
    second = vhmc.sample(target, 800, **options)
    assert second.verdict.status == "good"
    assert second.num_evaluations < 800


def test_a_ledger_from_elsewhere_keeps_its_points(tmp_path):
    """Another machine rounds differently: the run differs, nothing is asked twice."""
    path = tmp_path / "run.vhmc"
    model = Opaque(110, SystemExit)
    with pytest.raises(SystemExit):
        sample(opaque(model), path)
    base = sqlite3.connect(path)
    rows = base.execute("SELECT point, theta FROM points").fetchall()
    for point, theta in rows[20:]:
        moved = np.frombuffer(theta, "<f8") * (1 + 1e-15)
        base.execute(
            "UPDATE points SET theta=? WHERE point=?", (moved.tobytes(), point)
        )
    base.commit()
    base.close()
    again = Opaque()
    with pytest.warns(UserWarning, match="written by another machine"):
        posterior = vhmc.sample(opaque(again), BUDGET, ledger=path, **OPTIONS)
    assert posterior.num_evaluations <= BUDGET
    assert again.calls <= BUDGET - len(rows) + 1
    assert len(posterior.evaluation_log.theta) >= len(rows)
    assert np.abs(posterior.unconstrained.mean(axis=(0, 1)) - [0.92, 1.5]).max() < 0.3


def test_a_related_run_is_a_warm_start(told):
    moved = vhmc.from_jax(lambda theta: skewed(theta - 0.1), np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = vhmc.sample(moved, BUDGET, warm_start=told[0], **OPTIONS)
    assert "search" not in posterior.costs
    assert posterior.costs["warm start"] > 0


@pytest.mark.parametrize("after", [20, 130])
def test_an_interrupt_ends_the_round_and_keeps_everything(tmp_path, after):
    path = tmp_path / "run.vhmc"

    class Pressed(Opaque):
        def __call__(self, theta):
            if self.calls == after:
                os.kill(os.getpid(), signal.SIGINT)
            return super().__call__(theta)

    model = Pressed()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            posterior = vhmc.sample(opaque(model), BUDGET, ledger=path, **OPTIONS)
        except vhmc.RunFailure as failure:
            assert "interrupted during the search" in str(failure)
            num_hessian = 4
            assert after - num_hessian <= len(failure.evaluation_log.theta) <= after + 8
            return
        finally:
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            signal.signal(signal.SIGINT, before)
    assert after < model.calls <= after + 32
    assert posterior.verdict.status != "good"
    assert any("interrupted" in reason for reason in posterior.verdict.reasons)
    assert posterior.unconstrained.shape == (2, 100, 2)


def test_two_writers_are_one_too_many(tmp_path):
    file = LedgerFile(tmp_path / "run.vhmc")
    with pytest.raises(vhmc.LedgerError, match="is in use by another process"):
        sample(traced(), tmp_path / "run.vhmc")
    reader = LedgerFile(tmp_path / "run.vhmc", is_read_only=True)
    assert reader.rounds() == []
    reader.close()
    file.close()


@pytest.mark.slow
def test_a_second_process_is_kept_out_and_the_first_ends_well(tmp_path):
    path = tmp_path / "run.vhmc"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.evaluation.killed_run", str(path)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == "call"
    target = killed_run.Talking(is_quiet=True)
    with pytest.raises(vhmc.LedgerError, match="is in use by another process"):
        killed_run.sampled(target, path)
    assert target.calls == 0
    *_, last = process.stdout
    process.stdout.close()
    assert process.wait() == 0
    posterior, _ = killed_run.run(None)
    assert json.loads(last)["digest"] == killed_run.digest(posterior)


def foreign(path):
    path.write_text("dear diary")


def other_base(path):
    path.unlink()
    sqlite3.connect(path).executescript("CREATE TABLE plants (name); VACUUM;")


def newer(path):
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.close()


def truncated(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def scribbled(path):
    content = bytearray(path.read_bytes())
    content[4096:8192] = os.urandom(4096)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign, "is not a ledger of vhmc"),
        (other_base, "is not a ledger of vhmc"),
        (newer, r"made by a newer vhmc \(format 99"),
        (truncated, "is damaged"),
        (scribbled, "is damaged"),
        (lambda path: path.unlink() or path.mkdir(), "is a folder"),
    ],
)
def test_a_file_that_cannot_serve_is_refused(copy, spoil, message):
    path = copy
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    target = traced()
    with pytest.raises(vhmc.LedgerError, match=message):
        vhmc.sample(target, BUDGET, ledger=path, **OPTIONS)
    assert target.num_evaluations == 0
    if path.is_file():
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "begun with seed=3, this call has 4"),
        ({"draws": 50}, "begun with draws=100"),
        ({"budget": 150}, "begun with a budget of 200: give at least that"),
    ],
)
def test_other_settings_are_refused(copy, options, message):
    path = copy
    with pytest.raises(vhmc.LedgerError, match=message):
        vhmc.sample(
            traced(), **({"budget": BUDGET, "ledger": path} | OPTIONS | options)
        )


def test_another_model_is_refused(copy):
    path = copy
    others = [
        (vhmc.from_jax(lambda t: 2 * skewed(t), np.zeros(2)), "at its first point"),
        (vhmc.from_jax(lambda p: skewed(p["a"]), {"a": np.zeros(2)}), r"theta\[2\]"),
        (vhmc.from_callable(lambda t: (0.0, 0 * t), 3), "was made for another model"),
    ]
    for target, message in others:
        with pytest.raises(vhmc.LedgerError, match=message):
            vhmc.sample(target, BUDGET, ledger=path, **OPTIONS)
        assert target.num_evaluations <= 1


def test_a_folder_that_is_not_there_or_not_ours(tmp_path):
    target = traced()
    with pytest.raises(
        vhmc.LedgerError, match="cannot be written: is the folder there"
    ):
        vhmc.sample(target, BUDGET, ledger=tmp_path / "no" / "run.vhmc", **OPTIONS)
    assert target.num_evaluations == 0


def test_a_full_disk_ends_the_run_and_loses_nothing(tmp_path, monkeypatch):
    """SQLite's own limit of pages stands for the disk: the error is the same."""
    path = tmp_path / "run.vhmc"
    opened = LedgerFile._opened

    def small(self, is_read_only):
        base = opened(self, is_read_only)
        base.execute("PRAGMA max_page_count = 7")
        return base

    monkeypatch.setattr(LedgerFile, "_opened", small)
    model = Opaque()
    with pytest.raises(vhmc.RunFailure, match=r"the run stops: .* is full") as info:
        vhmc.sample(opaque(model), BUDGET, ledger=path, **OPTIONS)
    num_hessian = 4
    assert len(info.value.evaluation_log.theta) + num_hessian == model.calls
    monkeypatch.undo()
    again = Opaque()
    posterior = sample(opaque(again), path)
    on_file = model.calls + again.calls - 1 - posterior.num_evaluations
    assert 0 < on_file < 60  # what did not fit was asked for again


def test_the_clock_may_go_backwards(whole, tmp_path, monkeypatch):
    ticks = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(ticks)))
    posterior = sample(opaque(Opaque()), tmp_path / "run.vhmc")
    np.testing.assert_array_equal(posterior.unconstrained, whole.unconstrained)
    again = sample(opaque(Opaque()), tmp_path / "run.vhmc")
    np.testing.assert_array_equal(again.unconstrained, whole.unconstrained)


def test_a_closed_ledger_is_one_file(told):
    assert not told[0].with_name("run.vhmc-wal").exists()


ROW = st.tuples(
    st.integers(1, 3),
    st.sampled_from(["search", "training"]),
    st.floats(allow_nan=False),
    st.text(max_size=20).filter(lambda text: "\x00" not in text and text.isprintable()),
)
STEPS = st.lists(st.one_of(ROW, st.sampled_from(["reopen", "crash"])), max_size=12)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_any_sequence_of_appends_crashes_and_openings(steps, tmp_path_factory):
    """What was appended is there, in order, whatever happened in between."""
    path = tmp_path_factory.mktemp("ledger") / "run.vhmc"
    file, expected = LedgerFile(path), []
    for step in steps:
        if step == "reopen":
            file.close()
            file = LedgerFile(path)
        elif step == "crash":
            # As after kill -9: files as they are, no lock, nothing closed.
            copy = path.with_name(path.name + ".after")
            for end in ("", "-wal"):
                if path.with_name(path.name + end).exists():
                    shutil.copy(path.with_name(path.name + end), str(copy) + end)
            file.close()
            path = copy
            file = LedgerFile(path)
        else:
            number, phase, value, reason = step
            theta = np.arange(2.0 * number).reshape(number, 2) + len(expected)
            entry = Round(
                "points",
                phase,
                theta,
                np.full(number, value),
                np.full_like(theta, value),
                np.array([reason] * number, dtype=object),
                number,
                0.0,
                0.0,
            )
            file.append(entry)
            expected.append(entry)
    found = file.rounds()
    file.close()
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.phase, list(one.reason)) == (other.phase, list(other.reason))
        np.testing.assert_array_equal(one.theta, other.theta)
        np.testing.assert_array_equal(one.grad, other.grad)
        finite = np.isfinite(other.energy)
        np.testing.assert_array_equal(one.energy[finite], other.energy[finite])


def killed(path, num_calls, delay):
    """Run in a process of its own; kill it so long after so many new calls.

    Returns what it printed last, or nothing if it was killed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.evaluation.killed_run", str(path)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    last = ""
    for line in process.stdout:
        last = line.strip()
        num_calls -= last == "call"
        if num_calls < 0:
            time.sleep(delay)
            process.kill()
            break
    process.stdout.close()
    return json.loads(last) if process.wait() == 0 else None


def kill_again_and_again(path, least, rng):
    """Kill a run at random moments until it has had enough; its end, and the kills."""
    for num_kills in range(1000):
        # A round is of eight points: some kills come before one is on file.
        num_calls = rng.integers(1, 15) if num_kills < least else 10**6
        end = killed(path, num_calls, rng.uniform(0, 0.01))
        if end:
            return end, num_kills
    raise AssertionError("the run never ended")


@pytest.mark.parametrize("least", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_kill_dash_nine_at_random_moments(tmp_path, least, seed):
    """The draws are those of the unbroken run, and no call is lost or made twice."""
    path = tmp_path / "run.vhmc"
    end, num_kills = kill_again_and_again(path, least, np.random.default_rng(seed))
    assert num_kills >= least
    posterior, calls = killed_run.run(None)
    assert end["digest"] == killed_run.digest(posterior)
    file = LedgerFile(path, is_read_only=True)
    on_file = [entry for entry in file.rounds() if entry.kind != "probe"]
    file.close()
    assert sum(entry.calls for entry in on_file) == calls
    thetas = np.concatenate([e.theta for e in on_file if e.kind == "points"])
    np.testing.assert_array_equal(thetas, posterior.evaluation_log.theta)
