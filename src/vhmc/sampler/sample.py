"""The default sampler: a budget of calls of the model in, draws and a verdict out."""

import warnings
from pathlib import Path
from typing import Any

from vhmc._arguments import path_or_none, whole
from vhmc.evaluation.evaluator import Account, Interrupted
from vhmc.evaluation.replay import Diverged
from vhmc.evaluation.target import Target
from vhmc.report.watch import watching
from vhmc.sampler.interrupt import wish_to_stop
from vhmc.sampler.plan import plan
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.resume import opened, surrogate_on_file
from vhmc.sampler.run import Campaign, Settings, outcome, warn_if_bad
from vhmc.sampler.warm_start import old_surrogate
from vhmc.surrogate.log_density import LogDensity
from vhmc.surrogate.residual import Charted

MOST_BYTES = 2**34
"""Of the draws alone."""
MOST_FEATURES = 20_000
"""Nodes whose normal equations, 3.2 GB, a workstation still solves."""


def sample(
    target: Target,
    budget: int = 1000,
    *,
    draws: int = 1000,
    chains: int = 8,
    correction: str = "auto",
    seed: int = 0,
    num_features: int | None = None,
    warm_start: Posterior | LogDensity | str | Path | None = None,
    ledger: str | Path | None = None,
    progress: bool = True,
) -> Posterior:
    """Sample a posterior within a budget of calls of the model.

    Ctrl-C ends the run after the round under way, with the draws that it can give;
    pressed again it ends at once.

    target: the model.
    budget: calls of the model, at most: one value, one gradient or both together is
        one. Whatever is not needed for a good verdict is not spent.
    draws: draws of every chain; the exact rung returns as many as it could pay for.
    chains: chains on the surrogate, run in one batch.
    correction: `none` (draws of the surrogate), `importance` (checked draws, resampled
        by their weights), `exact` (delayed acceptance, one call a draw, for which 40 %
        of the budget are set aside) or `auto`: `none` or `importance`, whichever has
        the smaller estimated error.
    seed: of all random numbers of the run.
    num_features: nodes of the network, at most; 0 leaves the Gaussian of least Fisher
        divergence.
    warm_start: a posterior of a related model (new data, another prior), its surrogate,
        or the ledger of its run. If the model confirms at a few of its draws that the
        posterior is there, its coordinates are used and nothing is searched for, other
        modes neither; if not, the search begins where it was.
    ledger: file in which every call of the model is written down as it is made. The
        same call of `sample` again goes on where the file ends; with a larger budget a
        finished run goes on training.
    progress: whether to show how far it is: a bar in a terminal or a notebook, else
        lines. The logger `vhmc` is told in any case.
    """
    plan(target, budget, correction)
    budget = int(budget)
    settings = Settings(
        whole("draws", draws, 4),
        whole("chains", chains, 1),
        correction,
        whole("seed", seed),
        None if num_features is None else whole("num_features", num_features),
    )
    _refuse_floods(settings, target.dim)
    ledger = path_or_none("ledger", ledger)
    if isinstance(warm_start, str | Path):
        old: Charted | None = surrogate_on_file(warm_start, target)
    else:
        old = None if warm_start is None else old_surrogate(warm_start, target)
    with (
        opened(ledger, target, budget, settings) as (replay, budgets, is_finished),
        watching(budgets[-1], progress) as watch,
        wish_to_stop() as is_stopped,
    ):
        account = Account(target, budgets[0], replay, is_stopped, watch)
        shares = plan(target, budgets[0], correction)
        campaign = Campaign(account, shares, settings)
        try:
            try:
                campaign.begin(old)
                posterior = _through(campaign, account, budgets, correction)
            except Diverged:
                warnings.warn(
                    "the ledger was written by another machine or other versions: its "
                    "points are kept, but the draws will differ from that run's",
                    stacklevel=2,
                )
                account.absorb()
                account.budget = budgets[-1]
                shares = plan(target, budgets[-1], correction)
                campaign = Campaign(account, shares, settings)
                campaign.begin_with_paid()
                campaign.go()
                posterior = campaign.finish()
            is_finished()
        except Interrupted:
            posterior = campaign.cut_short()
        watch.end(outcome(posterior))
    posterior.settings.update(_more_settings(budgets, warm_start, ledger))
    warn_if_bad(posterior)
    return posterior


def _more_settings(
    budgets: list[int],
    warm_start: Posterior | LogDensity | str | Path | None,
    ledger: str | None,
) -> dict[str, Any]:
    """What else it takes to make the run again."""
    more: dict[str, Any] = {}
    if len(budgets) > 1:
        more |= {"budgets": list(budgets), "ledger": ledger}
    if warm_start is not None:
        is_file = isinstance(warm_start, str | Path)
        more["warm_start"] = str(warm_start) if is_file else "another run"
    return more


def _refuse_floods(settings: Settings, dim: int) -> None:
    """What no machine could hold is to be known before the model is asked."""
    size = settings.draws * settings.chains * dim * 8
    if size > MOST_BYTES:
        raise ValueError(
            f"{settings.draws} draws of {settings.chains} chains in {dim} dimensions "
            f"would take {size / 1e9:.3g} GB: ask for fewer"
        )
    if (settings.num_features or 0) > MOST_FEATURES:
        raise ValueError(
            f"num_features must be at most {MOST_FEATURES}, got {settings.num_features}"
        )


def _through(
    campaign: Campaign, account: Account, budgets: list[int], correction: str
) -> Posterior:
    """A run to its end, and further for each larger budget it was given later."""
    for budget in budgets:
        account.budget = budget
        shares = plan(account.target, budget, correction)
        campaign.shares = campaign.shares._replace(
            correcting=shares.correcting, checking=shares.checking
        )
        campaign.go()
        posterior = campaign.finish()
    return posterior
