"""`vhmc demo`: from install to verdict on the model that the package carries."""

from pathlib import Path
from typing import Annotated

import typer

from vhmc.cli.sample import FAILED, end, leave, show
from vhmc.cli.terminal import fail, say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for all that comes out.")] = Path(
        "vhmc-demo"
    ),
    budget: Annotated[int, typer.Option(help="Calls of the model, at most.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
) -> None:
    """Sample the death rates of twenty cities, and leave a report to look at.

    The beta-binomial model of stomach cancer in Missouri (Tsutakawa et al., 1985), with
    a mean rate m and a precision K, is what the paper begins with.
    """
    from vhmc.evaluation.evaluator import RunFailure
    from vhmc.lab.models.beta_binomial import beta_binomial
    from vhmc.sampler.plan import plan
    from vhmc.sampler.sample import sample

    say(f"Death rates of twenty cities, with {budget} calls of the model at most.")
    target = beta_binomial()
    try:
        plan(target, budget)
        out.mkdir(parents=True, exist_ok=True)
        posterior = sample(target, budget, seed=seed)
    except (ValueError, OSError) as error:
        fail(error)
    except RunFailure as error:
        fail(error, FAILED)
    leave(posterior, out)
    show(posterior, out)
    end(posterior)
