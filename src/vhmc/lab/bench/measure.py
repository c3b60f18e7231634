"""Run one method on one problem; time it and measure its errors."""

import time
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from vhmc._types import Potential
from vhmc.evaluation.target import Answers, Target
from vhmc.evaluation.user_code import Guarded
from vhmc.lab.baselines.nutpie_nuts import load_nutpie
from vhmc.lab.baselines.nuts import load_blackjax
from vhmc.lab.bench import rivals
from vhmc.lab.bench.problem import Problem, errors
from vhmc.lab.bench.rivals import Outcome
from vhmc.lab.bench.rows import Row
from vhmc.sampler.sample import sample


class TimedTarget(Target):
    """A target with a timer of its evaluations; their count is the target's own."""

    def __init__(self, target: Target):
        super().__init__(target.parameters)
        self._counter = target._counter
        self.target, self.route, self.price = target, target.route, target.price
        self.is_serial, self.observable = target.is_serial, target.observable
        self.constants = target.constants
        self.seconds = 0.0

    def fingerprint(self) -> str:
        return self.target.fingerprint()

    @property
    def traced_energy(self) -> Potential | None:
        return self.target.traced_energy

    def _evaluate(self, thetas: np.ndarray) -> Answers:
        began = time.perf_counter()
        try:
            return self.target._evaluate(thetas)
        finally:
            self.seconds += time.perf_counter() - began

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        began = time.perf_counter()
        try:
            return self.target.hessian(theta)
        finally:
            self.seconds += time.perf_counter() - began

    @property
    def hessian_price(self) -> int:
        return self.target.hessian_price

    @property
    def potential(self) -> Potential:
        """The target's own, untimed."""
        return self.target.potential


Method = Callable[[TimedTarget, int, int], Outcome]
"""Takes a target, a budget and a seed."""


def _sampled(**options: Any) -> Method:
    def method(target: TimedTarget, budget: int, seed: int) -> Outcome:
        posterior = sample(target, budget, seed=seed, progress=False, **options)
        return Outcome(
            posterior.unconstrained,
            posterior.num_evaluations,
            " | ".join(posterior.warnings),
            posterior.verdict.status if posterior.verdict else "",
            posterior.correction,
        )

    return method


def _untimed(rival: Callable[[Target, int, int], Outcome]) -> Method:
    """A method that has the model in its own loop."""

    def method(target: TimedTarget, budget: int, seed: int) -> Outcome:
        found = rival(target.target, budget, seed)
        target.seconds = np.nan
        return found

    return method


NUTS, NUTPIE = "nuts", "nutpie"
NUTS_WITHIN, NUTPIE_WITHIN = "nuts-within", "nutpie-within"
BUDGETED: dict[str, Method] = {
    "vhmc": _sampled(),
    "vhmc-unstructured": _sampled(structure=False),
    "fisher-gaussian": _sampled(num_features=0),
    "laplace": rivals.laplace_only,
    "laplace+psis": rivals.laplace_psis,
    "pathfinder+psis": rivals.pathfinder_psis,
    NUTS_WITHIN: _untimed(rivals.nuts_within),
    NUTPIE_WITHIN: _untimed(rivals.nutpie_within),
}
"""Methods that keep to a budget."""
VARIANTS = ("vhmc", "vhmc-unstructured", "fisher-gaussian")
"""Those that are our own sampler."""
UNBUDGETED: dict[str, Method] = {
    NUTS: _untimed(rivals.nuts),
    NUTPIE: _untimed(rivals.nutpie),
}
"""Methods that run once per seed, with as many evaluations as they take."""
METHODS = BUDGETED | UNBUDGETED
NEEDS: dict[str, Callable[[], ModuleType]] = {
    "pathfinder+psis": load_blackjax,
    NUTS: load_blackjax,
    NUTPIE: load_nutpie,
    NUTS_WITHIN: load_blackjax,
    NUTPIE_WITHIN: load_nutpie,
}
"""What imports the library that a method needs."""


class Task(NamedTuple):
    """One run: a method by name, its budget (0 for none) and its seed."""

    method: str
    budget: int
    seed: int


def measure(problem: Problem, target: Target, task: Task, is_first: bool) -> Row:
    """Run a task; a method that raises gets infinite errors and its message as note.

    One that cannot take the model returns no draws, and its errors are NaN.
    """
    timed = TimedTarget(target)
    before = target.num_evaluations
    mean_error = sd_error = np.inf
    began = time.perf_counter()
    with warnings.catch_warnings():
        # A bad verdict warns; here it is a column.
        warnings.simplefilter("ignore")
        run = Guarded(METHODS[task.method])
        outcome, failure = run(timed, task.budget, task.seed)
    seconds = time.perf_counter() - began
    if failure:
        outcome = Outcome(np.empty(0), target.num_evaluations - before, failure)
    elif not len(outcome.draws):
        mean_error = sd_error = np.nan
    else:
        draws = target.parameters.constrain(outcome.draws)
        mean_error, sd_error = errors(problem, draws)
    return Row(
        problem=problem.name,
        dim=target.dim,
        **task._asdict(),
        mean_error=mean_error,
        sd_error=sd_error,
        num_evaluations=outcome.num_evaluations,
        seconds=seconds,
        seconds_outside=seconds - timed.seconds,
        is_first=is_first,
        verdict=outcome.verdict,
        correction=outcome.correction,
        note=" ".join(outcome.note.split()),  # a row is a line of the file
    )
