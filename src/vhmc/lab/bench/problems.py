"""The table of problems; each is made when asked for, since data are read then."""

from collections.abc import Callable
from functools import partial

from vhmc.lab.bench import hierarchical, posteriordb, synthetic
from vhmc.lab.bench.problem import Problem

POSTERIORDB: dict[str, Callable[[], Problem]] = {
    "arK": posteriordb.ark,
    "eight_schools": posteriordb.eight_schools,
    "garch": posteriordb.garch,
    "gp_pois_regr": posteriordb.gp_pois_regr,
    "kidiq": posteriordb.kidiq,
    "low_dim_gauss_mix": posteriordb.low_dim_gauss_mix,
}
PROBLEMS: dict[str, Callable[[], Problem]] = {
    **POSTERIORDB,
    "banana-2": partial(synthetic.banana, 2),
    "banana-10": partial(synthetic.banana, 10),
    "student-t-10": synthetic.student_t,
    "gaussian-50": synthetic.gaussian,
    "hierarchical-noncentred": hierarchical.noncentred,
    "hierarchical-centred": hierarchical.centred,
}
