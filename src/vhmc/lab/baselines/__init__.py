"""The methods that the paper, and readers of it, compare with."""

from vhmc.lab.baselines.exact_hmc import ExactHMC
from vhmc.lab.baselines.fixed_form import fixed_form, regression
from vhmc.lab.baselines.nuts import nuts
from vhmc.lab.baselines.pathfinder import pathfinder
from vhmc.lab.baselines.sgld import SGLD, Annealed, Constant, natural_gradient
from vhmc.lab.baselines.vbem import probit_vbem
from vhmc.paper.laplace_guide import laplace

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
