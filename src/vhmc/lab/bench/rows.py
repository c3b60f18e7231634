"""One run of one method as a row of a file, from which a benchmark can resume."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """What one run cost, and how far its draws are from the truth.

    dim: length of the unconstrained vector.
    budget: evaluations that were allowed; 0 for a method without a budget.
    mean_error: worst error of a mean, in reference standard deviations.
    sd_error: worst relative error of a standard deviation.
    seconds: wall time of the run.
    seconds_outside: the same without the model's own evaluations; NaN where the two
        run in one compiled loop and cannot be separated.
    is_first: whether it was the first of its problem in its process, compilation of
        model and method included.
    verdict, correction: of `vhmc.sample`; empty otherwise.
    note: reasons of the verdict or remarks of a rival, with ` | ` between them.
    """

    problem: str
    dim: int
    method: str
    budget: int
    seed: int
    mean_error: float
    sd_error: float
    num_evaluations: int
    seconds: float
    seconds_outside: float
    is_first: bool
    verdict: str
    correction: str
    note: str

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What identifies a run."""
        return self.problem, self.method, self.budget, self.seed

    def is_within(self, tolerance: float) -> bool:
        """Whether both errors are at most this."""
        return self.mean_error <= tolerance and self.sd_error <= tolerance

    def __str__(self) -> str:
        budget = f" at {self.budget}" if self.budget else ""
        verdict = f", {self.verdict}" if self.verdict else ""
        return (
            f"{self.problem}, {self.method}{budget}, seed {self.seed}: mean error "
            f"{self.mean_error:.2g}, sd error {self.sd_error:.2g}{verdict}, "
            f"{self.num_evaluations} evaluations, {self.seconds:.1f} s"
        )


def read_rows(path: Path, kind: type[Any] = Row) -> list[Any]:
    """Rows of an earlier run; a last line that was cut off is taken out of the file.

    kind: of the rows, a named tuple of texts and numbers.
    """
    if not path.exists():
        return []
    whole, newline, cut = path.read_text().rpartition("\n")
    if cut:
        path.write_text(whole + newline)
    lines = list(csv.reader(whole.splitlines()))
    if not lines:
        return []
    if tuple(lines[0]) != kind._fields or any(len(x) != len(lines[0]) for x in lines):
        raise ValueError(f"{path} is not of this benchmark: choose another folder")
    return [_parsed(line, kind) for line in lines[1:]]


def start_file(path: Path, kind: type[Any] = Row) -> None:
    """Write the header, before workers start that might each write one."""
    if not path.exists() or not path.stat().st_size:
        path.write_text(_lines([kind._fields]))


def append_row(path: Path, row: tuple) -> None:
    """Add a row in one write, so that worker processes can share the file."""
    with path.open("a") as file:
        file.write(_lines([row]))


def _lines(rows: Iterable[tuple]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _parsed(cells: list[str], kind: type[Any]) -> Any:
    values: list[Any] = [
        cell == "True" if entry is bool else entry(cell)
        for cell, entry in zip(cells, kind.__annotations__.values(), strict=True)
    ]
    return kind(*values)
