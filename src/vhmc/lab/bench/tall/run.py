"""Run all methods on all problems in one process, so that times compare."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vhmc.lab.bench.tall.methods import METHODS, load_all
from vhmc.lab.bench.tall.problems import LEAST_ROUNDS, make, reference
from vhmc.lab.bench.tall.race import Compiling, Finish, race
from vhmc.lab.experiments.output import save_table

OURS = "vhmc"


@dataclass(frozen=True)
class Settings:
    """What to run.

    problems: by name; `simulated-100000` has 100,000 rows.
    methods: by name.
    limit: seconds for each method on each problem.
    times: how many times as long as ours a method may take, if ours ran before it.
    rounds: of sixteen exact draws, at most, for the reference.
    """

    problems: tuple[str, ...] = (
        *("a9a", "nycflights", "covtype"),
        *("simulated-10000", "simulated-100000", "simulated-1000000"),
        "simulated-10000000",
    )
    methods: tuple[str, ...] = tuple(METHODS)
    limit: float = 600.0
    times: float = 50.0
    rounds: int = 200

    def __post_init__(self) -> None:
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise ValueError(
                f"methods are {', '.join(METHODS)}, got {', '.join(unknown)}"
            )
        if not (self.limit > 0 and self.times > 0) or self.rounds < LEAST_ROUNDS:
            raise ValueError(
                f"limit and times must be positive, and rounds at least {LEAST_ROUNDS}"
            )


def run(
    folder: Path, settings: Settings, report: Callable[[str], None]
) -> list[Finish]:
    """Run all races; rows are written as they come.

    Simulated problems must come with growing numbers of rows: a method that did not
    arrive in time is left out of those with more.
    """
    folder.mkdir(parents=True, exist_ok=True)
    compiling, rows = Compiling(), []
    load_all(settings.methods)
    slow: dict[str, str] = {}
    for name in settings.problems:
        problem = make(name)
        report(f"{name}: {problem.x.shape[0]} rows, {problem.x.shape[1]} columns")
        truth = reference(problem, settings.rounds)
        report(
            f"  reference known to {truth.rem:.1e} (mean), {truth.rec:.1e} (covariance)"
        )
        limit = settings.limit
        for method in settings.methods:
            if name.startswith("simulated") and method in slow:
                report(
                    f"  {method}: left out, did not arrive in time with {slow[method]}"
                )
                continue
            row = race(problem, truth, method, limit, compiling)
            if method == OURS:
                limit = min(limit, settings.times * row.seconds)
            rows.append(row)
            report(line(row))
            save_table(folder, "races", [row._asdict() for row in rows])
            if name.startswith("simulated") and row.seconds == float("inf"):
                slow[method] = f"{row.rows:,} rows"
    return rows


def line(row: Finish) -> str:
    """One race in a line."""
    end = f"arrived after {row.seconds:.1f} s"
    if row.seconds == float("inf"):
        end = f"not arrived after {row.elapsed:.0f} s (forecast {row.forecast:.0f} s)"
    text = (
        f"  {row.method}: {end}, {row.compiling:.1f} s of it compiling; "
        f"{row.passes:.0f} passes, {row.num_draws} draws, REM {row.rem:.2g}, "
        f"REC {row.rec:.2g}"
    )
    if row.model == row.model:
        text += (
            f"; model {row.model:.1f} s, training {row.training:.1f} s, drawing "
            f"{row.drawing:.1f} s"
        )
    return text + (f"; {row.note}" if row.note else "")
