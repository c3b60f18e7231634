"""Stan programs: what is refused, and how the compiled library behaves."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import vhmc

REGRESSION = Path(__file__).parents[2] / "gallery" / "regression.stan"
DATA = {
    "N": 6,
    "D": 2,
    "X": np.stack([np.ones(6), np.arange(6.0)], axis=1),
    "y": np.array([0.1, 1.2, 1.9, 3.2, 3.9, 5.1]),
}


@pytest.fixture(scope="module")
def target():
    return vhmc.from_stan(REGRESSION, DATA, init={"beta": [0.5, 1.0], "sigma": 2.0})


def test_starts_and_labels(target):
    np.testing.assert_allclose(target.start, [0.5, 1.0, np.log(2)])
    space = target.parameters
    assert [space.label(i) for i in range(3)] == ["beta[0]", "beta[1]", "sigma"]
    np.testing.assert_allclose(space.flatten({"beta": [1, 2], "sigma": 1}), [1, 2, 0])


def test_matrices_come_back_as_they_are(target):
    """Stan writes in column-major order; a fitted value belongs to its own row."""
    thetas = np.array([[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]])
    fitted = target.parameters.expand(thetas)["fitted"]
    np.testing.assert_allclose(fitted[0, 0], np.arange(6.0))
    np.testing.assert_allclose(fitted[0, 1], np.ones(6))


def test_threads_give_the_same_answers(target):
    thetas = np.random.default_rng(0).normal(size=(40, 3))
    with ThreadPoolExecutor(4) as threads:
        parallel = vhmc.from_stan(REGRESSION, DATA, parallel=threads)
        answer = parallel.evaluate(thetas)
    np.testing.assert_array_equal(answer.energy, target.evaluate(thetas).energy)
    assert not any(answer.reason)


def test_data_may_be_a_file(target, tmp_path):
    from vhmc.models.stan.from_stan import to_json

    path = tmp_path / "data.json"
    path.write_text(to_json(DATA))
    again = vhmc.from_stan(str(REGRESSION), path)
    thetas = np.ones((1, 3))
    assert again.evaluate(thetas).energy == target.evaluate(thetas).energy


def test_the_pointwise_log_likelihood_may_have_any_name(target):
    by_name = vhmc.from_stan(REGRESSION, DATA, log_likelihood="fitted")
    thetas = np.ones((1, 2, 3))
    (terms,) = by_name.parameters.log_likelihood(thetas).values()
    np.testing.assert_array_equal(terms, target.parameters.expand(thetas)["fitted"])
    with pytest.raises(ValueError, match="no quantity pointwise, only beta, sigma"):
        vhmc.from_stan(REGRESSION, DATA, log_likelihood="pointwise")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "Stan refuses the data: variable does not exist"),
        (DATA | {"N": 7}, "Stan refuses the data: mismatch in dimension"),
        (DATA | {"X": "no"}, "Stan refuses the data"),
        (DATA | {"X": {1, 2}}, "Stan takes numbers and arrays of them"),
    ],
)
@pytest.mark.usefixtures("target")
def test_bad_data_get_a_sentence(data, message):
    with pytest.raises(ValueError, match=message):
        vhmc.from_stan(REGRESSION, data)


def test_a_start_outside_of_the_support(target):
    with pytest.raises(ValueError, match=r"Stan refuses the start: .*(sigma|Lower)"):
        target.parameters.flatten({"beta": [0, 0], "sigma": -1})


def test_a_program_that_is_none():
    with pytest.raises(ValueError, match="stanc refuses the program"):
        vhmc.from_stan("parameters { real x }")
    with pytest.raises(ValueError, match=r"path of one that ends in \.stan"):
        vhmc.from_stan("regression")
    with pytest.raises(FileNotFoundError):
        vhmc.from_stan("nowhere.stan")
