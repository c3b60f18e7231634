"""Methods to compare with: the paper's baselines, NUTS and Pathfinder."""

from vhmc.lab.baselines.exact_hmc import ExactHMC
from vhmc.lab.baselines.nuts import nuts
from vhmc.lab.baselines.pathfinder import pathfinder
from vhmc.lab.baselines.sgld import SGLD, Annealed, Constant, natural_gradient
from vhmc.lab.baselines.variational import fixed_form, probit_vbem, regression
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
