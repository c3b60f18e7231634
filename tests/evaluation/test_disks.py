"""Ledgers on disks that are full, or that may not be written to: really so.

Small file systems are mounted in a namespace of the child's own, which needs no rights
on the machine where namespaces of users are allowed, and vanish with it.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation import killed_run

ROOT = Path(__file__).parents[2]
RUN = f"{sys.executable} -m tests.evaluation.killed_run"
SHOW = f"{sys.executable} -c 'import vhmc.cli; vhmc.cli.main()' ledger show"
NUM_HESSIAN = 4
"""Calls for second derivatives, which are handed over as a matrix."""


def in_own_namespace(script: str) -> subprocess.CompletedProcess:
    command = ["unshare", "--map-root-user", "--mount", "sh", "-e", "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path):
    mount = f"mount -t tmpfs none {tmp_path}"
    if not shutil.which("unshare") or in_own_namespace(mount).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    return tmp_path


def last_line(run: subprocess.CompletedProcess) -> dict:
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.strip().splitlines()[-1])


def test_a_full_disk_loses_nothing_and_the_run_goes_on_elsewhere(folder):
    """What fits is on file, all is handed over; the file goes on after a move."""
    small, saved = folder / "small", folder / "saved"
    small.mkdir()
    saved.mkdir()
    end = last_line(
        in_own_namespace(
            f"mount -t tmpfs -o size=192k none {small}; "
            f"{RUN} {small}/run.vhmc; cp {small}/run.vhmc* {saved}"
        )
    )
    assert "disk is full" in end["error"], end
    # The disk may be full before the Hessian was asked for.
    others = end["calls"] - end["num_points"]
    assert others in (0, NUM_HESSIAN), "an evaluation was lost"
    resumed = last_line(in_own_namespace(f"{RUN} {saved}/run.vhmc"))
    posterior, calls = killed_run.run(None)
    assert resumed["error"] == ""
    assert resumed["digest"] == killed_run.digest(posterior)
    assert resumed["calls"] < calls, "nothing was on file"
    shown = in_own_namespace(
        f"mount --bind {saved} {saved}; mount -o remount,ro,bind {saved}; "
        f"{SHOW} {saved}/run.vhmc"
    )
    assert shown.returncode == 0, shown.stderr
    assert "finished" in shown.stdout, "an archive that is read-only can be looked at"


def test_a_folder_that_may_not_be_written_to_is_one_sentence(folder):
    end = last_line(
        in_own_namespace(f"mount -t tmpfs -o ro none {folder}; {RUN} {folder}/run.vhmc")
    )
    assert "run.vhmc cannot be written: is the folder there" in end["error"]
    assert end["calls"] == 0
