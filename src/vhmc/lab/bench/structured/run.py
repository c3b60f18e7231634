"""Run the methods on the structured posteriors, with tables for every budget."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from vhmc.lab.bench.measure import NUTPIE, NUTPIE_WITHIN, NUTS_WITHIN
from vhmc.lab.bench.problem import Problem
from vhmc.lab.bench.run import Settings
from vhmc.lab.bench.structured.problems import STRUCTURED
from vhmc.lab.bench.summary import OURS

METHODS = (OURS, "vhmc-unstructured", "pathfinder+psis")
ALL_NUTS = (NUTS_WITHIN, *((NUTPIE_WITHIN, NUTPIE) if find_spec("nutpie") else ()))
WITHOUT_NUTS: dict[str, Any] = {"with_nuts": False, "methods": METHODS}
"""What `--no-nuts` changes: all of these are NUTS."""
QUICK: dict[str, Any] = WITHOUT_NUTS | {
    "problems": ("eight-schools-noncentred", "eight-schools-centred"),
    "budgets": (300,),
    "seeds": 1,
}
"""What `--quick` changes."""


@dataclass(frozen=True)
class StructuredSettings(Settings):
    """The same choices, with other problems and defaults; nutpie if it is installed."""

    benchmark: ClassVar[str] = "structured"
    known: ClassVar[Mapping[str, Callable[[], Problem]]] = STRUCTURED
    goals: ClassVar[Collection[str]] = STRUCTURED
    goals_are: ClassVar[str] = "structured posteriors"

    problems: tuple[str, ...] = tuple(STRUCTURED)
    budgets: tuple[int, ...] = (300, 1000, 3000)
    methods: tuple[str, ...] = (*METHODS, *ALL_NUTS)

    def shown_budgets(self) -> tuple[int, ...]:
        """All of them."""
        return self.budgets
