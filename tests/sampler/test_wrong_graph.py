"""A graph that lacks true edges must not give a wrong answer that is called good."""

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc

LIMITS = 0.25, 0.25
"""Error of a mean in posterior sd, and relative error of an sd."""
BUDGET = 400


def worst_errors(posterior, mean, sd):
    draws = posterior.unconstrained.reshape(-1, len(mean))
    mean_error = np.abs(draws.mean(axis=0) - mean) / sd
    return mean_error.max(), np.abs(draws.std(axis=0) / sd - 1).max()


def assert_right_or_not_good(posterior, mean, sd):
    errors = worst_errors(posterior, mean, sd)
    is_right = all(e < limit for e, limit in zip(errors, LIMITS, strict=True))
    assert is_right or posterior.verdict.status != "good", (errors, posterior.verdict)


@pytest.mark.filterwarnings("ignore:verdict bad")
def test_a_correlated_normal_taken_as_independent(seed):
    dim = 5
    covariance = 0.8 * np.ones((dim, dim)) + 0.2 * np.eye(dim)
    precision = np.linalg.inv(covariance)
    target = vhmc.from_jax(lambda x: -0.5 * x @ precision @ x, np.zeros(dim))
    posterior = vhmc.sample(
        target, BUDGET, structure=np.eye(dim), seed=seed, progress=False
    )
    assert posterior.structure.source == "given"
    assert_right_or_not_good(posterior, np.zeros(dim), np.sqrt(np.diag(covariance)))


@pytest.mark.filterwarnings("ignore:verdict bad")
def test_groups_without_the_edges_of_their_mean(seed):
    """Normal groups of known scales: the moments are those of a linear system."""
    y, noise, scale = np.array([2.8, 0.8, -0.3, 0.7, -0.1, 0.1]), 1.0, 0.7
    dim = len(y) + 1

    def log_density(x):
        data = jnp.sum((y - x[1:]) ** 2) / noise**2
        groups = jnp.sum((x[1:] - x[0]) ** 2) / scale**2
        return -0.5 * (data + groups + x[0] ** 2 / 25)

    precision = np.eye(dim) * (1 / noise**2 + 1 / scale**2)
    precision[0, 0] = len(y) / scale**2 + 1 / 25
    precision[0, 1:] = precision[1:, 0] = -1 / scale**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ np.concatenate([[0.0], y / noise**2])
    posterior = vhmc.sample(
        vhmc.from_jax(log_density, np.zeros(dim)),
        BUDGET,
        structure=np.eye(dim),
        seed=seed,
        progress=False,
    )
    assert_right_or_not_good(posterior, mean, np.sqrt(np.diag(covariance)))
