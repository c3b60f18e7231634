"""Models whose answers are noisy, or whose gradients are wrong."""

from collections.abc import Callable
from functools import partial

import numpy as np

from vhmc.lab.bench.verdict.case import Case
from vhmc.models.from_callable import from_callable

Answer = Callable[[np.ndarray], tuple[float, np.ndarray]]


def _curved(rng: np.random.Generator) -> tuple[Answer, Callable, int]:
    """A bent normal: its log density with the gradient, and its draws."""
    dim = int(rng.integers(2, 9))
    curvature, width = rng.uniform(0, 0.5), 10 ** rng.uniform(-0.5, 0.5, dim)

    def answer(theta: np.ndarray) -> tuple[float, np.ndarray]:
        x = theta / width
        rest = x[1:] - curvature * (x[0] ** 2 - 1)
        first = -x[0] + 2 * curvature * x[0] * rest.sum()
        value = -0.5 * (x[0] ** 2 + rest @ rest)
        return float(value), np.append(first, -rest) / width

    def draw(rng: np.random.Generator, size: int) -> np.ndarray:
        x = rng.standard_normal((size, dim))
        x[:, 1:] += curvature * (x[:, :1] ** 2 - 1)
        return x * width

    return answer, draw, dim


def _noise(theta: np.ndarray, size: int) -> np.ndarray:
    """Normal numbers that are the same whenever a point is evaluated."""
    words = np.frombuffer(np.ascontiguousarray(theta).tobytes(), dtype=np.uint32)
    return np.random.default_rng(words).standard_normal(size)


def noisy_values(rng: np.random.Generator) -> Case:
    """Log densities with errors of 0.01 to 1 nats, as of a simulation; true slopes."""
    answer, draw, dim = _curved(rng)
    size = 10 ** rng.uniform(-2, 0)

    def noisy(theta):
        value, grad = answer(theta)
        return value + size * _noise(theta, 1)[0], grad

    return Case(partial(from_callable, noisy, dim), draw)


def noisy_gradients(rng: np.random.Generator) -> Case:
    """Gradients with errors of 1 to 50 % of a posterior's usual slope; true values."""
    answer, draw, dim = _curved(rng)
    size = 10 ** rng.uniform(-2, -0.3)
    scale = draw(np.random.default_rng(0), 1000).std(axis=0)

    def noisy(theta):
        value, grad = answer(theta)
        return value, grad + size * _noise(theta, dim) / scale

    return Case(partial(from_callable, noisy, dim), draw)


def wrong_gradients(rng: np.random.Generator) -> Case:
    """Gradients off by a factor, with a term missing, or with a sign turned."""
    answer, draw, dim = _curved(rng)
    kind, place = rng.integers(3), int(rng.integers(dim))
    factor = np.ones(dim)
    factor[place] = (rng.uniform(0.5, 0.9), 0.0, -1.0)[kind]

    def wrong(theta):
        value, grad = answer(theta)
        return value, factor * grad

    return Case(partial(from_callable, wrong, dim), draw)
