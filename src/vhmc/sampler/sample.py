"""`vhmc.sample`: a budget of evaluations in, draws and a verdict out."""

import warnings
from pathlib import Path
from typing import Any

from vhmc._arguments import path_or_none, whole
from vhmc.evaluation.centred_evaluator import CentredEvaluator
from vhmc.evaluation.resume import opened
from vhmc.models.model_target import Data, Model, model_target
from vhmc.report.watch import watching
from vhmc.sampler.interrupt import stop_requested
from vhmc.sampler.model_graph import centring, identified, model_graph
from vhmc.sampler.plan import Settings, plan
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.run import Run
from vhmc.sampler.warm_start import WarmStart, old_surrogate

MAX_BYTES = 2**34
"""Of the draws alone."""
MAX_FEATURES = 20_000
"""Nodes whose normal equations, 3.2 GB, a workstation still solves."""


def sample(
    model: Model = None,
    budget: int = 1000,
    *,
    data: Data = None,
    draws: int = 1000,
    chains: int = 8,
    correction: str = "auto",
    seed: int = 0,
    num_features: int | None = None,
    structure: Any = True,
    warm_start: WarmStart = None,
    ledger: str | Path | None = None,
    progress: bool = True,
) -> Posterior:
    """Sample a posterior within a budget of evaluations.

    Ctrl-C ends the run after the round under way, with the draws that it can give;
    pressed again it ends at once.

    model: a target, a PyMC model, a NumPyro model with its arguments bound, or the path
        of a Stan program; by default the PyMC model of the surrounding `with` block.
    budget: evaluations of the model, at most: one value, one gradient or both together
        is one. The run stops early once the verdict is good.
    data: of a Stan program: a dict, or the path of a JSON file.
    draws: draws of every chain; the exact correction returns as many as the budget
        allows.
    chains: chains on the surrogate, run in one batch.
    correction: `none` (draws of the surrogate), `importance` (checked draws, resampled
        by their weights), `exact` (delayed acceptance, one evaluation a draw, for
        which 40 % of the budget are set aside) or `auto`: `none` or `importance`,
        whichever has the smaller estimated error.
    seed: of all random numbers of the run.
    num_features: nodes of the network, at most; 0 leaves the Gaussian of least Fisher
        divergence.
    structure: whether to use the conditional independence of the parameters, which is
        read off the model's program. It can be given as a symmetric matrix whose zeros
        say which pairs of unconstrained parameters are independent given all others;
        `{"hubs": names}` chooses the parameters given which all others are treated as
        Gaussian.
    warm_start: a posterior of a related model (new data, another prior), its surrogate,
        or the ledger of its run. If the model confirms at a few of its draws that the
        posterior is there, its transport map is used and nothing is searched for; if
        not, the search begins where it was.
    ledger: file in which every evaluation is written down as it is made. The same call
        again goes on where the file ends; with a larger budget a finished run goes on
        training.
    progress: whether to show how far it is: a bar in a terminal or a notebook, else
        lines. The logger `vhmc` gets the messages in any case.
    """
    target = model_target(model, data)
    plan(target, budget, correction)
    budget = int(budget)
    settings = Settings(
        whole("draws", draws, 4),
        whole("chains", chains, 1),
        correction,
        whole("seed", seed),
        None if num_features is None else whole("num_features", num_features),
        identified(target, structure),
    )
    _refuse_too_large(settings, target.dim)
    ledger = path_or_none("ledger", ledger)
    old = old_surrogate(warm_start, target)
    chosen = settings._asdict()
    with (
        opened(ledger, target, budget, chosen) as (replay, budgets, note_finished),
        watching(budgets[-1], progress) as watch,
        stop_requested() as is_stopped,
    ):
        found = model_graph(target, structure, centre=old is None or old.is_centred)
        layer = centring(found, target.parameters)
        parts = target, budgets[0], replay, is_stopped, watch
        evaluator = CentredEvaluator(layer, *parts)
        run = Run(evaluator, settings, watch, found)
        posterior = run.execute(budgets, old)
        if run.is_complete:
            note_finished()
        watch.end(_outcome(posterior))
    posterior.settings.update(_more_settings(budgets, warm_start, ledger))
    if posterior.verdict is not None and posterior.verdict.status == "bad":
        warnings.warn(f"verdict bad: {posterior.verdict.reasons[0]}", stacklevel=2)
    return posterior


def _outcome(posterior: Posterior) -> str:
    """How a run ended, in a line."""
    verdict = posterior.verdict
    assert verdict is not None
    reason = f" ({verdict.reasons[0]})" if verdict.reasons else ""
    return f"verdict {verdict.status}{reason}"


def _more_settings(
    budgets: list[int], warm_start: WarmStart, ledger: str | None
) -> dict[str, Any]:
    """What else it takes to make the run again."""
    more: dict[str, Any] = {}
    if len(budgets) > 1:
        more |= {"budgets": list(budgets), "ledger": ledger}
    if warm_start is not None:
        is_file = isinstance(warm_start, str | Path)
        more["warm_start"] = str(warm_start) if is_file else "another run"
    return more


def _refuse_too_large(settings: Settings, dim: int) -> None:
    """Refuse what no machine could hold before the model is evaluated."""
    size = settings.draws * settings.chains * dim * 8
    if size > MAX_BYTES:
        raise ValueError(
            f"{settings.draws} draws of {settings.chains} chains in {dim} dimensions "
            f"would take {size / 1e9:.3g} GB: ask for fewer"
        )
    if (settings.num_features or 0) > MAX_FEATURES:
        raise ValueError(
            f"num_features must be at most {MAX_FEATURES}, got {settings.num_features}"
        )
