"""Bridge sampling between densities whose constants are known."""

import numpy as np
import pytest

from vhmc.numerics.bridge import bridge

LIMIT = 5.0
"""Errors that an estimate may be off; a normal one is so once in 1.7 million."""
SEEDS = 200


def log_ratio(x: np.ndarray, mean: float, scale: float) -> np.ndarray:
    """Of a normal times 7 to the standard normal without its constant, rows of `x`."""
    dim = x.shape[-1]
    own = np.sum((x - mean) ** 2, axis=-1) / (2 * scale**2)
    return np.sum(x**2, axis=-1) / 2 - own - dim * np.log(scale) + np.log(7.0)


def between_normals(seed: int, number: int, dim: int, mean: float, scale: float):
    """A bridge from N(mean, scale^2) to N(0, 1); the true log ratio is log 7."""
    rng = np.random.default_rng(seed)
    first = mean + scale * rng.standard_normal((number, dim))
    second = rng.standard_normal((2 * number, dim))
    return bridge(log_ratio(first, mean, scale), log_ratio(second, mean, scale))


def test_known_constants():
    """Near and farther densities: a false alarm once in 400,000 runs."""
    for mean, scale in [(0.3, 1.1), (1.0, 0.6), (0.0, 2.0), (2.0, 1.0)]:
        found = between_normals(0, 2000, 2, mean, scale)
        assert abs(found.log_ratio - np.log(7.0)) < LIMIT * found.error
        assert found.error < 0.1


def test_equal_densities_have_no_error():
    """Up to a constant: exact, whatever the draws."""
    found = bridge(np.full((4, 100), 1.5), np.full(70, 1.5))
    assert found.log_ratio == pytest.approx(1.5, abs=1e-8)
    assert found.error == pytest.approx(0, abs=1e-12)
    assert found.overlap == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(("mean", "scale"), [(0.4, 1.0), (2.5, 0.8)])
def test_calibrated_error(mean, scale):
    """Heavy and poor overlap: z scores of 200 runs have sd 1.

    Their root mean square has standard deviation 0.05: 5 of them, once in 1.7 million.
    """
    runs = [between_normals(seed, 400, 1, mean, scale) for seed in range(SEEDS)]
    scores = np.array([(run.log_ratio - np.log(7.0)) / run.error for run in runs])
    assert abs(np.sqrt(np.mean(scores**2)) - 1) < 5 / np.sqrt(2 * SEEDS)


def test_autocorrelated_chains():
    """Chains count by their effective size, or the error would be 4 times too small.

    An autoregression of coefficient 0.88 is worth a sixteenth of its draws. The limits
    are wider than five standard deviations of a root mean square of 100 scores, for the
    effective size is estimated too.
    """
    scores = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        chains = np.empty((4, 1000, 1))
        chains[:, 0] = rng.standard_normal((4, 1))
        for step in range(1, 1000):
            noise = np.sqrt(1 - 0.88**2) * rng.standard_normal((4, 1))
            chains[:, step] = 0.88 * chains[:, step - 1] + noise
        second = rng.standard_normal((4000, 1))
        first = log_ratio(0.7 + 0.8 * chains, 0.7, 0.8)
        found = bridge(first, log_ratio(second, 0.7, 0.8))
        scores.append((found.log_ratio - np.log(7.0)) / found.error)
    assert 0.55 < np.sqrt(np.mean(np.square(scores))) < 1.5


def test_more_overlap_is_a_smaller_error():
    """The farther apart, the less two densities say about each other."""
    runs = [between_normals(1, 1000, 1, mean, 1.0) for mean in (0.5, 2.0, 3.5)]
    assert runs[0].overlap > runs[1].overlap > runs[2].overlap
    assert runs[0].error < runs[1].error < runs[2].error


def test_no_overlap_is_said():
    """Nothing is known if no draw of one could be one of the other."""
    assert np.isinf(between_normals(2, 1000, 1, 12.0, 1.0).error)
    apart = bridge(np.full(100, np.inf), np.full(100, -np.inf))
    assert np.isnan(apart.log_ratio) and np.isinf(apart.error)


def test_bounded_support():
    """A uniform density on (0, 1) within one on (0, 4): the ratio is a quarter.

    Every draw of the first may be one of the second; a false alarm once in 1.7 million.
    """
    second = np.random.default_rng(3).uniform(0, 4, 2000)
    found = bridge(np.zeros(1000), np.where(second < 1, 0.0, -np.inf))
    assert abs(found.log_ratio - np.log(0.25)) < LIMIT * found.error
    assert found.error < 0.1
