"""Run every method, budget and seed on posteriors with known moments."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from vhmc._arguments import whole
from vhmc.lab.bench import hierarchical, posteriordb, synthetic
from vhmc.lab.bench.jobs import Job, run_jobs
from vhmc.lab.bench.measure import METHODS, NUTS, UNBUDGETED, Task
from vhmc.lab.bench.problem import Problem
from vhmc.lab.bench.rows import Row
from vhmc.lab.bench.summary import OURS
from vhmc.sampler.plan import LEAST_BUDGET

PROBLEMS: dict[str, Callable[[], Problem]] = {
    **posteriordb.POSTERIORDB,
    "banana-2": partial(synthetic.banana, 2),
    "banana-10": partial(synthetic.banana, 10),
    "student-t-10": synthetic.student_t,
    "gaussian-50": synthetic.gaussian,
    "hierarchical-noncentred": hierarchical.noncentred,
    "hierarchical-centred": hierarchical.centred,
}
"""By name; each is made when asked for, since data are read then."""
RIVALS = ("fisher-gaussian", "laplace", "laplace+psis", "pathfinder+psis")
WITHOUT_NUTS: dict[str, Any] = {"with_nuts": False}
"""What `--no-nuts` changes."""
QUICK: dict[str, Any] = WITHOUT_NUTS | {
    "problems": ("arK", "banana-2"),
    "budgets": (100, 300),
    "seeds": 1,
}
"""What `--quick` changes."""


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen; other benchmarks have other defaults.

    problems: names in `known`.
    budgets: evaluations, at most.
    seeds: runs of each, with seeds from 0.
    main_budget: that of the tables, one of the budgets.
    with_nuts: whether NUTS runs too, once per seed and without a budget.
    workers: processes, each of which takes one problem at a time.
    methods: names in `METHODS` but for NUTS.
    """

    benchmark: ClassVar[str] = "posteriors"
    known: ClassVar[Mapping[str, Callable[[], Problem]]] = PROBLEMS
    goals: ClassVar[Collection[str]] = posteriordb.POSTERIORDB
    """Problems that the headline counts."""
    goals_are: ClassVar[str] = "posteriors of posteriordb"

    problems: tuple[str, ...] = tuple(PROBLEMS)
    budgets: tuple[int, ...] = (100, 300, 1000, 3000)
    seeds: int = 5
    main_budget: int = 1000
    with_nuts: bool = True
    workers: int = 1
    methods: tuple[str, ...] = (OURS, *RIVALS)

    def __post_init__(self):
        check_names("problem", self.problems, self.known)
        check_names("method", self.methods, [name for name in METHODS if name != NUTS])
        check_budgets(self.budgets)
        whole("seeds", self.seeds, 1)
        whole("workers", self.workers, 1)
        if self.main_budget not in self.budgets:
            raise ValueError(
                f"main_budget must be one of the budgets {_listed(self.budgets)}, got "
                f"{self.main_budget}"
            )

    def tasks(self) -> tuple[Task, ...]:
        """The runs of one problem: the first is the one whose time the tables show."""
        rest = sorted(set(self.budgets) - {self.main_budget})
        runs = [
            (method, budget)
            for budget in (self.main_budget, *rest)
            for method in self.methods
            if method not in UNBUDGETED
        ]
        runs += [(method, 0) for method in self.unbudgeted()]
        return tuple(Task(*run, seed) for run in runs for seed in range(self.seeds))

    def unbudgeted(self) -> tuple[str, ...]:
        """The methods that run once per seed."""
        chosen = (*self.methods, NUTS) if self.with_nuts else self.methods
        return tuple(method for method in UNBUDGETED if method in chosen)

    def shown_budgets(self) -> tuple[int, ...]:
        """Those that get tables."""
        return (self.main_budget,)


def run(
    settings: Settings, report: Callable[[str], None], path: Path | None = None
) -> list[Row]:
    """Run everything but what the file at `path` holds already, and add to it."""
    tasks = settings.tasks()
    jobs = [Job(settings.known[name], name, tasks) for name in settings.problems]
    return run_jobs(jobs, report, path, settings.workers)


def check_names(kind: str, names: tuple[str, ...], known: Collection[str]) -> None:
    """Refuse unknown names, and an empty choice."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"no {kind} is named {_listed(unknown)}: choose from {_listed(known)}"
        )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"name at least one {kind}, and each once")


def check_budgets(budgets: tuple[int, ...]) -> None:
    """Refuse budgets that `vhmc.sample` would."""
    if not budgets or len(set(budgets)) < len(budgets):
        raise ValueError("name at least one budget, and each once")
    if min(budgets) < LEAST_BUDGET:
        raise ValueError(
            f"a budget must be at least {LEAST_BUDGET} evaluations, got {min(budgets)}"
        )


def _listed(values: Collection[Any]) -> str:
    return ", ".join(map(str, values))
