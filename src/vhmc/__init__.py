"""Bayesian posteriors whose gradient is expensive, from few exact gradients.

The folders are the layers; each imports from itself and from those listed before it:

- `data`: files of the experiments, found or fetched.
- `ledger`: every call of the model on file.
- `progress`: what a run shows while it is under way.
- `core`, `diagnostics`: nodes, fits, potentials, dynamics, transforms.
- `targets`: front ends that turn a user's model into a counted, flat target.
- `methods`, `baselines`: the algorithms, and those we compare with.
- `runs`, `report`: chains iterated, costs added up, draws handed back, and their page.
- `models`: the models of the paper.
- `bench`: posteriors with known moments, and the methods we compare with.
- `experiments`: the paper's figures.
- `cli`: the command `vhmc`.

Importing this package switches JAX to 64-bit numbers for the whole process: the normal
equations of the surrogate are useless in 32.
"""

from importlib import metadata

import jax

jax.config.update("jax_enable_x64", True)

from vhmc import baselines
from vhmc.core.bases import (
    Additive,
    Radial,
    additive,
    fourier,
    radial,
    radial_at,
    softplus,
    unit_additive,
)
from vhmc.core.gaussian import Gaussian, gaussian, standard_normal
from vhmc.core.hmc import HMC
from vhmc.core.mass import Mass, mass_from_covariance, unit_mass
from vhmc.core.potentials import Blend, Surrogate
from vhmc.core.transforms import (
    interval,
    ordered,
    positive,
    real,
    simplex,
    unit_interval,
)
from vhmc.ledger.file import LedgerError
from vhmc.methods.laplace import laplace
from vhmc.methods.schedules import Ramp
from vhmc.methods.vhmc import VHMC
from vhmc.runs.chains import run_chains
from vhmc.runs.default import sample
from vhmc.runs.log_density import LogDensity
from vhmc.runs.paper import sample_paper
from vhmc.runs.plan import Plan, plan
from vhmc.runs.posterior import Posterior
from vhmc.runs.verdict import Verdict
from vhmc.targets.account import RunFailure
from vhmc.targets.from_callable import from_callable
from vhmc.targets.from_jax import from_jax
from vhmc.targets.from_numpyro import from_numpyro
from vhmc.targets.from_pymc import from_pymc
from vhmc.targets.from_umbridge import from_umbridge
from vhmc.targets.rows.from_rows import from_rows
from vhmc.targets.stan.from_stan import from_stan
from vhmc.targets.target import Target

__version__ = metadata.version("vhmc")

__all__ = [
    "HMC",
    "VHMC",
    "Additive",
    "Blend",
    "Gaussian",
    "LedgerError",
    "LogDensity",
    "Mass",
    "Plan",
    "Posterior",
    "Radial",
    "Ramp",
    "RunFailure",
    "Surrogate",
    "Target",
    "Verdict",
    "additive",
    "baselines",
    "fourier",
    "from_callable",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "from_rows",
    "from_stan",
    "from_umbridge",
    "gaussian",
    "interval",
    "laplace",
    "mass_from_covariance",
    "ordered",
    "plan",
    "positive",
    "radial",
    "radial_at",
    "real",
    "run_chains",
    "sample",
    "sample_paper",
    "simplex",
    "softplus",
    "standard_normal",
    "unit_additive",
    "unit_interval",
    "unit_mass",
]
