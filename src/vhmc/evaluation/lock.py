"""A lock between processes, which ends with the one that holds it."""

import sqlite3
from pathlib import Path


def locked(path: Path, patience: float) -> sqlite3.Connection:
    """Hold `path` until the connection is closed, by a crash as well.

    SQLite locks files on every system that it runs on; the file itself stays empty.

    patience: seconds to wait for another process; then `sqlite3.OperationalError`.
    """
    lock = sqlite3.connect(path, timeout=patience, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error:
        lock.close()
        raise
    return lock
