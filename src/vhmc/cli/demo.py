"""`vhmc demo`: sample an example model that the package includes."""

from pathlib import Path
from typing import Annotated

import typer

from vhmc.cli.sample import FAILED, finish
from vhmc.cli.terminal import Budget, Seed, fail, say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-demo"
    ),
    budget: Budget = 1000,
    seed: Seed = 0,
) -> None:
    """Sample the death rates of twenty cities, and write a report.

    The paper's first example: the beta-binomial model of stomach cancer in Missouri
    (Tsutakawa et al., 1985), with a mean rate m and a precision K.
    """
    from vhmc.evaluation.evaluator import RunFailure
    from vhmc.lab.models.beta_binomial import beta_binomial
    from vhmc.sampler.plan import plan
    from vhmc.sampler.sample import sample

    say(f"Death rates of twenty cities, with at most {budget} evaluations.")
    target = beta_binomial()
    try:
        plan(target, budget)
        out.mkdir(parents=True, exist_ok=True)
        posterior = sample(target, budget, seed=seed)
    except (ValueError, OSError) as error:
        fail(error)
    except RunFailure as error:
        fail(error, FAILED)
    finish(posterior, out)
