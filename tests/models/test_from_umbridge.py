"""Models behind HTTP: a real UM-Bridge server on loopback."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

import vhmc
from tests.test_gallery import load
from vhmc.models.from_umbridge import Server

rod = load("umbridge_rod")


@pytest.fixture(scope="module")
def url():
    with rod.running_server() as address:
        yield address


def target(url, **options):
    options = {"prior": (np.zeros(4), 1.0), "noise": (rod.data(), rod.NOISE)} | options
    return vhmc.from_umbridge(url, "rod", **options)


def log_density(q):
    """The same posterior without the server."""
    faces = jnp.repeat(jnp.exp(q), rod.CELLS // rod.PIECES) * rod.CELLS**2
    matrix = jnp.diag(faces[:-1] + faces[1:])
    matrix = matrix - jnp.diag(faces[1:-1], 1) - jnp.diag(faces[1:-1], -1)
    output = jnp.linalg.solve(matrix, jnp.ones(rod.CELLS - 1))[rod.SENSORS]
    return jnp.sum(norm.logpdf(rod.data(), output, rod.NOISE)) + jnp.sum(norm.logpdf(q))


@pytest.mark.parametrize(
    ("options", "accuracy", "price"),
    [
        ({}, 1e-8, 1),
        ({"workers": 3}, 1e-8, 1),
        ({"differences": "central"}, 1e-5, 9),
        (
            {
                "prior": lambda q: jnp.sum(norm.logpdf(q)),
                "noise": lambda u: jnp.sum(norm.logpdf(rod.data(), u, rod.NOISE)),
            },
            1e-8,
            1,
        ),
    ],
)
def test_densities_and_gradients_are_those_of_the_model(url, options, accuracy, price):
    served = target(url, **options)
    expected = vhmc.from_jax(log_density, np.zeros(4))
    thetas = np.random.default_rng(0).normal(scale=0.5, size=(5, 4))
    answer, truth = served.evaluate(thetas), expected.evaluate(thetas)
    np.testing.assert_allclose(answer.energy, truth.energy, rtol=1e-8)
    scale = np.abs(truth.grad).max()
    np.testing.assert_allclose(answer.grad, truth.grad, atol=accuracy * scale)
    assert served.num_evaluations == 5 * price


def test_what_the_server_refuses_is_raised_in_its_words(url):
    server = Server(url, "rod", {}, None)
    with pytest.raises(RuntimeError, match="InvalidInput: Input parameter 0 has"):
        server.ask("Evaluate", input=[[0.0]], config={})


def test_a_server_that_goes_away_is_a_reason():
    with rod.running_server() as address:
        served = target(address)
        assert served.evaluate(np.zeros((1, 4))).reason[0] == ""
    answers = served.evaluate(np.zeros((1, 4)))
    assert "Connection refused" in answers.reason[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": None}, "the model has 8 outputs: give the noise"),
        ({"noise": (np.zeros(3), 1.0)}, "noise must be a function or a pair of arrays"),
        ({"prior": (np.zeros(4), 0.0)}, "standard deviations of the prior must be"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"names": ["a"]}, "names are for 1 parameters, dim is 4"),
    ],
)
def test_bad_options_get_a_sentence(url, options, message):
    with pytest.raises(ValueError, match=message):
        target(url, **options)


def test_no_server_and_no_such_model(url):
    with pytest.raises(ValueError, match="no UM-Bridge server answers at http"):
        vhmc.from_umbridge("http://127.0.0.1:9", "rod")
    with pytest.raises(ValueError, match="has no model beam: it has rod"):
        vhmc.from_umbridge(url, "beam")
