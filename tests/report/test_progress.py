"""What a run shows of itself, on a terminal, in a notebook, in lines and in the log."""

import io
import logging
import os
import pty
import re
import select
import subprocess
import sys
import time

import numpy as np
import pytest

import vhmc
from vhmc.report import watch
from vhmc.report.display import Display, Lines, as_html, display_for
from vhmc.report.status import Moment, Status, details, headline, shown_seconds
from vhmc.report.watch import LOG, watching

SCRIPT = """
import time, numpy as np, vhmc
calls = 0
def model(theta):
    global calls
    calls += 1
    time.sleep(0.01)  # long enough for a picture of the bar
    if calls == 90:
        raise ConnectionError("the node went away")
    return -0.5 * theta @ theta, -theta
vhmc.sample(vhmc.from_callable(model, 2), 200, draws=50{more})
"""


def normal(theta):
    return -0.5 * theta @ theta, -theta


def test_lines_tell_phases_costs_and_the_outcome(capfd):
    vhmc.sample(vhmc.from_callable(normal, 2), 200, draws=50)
    shown = capfd.readouterr().err.splitlines()
    assert all(line.startswith("vhmc: ") for line in shown)
    phases = [line.split(": ")[1] for line in shown]
    wanted = ["search", "warm-up", "training", "repair", "drawing", "check", "done"]
    assert [name for name in wanted if name in phases] == wanted
    training = next(line for line in shown if ": repair: " in line)
    assert re.search(r"\d+ of 200 evaluations, [\d.e+]+/s, at most \d+ and", training)
    assert "true acceptance" in training and "score error" in training
    assert "ESS" in shown[-1] and "verdict" in shown[-1]


def test_no_progress_is_silent_but_for_the_log(capfd, caplog):
    with caplog.at_level(logging.INFO, "vhmc"):
        vhmc.sample(vhmc.from_callable(normal, 2), 200, draws=50, progress=False)
    assert capfd.readouterr() == ("", "")
    assert any(record.message.startswith("training: ") for record in caplog.records)
    assert "verdict" in caplog.records[-1].message


def test_a_failing_call_is_shown_as_it_happens():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(more="")],
        capture_output=True,
        text=True,
        check=True,
    )
    warned = [line for line in done.stderr.splitlines() if "warning" in line]
    assert len(warned) == 1
    assert "no answer at 1 of" in warned[0] and "the node went away" in warned[0]
    assert done.stderr.splitlines().index(warned[0]) < done.stderr.count("\n") - 1


def test_a_terminal_has_a_bar_that_is_drawn_over_itself():
    leader, follower = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT.format(more="")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "90"},
    )
    os.close(follower)
    shown, deadline = b"", time.monotonic() + 200
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 1.0)[0]:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            shown += part
        elif run.poll() is not None:
            break
    os.close(leader)
    assert run.wait(timeout=60) == 0
    assert run.stdout.read() == b""
    run.stdout.close()
    text = shown.decode()
    assert "━" in text and "\x1b[2K" in text  # a bar, and lines that are erased
    assert "the node went away" in text
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).rstrip().splitlines()
    # The reason may take a second line of the terminal.
    assert any(line.startswith("verdict ") for line in last[-2:])


def test_a_notebook_shows_progress_and_posterior(no_shape_checks):
    nbformat = pytest.importorskip("nbformat")
    from nbclient import NotebookClient

    code = SCRIPT.format(more="").replace("vhmc.sample", "posterior = vhmc.sample")
    cells = [code, "posterior", "posterior.verdict"]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells]
    )
    NotebookClient(notebook, timeout=250, kernel_name="python3").execute()
    outputs = [
        "".join(out.get("data", {}).get("text/html", "") for out in cell.outputs)
        for cell in notebook.cells
    ]
    assert "<progress" in outputs[0] and "verdict" in outputs[0]
    assert "the node went away" in outputs[0]
    assert "<table" in outputs[1] and "evaluations" in outputs[1]
    assert "<strong" in outputs[2]


def test_whatever_happens_the_display_is_closed(monkeypatch):
    before = list(LOG.handlers)
    closed = []

    class Recording(Display):
        def close(self, status):
            closed.append(status)

    monkeypatch.setattr(watch, "display_for", lambda progress: Recording())
    with pytest.raises(RuntimeError, match="by chance"), watching(10, progress=True):
        raise RuntimeError("by chance")
    assert LOG.handlers == before
    assert len(closed) == 1


def test_time_left_is_what_the_budget_would_take():
    status = Status(100, began=time.monotonic() - 10)
    assert headline(status) == "search: 0 of 100 evaluations"
    status.spent = 50
    assert headline(status).endswith("5/s, at most 50 and 10 s left")
    status.replayed = 40  # on file: they took no time
    assert headline(status).endswith("1/s, at most 50 and 50 s left")
    status.history = [Moment(20, 0.5, 0.3), Moment(50, 0.01, 0.9)]
    assert details(status) == "true acceptance 0.90, score error 0.01 (first 0.5)"


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.2, "3 s"), (99, "99 s"), (300, "5 min"), (9000, "2.5 h")]
)
def test_seconds_in_words(seconds, words):
    assert shown_seconds(seconds) == words


def test_nothing_of_a_notebooks_bar_is_markup():
    status = Status(10, phase="<b>")
    shown = as_html(status, ["<script>alert(1)</script>"])
    assert "<b>" not in shown and "<script>" not in shown


def test_where_it_is_shown(monkeypatch):
    assert type(display_for(False)) is Display
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(display_for(True), Lines)


def test_history_is_kept_for_the_report():
    posterior = vhmc.sample(
        vhmc.from_callable(normal, 2), 200, draws=50, progress=False
    )
    spent = [moment.spent for moment in posterior.history]
    assert spent == sorted(spent) and len(spent) >= 4
    assert np.isfinite(posterior.history).all()
    assert posterior.settings["budget"] == 200


def test_a_display_that_cannot_be_written_to_does_not_end_a_run(monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError("nobody reads this")

    monkeypatch.setattr(sys, "stderr", Broken())
    posterior = vhmc.sample(vhmc.from_callable(normal, 2), 200, draws=50)
    assert posterior.num_evaluations > 0
    monkeypatch.setattr(sys, "stderr", None)
    assert type(display_for(True)) is Display


def test_evaluations_on_file_do_not_count_for_the_rate(tmp_path, capfd):
    runs = []
    for _ in range(2):
        target = vhmc.from_callable(normal, 2)
        vhmc.sample(target, 200, draws=50, ledger=tmp_path / "run.vhmc")
        runs.append(capfd.readouterr().err)
    assert "/s" in runs[0]
    assert "/s" not in runs[1]
