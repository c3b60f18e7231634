r"""Divergence of a surrogate from the exact posterior in two dimensions.

Divergences are computed by quadrature on a box that holds all but 5e-5 of the exact
posterior, with both densities normalised there; the surrogate's mass outside of the box
is reported too.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vhmc._types import PRNGKey
from vhmc.lab.diagnostics import quadrature
from vhmc.lab.diagnostics.quadrature import Grid
from vhmc.lab.models.beta_binomial import beta_binomial
from vhmc.numerics.chains import run_chains
from vhmc.paper.algorithm2 import VHMC
from vhmc.paper.doubts import doubts
from vhmc.paper.potentials import Surrogate
from vhmc.paper.sample import frozen_kernel
from vhmc.paper.training import Trained

LOWER, UPPER = (-8.5, 2.0), (-4.5, 20.0)
WIDE_LOWER, WIDE_UPPER = (-11.0, -5.0), (-1.0, 35.0)
GRID_SIZE = 250
NUM_CHAINS = 4
LEAK = 0.01
"""Fraction of its mass outside the box above which a surrogate is said to leak."""


class Exact(NamedTuple):
    """The posterior by quadrature, which the method itself does not see."""

    box: Grid
    log_p: jax.Array
    grads: jax.Array
    mean: np.ndarray
    sd: np.ndarray


def exact_posterior() -> Exact:
    """Density, gradients and moments of the posterior on a grid."""
    box = quadrature.grid(LOWER, UPPER, GRID_SIZE)
    target = beta_binomial()
    log_p = quadrature.log_probabilities(target.potential, box)
    grads = jnp.asarray(target.evaluate(np.asarray(box.points)).grad)
    mean, covariance = quadrature.moments(log_p, box)
    return Exact(box, log_p, grads, mean, np.sqrt(np.diag(covariance)))


def measure(
    key: PRNGKey, method: VHMC, trained: Trained, exact: Exact, num_draws: int
) -> dict[str, Any]:
    """How far one trained surrogate and its chains are from the exact posterior."""
    surrogate = trained.state.surrogate
    log_q = quadrature.log_probabilities(surrogate, exact.box)
    key_tune, key_draw = jax.random.split(key)
    kernel, starts = frozen_kernel(key_tune, method, trained, NUM_CHAINS)
    run = run_chains(key_draw, kernel, starts, surrogate, num_draws, num_draws // 2)
    draws = np.asarray(run.theta).reshape(-1, 2)
    # The warnings that a user gets, who does not know the exact posterior.
    warned = [trained.failure] if trained.failure else doubts(method, trained, run)
    return {
        "kl": quadrature.kl_divergence(log_q, exact.log_p),
        "kl_reverse": quadrature.kl_divergence(exact.log_p, log_q),
        "d_sm": quadrature.score_distance(
            surrogate, exact.box.points, exact.grads, jnp.exp(log_q)
        ),
        "outside": mass_outside(surrogate),
        "evaluations": len(trained.theta),
        "acceptance_training": trained.acceptance,
        "acceptance_frozen": float(run.accept_prob.mean()),
        "mean_error": float(np.abs((draws.mean(0) - exact.mean) / exact.sd).max()),
        "sd_error": float(np.abs(draws.std(0) / exact.sd - 1).max()),
        "warnings": " | ".join(warned),
    }


def mass_outside(surrogate: Surrogate) -> float:
    """The surrogate's mass outside the box, within one that is 5.6 times as large."""
    wide = quadrature.grid(WIDE_LOWER, WIDE_UPPER, GRID_SIZE)
    probabilities = np.exp(quadrature.log_probabilities(surrogate, wide))
    points = np.asarray(wide.points)
    inside = np.all((points > LOWER) & (points < UPPER), axis=1)
    return float(probabilities[~inside].sum())


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, float]]:
    """One row per number of nodes: medians, quartiles, means over all repetitions.

    Figures show medians: divergences vary over orders of magnitude, and a single
    surrogate that is too low somewhere decides their mean.
    """
    table = []
    for number in sorted({row["nodes"] for row in rows}):
        chosen = [row for row in rows if row["nodes"] == number]
        line: dict[str, float] = {"nodes": number, "repetitions": len(chosen)}
        for name in ("kl", "d_sm", "mean_error", "sd_error"):
            values = np.array([row[name] for row in chosen])
            quartiles = np.nanquantile(values, [0.25, 0.5, 0.75])
            names = "lower", "median", "upper", "mean", "max"
            figures = *quartiles, np.nanmean(values), np.nanmax(values)
            for kind, value in zip(names, figures, strict=True):
                line[f"{name}_{kind}"] = float(value)
        for name in ("acceptance_training", "acceptance_frozen"):
            line[name] = float(np.nanmedian([row[name] for row in chosen]))
        line["evaluations"] = sum(row["evaluations"] for row in chosen)
        line["num_leaking"] = sum(row["outside"] > LEAK for row in chosen)
        line["num_warned"] = sum(bool(row["warnings"]) for row in chosen)
        table.append(line)
    return table
