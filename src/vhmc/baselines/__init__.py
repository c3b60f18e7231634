"""The methods that the paper, and readers of it, compare with."""

from vhmc.baselines.exact_hmc import ExactHMC
from vhmc.baselines.fixed_form import fixed_form, regression
from vhmc.baselines.nuts import nuts
from vhmc.baselines.pathfinder import pathfinder
from vhmc.baselines.sgld import SGLD, Annealed, Constant, natural_gradient
from vhmc.baselines.vbem import probit_vbem
from vhmc.methods.laplace import laplace

__all__ = [
    "SGLD",
    "Annealed",
    "Constant",
    "ExactHMC",
    "fixed_form",
    "laplace",
    "natural_gradient",
    "nuts",
    "pathfinder",
    "probit_vbem",
    "regression",
]
