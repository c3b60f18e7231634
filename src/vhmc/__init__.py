"""Bayesian posteriors whose gradient is expensive, from few exact gradients.

One idea a room; each imports from itself and from those listed before it:

- `numerics`: HMC, random features, constraints, importance weights, effective sizes.
- `transport`: maps to coordinates in which the posterior is about standard normal.
- `report`: what a run shows while it is under way, and the page it leaves.
- `evaluation`: targets, the evaluator with its budget, the ledger, replay.
- `surrogate`: a transport map, a residual on top of it, and their fit.
- `models`: front ends that turn a user's model into a target.
- `sampler`: `vhmc.sample`, from the search for the mass to the verdict.
- `paper`: the paper's Algorithm 2.
- `lab`: baselines, benchmarks, the paper's experiments and their data.
- `cli`: the command `vhmc`.

Importing this package switches JAX to 64-bit numbers for the whole process: the normal
equations of the surrogate are useless in 32.
"""

from importlib import metadata

import jax

jax.config.update("jax_enable_x64", True)

from vhmc import paper
from vhmc.evaluation.evaluator import RunFailure
from vhmc.evaluation.ledger import LedgerError
from vhmc.evaluation.target import Target
from vhmc.models.from_callable import from_callable
from vhmc.models.from_forward import from_forward
from vhmc.models.from_jax import from_jax
from vhmc.models.from_numpyro import from_numpyro
from vhmc.models.from_pymc import from_pymc
from vhmc.models.from_umbridge import from_umbridge
from vhmc.models.rows.from_rows import from_rows
from vhmc.models.stan.from_stan import from_stan
from vhmc.numerics.constraints import (
    interval,
    ordered,
    positive,
    real,
    simplex,
    unit_interval,
)
from vhmc.sampler.check_draws import check
from vhmc.sampler.plan import Plan, plan
from vhmc.sampler.posterior import Posterior
from vhmc.sampler.sample import sample
from vhmc.sampler.verdict import Verdict
from vhmc.surrogate.surrogate import LogDensity

__version__ = metadata.version("vhmc")

__all__ = [
    "LedgerError",
    "LogDensity",
    "Plan",
    "Posterior",
    "RunFailure",
    "Target",
    "Verdict",
    "check",
    "from_callable",
    "from_forward",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "from_rows",
    "from_stan",
    "from_umbridge",
    "interval",
    "ordered",
    "paper",
    "plan",
    "positive",
    "real",
    "sample",
    "simplex",
    "unit_interval",
]
