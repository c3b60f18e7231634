"""The paper's Algorithm 2, with every part that it is made of."""

from vhmc.numerics.bases import (
    Additive,
    Radial,
    additive,
    fourier,
    radial,
    radial_at,
    softplus,
    unit_additive,
)
from vhmc.numerics.chains import run_chains
from vhmc.numerics.gaussian import Gaussian, gaussian, standard_normal
from vhmc.numerics.hmc import HMC
from vhmc.numerics.mass import Mass, mass_from_covariance, unit_mass
from vhmc.paper.algorithm2 import VHMC, Ramp
from vhmc.paper.laplace_guide import laplace
from vhmc.paper.potentials import Blend, Surrogate
from vhmc.paper.sample import sample_paper

__all__ = [
    "HMC",
    "VHMC",
    "Additive",
    "Blend",
    "Gaussian",
    "Mass",
    "Radial",
    "Ramp",
    "Surrogate",
    "additive",
    "fourier",
    "gaussian",
    "laplace",
    "mass_from_covariance",
    "radial",
    "radial_at",
    "run_chains",
    "sample_paper",
    "softplus",
    "standard_normal",
    "unit_additive",
    "unit_mass",
]
