"""Kill a run again and again, at random moments, and count what that costs.

    python -m benchmarks.faults --kills 100

A run in a process of its own is ended with SIGKILL after a random number of
evaluations and a random pause, and started again on the same ledger, until it has been
killed often enough; then it may end. Counted are evaluations that were requested and
are not on file (under way when the process died), evaluations on file that the
uninterrupted run does not make (repeated), and runs whose draws differ from it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.evaluation import killed_run

from vhmc.evaluation.ledger import LedgerFile

ROOT = Path(__file__).parents[1]
ROUND = 16
"""Points of the largest rounds of that run: what may be under way."""


class Death(NamedTuple):
    """One child: its evaluations, and its last line if it was not killed."""

    num_calls: int
    end: dict | None


def child(path: Path, num_calls: int, pause: float) -> Death:
    """Run until `num_calls` evaluations were made, then kill."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.evaluation.killed_run", str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    calls, last = 0, ""
    for line in process.stdout:
        last = line.strip()
        calls += last == "call"
        if calls == num_calls:
            time.sleep(pause)
            process.kill()
    # What it said between the last line read and its death was read as well.
    is_over = process.wait() == 0
    return Death(calls, json.loads(last) if is_over else None)


def on_file(path: Path) -> tuple[int, int]:
    """Evaluations and probes on file."""
    if not path.exists():
        return 0, 0
    file = LedgerFile(path, is_read_only=True)
    rounds = file.rounds()
    file.close()
    probes = sum(entry.calls for entry in rounds if entry.kind == "probe")
    return sum(entry.calls for entry in rounds) - probes, probes


def main() -> None:
    """Print one line of numbers a run, and their sums."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--kills-a-run", type=int, default=25)
    wanted = parser.parse_args()
    rng = np.random.default_rng(0)
    expected, calls = killed_run.run(None)
    mark = killed_run.digest(expected)
    kills, lost, most, repeated, differing, runs = 0, 0, 0, 0, 0, 0
    while kills < wanted.kills:
        with tempfile.TemporaryDirectory() as folder:
            path, end, here = Path(folder) / "run.vhmc", None, 0
            while end is None:
                before = on_file(path)
                number = rng.integers(1, 15) if here < wanted.kills_a_run else 10**9
                made, end = child(path, number, rng.uniform(0, 0.01))
                after = on_file(path)
                under_way = made - (sum(after) - sum(before))
                if end is None:
                    kills, here = kills + 1, here + 1
                    lost, most = lost + under_way, max(most, under_way)
            repeated += on_file(path)[0] - calls
            differing += end["digest"] != mark
            runs += 1
        print(
            f"{kills} kills in {runs} runs: {lost} evaluations under way were lost, "
            f"at most {most} at a time (a round has up to {ROUND}); {repeated} "
            f"repeated, {differing} results differ",
            flush=True,
        )


if __name__ == "__main__":
    main()
