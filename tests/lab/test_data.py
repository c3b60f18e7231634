"""Data are found in the stated order, checked, and labelled when they are not real."""

import functools
import gzip
import http.server
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from vhmc.lab.data import labelled, meg
from vhmc.lab.data.labelled import load_a9a

DATA = Path(os.environ.get("VHMC_DATA", ""))
"""Of the real data, before a test changes the variable."""


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No data folder, an empty cache, and an origin that refuses to answer."""
    monkeypatch.setenv("VHMC_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(labelled, "A9A_URL", "http://127.0.0.1:9/a9a")
    monkeypatch.setattr(meg, "URL", "http://127.0.0.1:9/meg.csv")
    return tmp_path


@pytest.fixture
def origin(nowhere, monkeypatch):
    """A folder served on loopback as if it were the public origin."""
    folder = nowhere / "origin"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(labelled, "A9A_URL", f"{base}/a9a")
    monkeypatch.setattr(meg, "URL", f"{base}/meg.csv")
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_a9a_is_the_known_one():
    found = load_a9a()
    assert found.kind == "real"
    assert found.x.shape == (32561, 123)
    assert found.x.sum() == 451592
    assert found.y.sum() == 7841


def test_the_original_text_gives_the_same_numbers(origin):
    text = gzip.decompress((DATA / "a9a.svmlight.gz").read_bytes())
    (origin / "a9a").write_bytes(text)
    fetched = load_a9a()
    packed = load_a9a(DATA)
    np.testing.assert_array_equal(fetched.x, packed.x)
    np.testing.assert_array_equal(fetched.y, packed.y)
    assert fetched.source == labelled.A9A_URL
    (origin / "a9a").unlink()
    assert load_a9a().kind == "real", "the cache should serve now"


def test_another_text_is_refused(origin):
    (origin / "a9a").write_text("+1 1:1\n")
    with pytest.raises(ValueError, match="hash"):
        load_a9a()


def test_meg_from_its_origin(origin):
    with np.load(DATA / "meg_vigario_10ch.npz") as file:
        rows = file["X"]
    header = ",".join(f'"V{i + 1}"' for i in range(rows.shape[1]))
    body = "\n".join(",".join(repr(float(v)) for v in row) for row in rows)
    (origin / "meg.csv").write_text(f"{header}\n{body}\n")
    fetched = meg.load_meg(5)
    np.testing.assert_allclose(fetched.x, meg.load_meg(5, DATA).x)
    assert fetched.kind == meg.KIND
    assert fetched.x.shape == (17730, 5)


@pytest.mark.parametrize("load", [load_a9a, meg.load_meg])
def test_a_stand_in_says_that_it_is_one(nowhere, load):
    found = load()
    assert found.kind == "SIMULATED STAND-IN"
    assert "simulated" in found.note


def test_a_given_file_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="no data file"):
        load_a9a(tmp_path / "a9a.npz")


def test_channels_that_are_not_there():
    with pytest.raises(ValueError, match="10 channels, not 11"):
        meg.load_meg(11)
