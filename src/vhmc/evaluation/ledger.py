"""The ledger: every evaluation of a run in an SQLite file.

What was committed survives a crash of the process and of the machine, and any program
can read it: nothing is pickled.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

APPLICATION = int.from_bytes(b"vhmc", "big")
"""SQLite's mark for the files of one application."""
MAGIC = b"SQLite format 3\0"
FORMAT = 1
RENAMED = {
    "scouting": "screening",
    "settling": "warm-up",
    "checking": "check",
    "correcting": "correction",
}
"""Phases by the names that version 0.1.0 wrote."""
PATIENCE = 0.5
"""Seconds to wait for a lock that another process is about to give up."""
SCHEMA = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE rounds (
        round INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,       -- 'points', 'hessian', 'probe' or 'outage'
        phase TEXT NOT NULL,
        calls INTEGER NOT NULL,   -- of the model
        began REAL NOT NULL,      -- seconds since 1970, by the clock of the machine
        seconds REAL NOT NULL     -- that the model took
    )""",
    """CREATE TABLE points (
        point INTEGER PRIMARY KEY,
        round INTEGER NOT NULL REFERENCES rounds (round),
        theta BLOB NOT NULL,      -- float64, little-endian, as is the gradient
        energy REAL,              -- minus the log density; NULL where there is none
        grad BLOB NOT NULL,       -- of a Hessian, one of its rows
        reason TEXT NOT NULL      -- why there is none
    )""",
    "CREATE INDEX points_of_rounds ON points (round)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)
OUTPUTS = """CREATE TABLE IF NOT EXISTS outputs (
    point INTEGER PRIMARY KEY REFERENCES points (point),
    output BLOB NOT NULL          -- float64, little-endian
)"""
"""Table of a forward model's outputs; made when there are any."""


class LedgerError(ValueError):
    """A file that cannot serve as the ledger of this run."""


class Round(NamedTuple):
    """One batch of evaluations.

    kind: `points` for energies and gradients, `hessian` for second derivatives at the
        one point that all rows share, `probe` for a check that the model is the same,
        `outage` for points evaluated again because the model failed.
    theta: points, one a row.
    energy, grad, reason: as in `Evaluations`.
    calls: evaluations that were counted.
    began: seconds since 1970.
    seconds: that the model took.
    outputs: as in `Evaluations`.
    """

    kind: str
    phase: str
    theta: np.ndarray
    energy: np.ndarray
    grad: np.ndarray
    reason: np.ndarray
    calls: int
    began: float
    seconds: float
    outputs: np.ndarray | None = None


class LedgerFile:
    """An append-only record of rounds.

    path: of the file; made if there is none.
    is_read_only: for those who look, also while another process writes.
    """

    def __init__(self, path: str | Path, is_read_only: bool = False):
        self.path = Path(path)
        if is_read_only and not self.path.exists():
            raise LedgerError(f"there is no ledger {self.path}")
        if self.path.is_dir():
            raise LedgerError(f"{self.path} is a folder")
        self._lock: sqlite3.Connection | None = None
        self._base: sqlite3.Connection | None = None
        self._is_writing = False
        try:
            self._refuse_others()
            if not is_read_only:
                # It keeps other writers out, and no reader.
                beside = self.path.with_name(self.path.name + "-lock")
                self._lock = locked(beside, PATIENCE)
            self._base = self._opened(is_read_only)
            self._check(is_read_only)
        except sqlite3.Error as error:
            self.close()
            raise LedgerError(self._sentence(error)) from error
        except LedgerError:
            self.close()
            raise

    def facts(self) -> dict[str, Any]:
        """Settings and state of the run, by name."""
        rows = self._run("SELECT name, value FROM facts")
        return {name: json.loads(value) for name, value in rows}

    def note(self, **facts: Any) -> None:
        """Write facts down; those of the same name are replaced."""
        with self._transaction():
            for name, value in facts.items():
                self._run(
                    "INSERT OR REPLACE INTO facts VALUES (?, ?)",
                    (name, json.dumps(value)),
                )

    def append(self, entry: Round) -> None:
        """Write a round; once this returns, it survives a crash."""
        with self._transaction():
            (number,) = self._run(
                "INSERT INTO rounds (kind, phase, calls, began, seconds) "
                "VALUES (?, ?, ?, ?, ?) RETURNING round",
                (entry.kind, entry.phase, entry.calls, entry.began, entry.seconds),
            )[0]
            self._run_many(
                "INSERT INTO points (round, theta, energy, grad, reason) "
                "VALUES (?, ?, ?, ?, ?)",
                [
                    (number, _bytes(theta), _real(energy), _bytes(grad), str(reason))
                    for theta, energy, grad, reason in zip(
                        entry.theta, entry.energy, entry.grad, entry.reason, strict=True
                    )
                ],
            )
            if entry.outputs is not None:
                self._append_outputs(number, entry.outputs)

    def _append_outputs(self, number: int, outputs: np.ndarray) -> None:
        """Write the outputs of a round's points, where the model gave any."""
        self._run(OUTPUTS)
        points = self._run(
            "SELECT point FROM points WHERE round = ? ORDER BY point", (number,)
        )
        self._run_many(
            "INSERT INTO outputs VALUES (?, ?)",
            [
                (point, _bytes(row))
                for (point,), row in zip(points, outputs, strict=True)
                if np.isfinite(row).all()
            ],
        )

    def _outputs(self) -> dict[int, list[bytes | None]]:
        """Outputs of the points of each round, if there are any on file."""
        found: dict[int, list[bytes | None]] = {}
        if not self._run("SELECT 1 FROM sqlite_schema WHERE name = 'outputs'"):
            return found
        for number, row in self._run(
            "SELECT round, output FROM points LEFT JOIN outputs USING (point) "
            "ORDER BY point"
        ):
            found.setdefault(number, []).append(row)
        return found

    def rounds(self) -> list[Round]:
        """All rounds in order."""
        heads = self._run(
            "SELECT round, kind, phase, calls, began, seconds FROM rounds "
            "ORDER BY round"
        )
        points: dict[int, list[tuple]] = {head[0]: [] for head in heads}
        for number, *row in self._run(
            "SELECT round, theta, energy, grad, reason FROM points ORDER BY point"
        ):
            points[number].append(tuple(row))
        outputs = self._outputs()
        return [
            Round(
                kind,
                RENAMED.get(phase, phase),
                *_arrays(points[number]),
                calls,
                began,
                seconds,
                _matrix(outputs.get(number, [])),
            )
            for number, kind, phase, calls, began, seconds in heads
        ]

    def set_aside(self, number: int) -> None:
        """Mark the last rounds of a run as an outage of the model."""
        with self._transaction():
            self._run(
                "UPDATE rounds SET kind = 'outage' WHERE round IN (SELECT round FROM "
                "rounds WHERE kind IN ('points', 'hessian') ORDER BY round DESC "
                "LIMIT ?)",
                (number,),
            )

    def close(self) -> None:
        """Leave one whole file behind, and let the next writer in."""
        if self._base is not None and self._is_writing:
            # Not while somebody reads: then the log stays beside the file for now.
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("PRAGMA journal_mode = DELETE")
        for base in (self._base, self._lock):
            if base is not None:
                base.close()
        self._base = self._lock = None

    def _refuse_others(self) -> None:
        """Know a foreign file by its first bytes, before SQLite changes any of them."""
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb") as stream:
            head = stream.read(100)
        version, mark = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
        if not head.startswith(MAGIC) or mark != APPLICATION:
            raise LedgerError(f"{self.path} is not a ledger of vhmc")
        if version > FORMAT:
            raise LedgerError(
                f"{self.path} was made by a newer vhmc (format {version}, this one "
                f"knows {FORMAT}): update vhmc"
            )

    def _opened(self, is_read_only: bool) -> sqlite3.Connection:
        mode = "ro" if is_read_only else "rwc"
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
        )

    def _check(self, is_read_only: bool) -> None:
        ((num_tables,),) = self._run("SELECT count(*) FROM sqlite_schema")
        if num_tables:
            ((health,),) = self._run("PRAGMA quick_check(1)")
            if health != "ok":
                raise LedgerError(f"{self.path} is damaged ({health})")
        if is_read_only:
            return
        self._run("PRAGMA synchronous = FULL")
        if not num_tables:
            # Before the write-ahead log: the file itself says whose it is.
            with self._transaction():
                for statement in SCHEMA:
                    self._run(statement)
        self._run("PRAGMA journal_mode = WAL")
        self._is_writing = True

    def _run(self, statement: str, values: tuple = ()) -> list[tuple]:
        if self._base is None:
            raise LedgerError(f"{self.path} is closed")
        return self._base.execute(statement, values).fetchall()

    def _run_many(self, statement: str, rows: list[tuple]) -> None:
        assert self._base is not None
        self._base.executemany(statement, rows)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; what fails, such as a full disk, is said in words."""
        self._run("BEGIN IMMEDIATE")
        try:
            yield
            self._run("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                self._run("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise LedgerError(self._sentence(error)) from error
            raise

    def _sentence(self, error: sqlite3.Error) -> str:
        text = str(error)
        if "locked" in text:
            return f"{self.path} is in use by another process"
        if "not a database" in text:
            return f"{self.path} is not a ledger of vhmc"
        if "malformed" in text:
            return f"{self.path} is damaged ({text})"
        if "full" in text:
            return f"{self.path} cannot grow, as the disk is full: make room, run again"
        if "unable to open" in text or "readonly" in text:
            return f"{self.path} cannot be written: is the folder there, and yours?"
        return f"{self.path} cannot serve as a ledger: {text}"


def _bytes(row: np.ndarray) -> bytes:
    return np.asarray(row, dtype="<f8").tobytes()


def _real(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _arrays(
    rows: list[tuple],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    thetas, energies, grads, reasons = zip(*rows, strict=True) if rows else ([],) * 4
    return (
        np.array([np.frombuffer(theta, "<f8") for theta in thetas], dtype=float),
        np.array([np.inf if e is None else e for e in energies], dtype=float),
        np.array([np.frombuffer(grad, "<f8") for grad in grads], dtype=float),
        np.array(reasons, dtype=object),
    )


def _matrix(rows: list[bytes | None]) -> np.ndarray | None:
    """Outputs of a round, NaN where there are none; None if it has none at all."""
    known = [np.frombuffer(row, "<f8") for row in rows if row is not None]
    if not known:
        return None
    nothing = np.full(len(known[0]), np.nan)
    return np.array(
        [nothing if row is None else np.frombuffer(row, "<f8") for row in rows]
    )


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
