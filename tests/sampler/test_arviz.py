"""What a run hands to ArviZ is what ArviZ plots, summarises and compares."""

import jax.numpy as jnp
import matplotlib
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import vhmc
from vhmc._imports import load_arviz

matplotlib.use("Agg")
az = load_arviz()
IS_FIRST = int(az.__version__.split(".")[0]) < 1
PLOTS = "plot_trace", "plot_pair", "plot_forest", "plot_ess"


def model(y):
    mean = numpyro.sample("mean", dist.Normal(0, 10))
    with numpyro.plate("group", 2):
        effect = numpyro.sample("effect", dist.Normal(mean, 1))
        with numpyro.plate("row", y.shape[0]):
            numpyro.sample("y", dist.Normal(effect, 1), obs=y)
    numpyro.deterministic("contrast", effect[0] - effect[1])


@pytest.fixture(scope="module")
def posterior():
    y = np.random.default_rng(0).normal([0.0, 1.0], size=(10, 2))
    target = vhmc.from_numpyro(model, jnp.asarray(y))
    return vhmc.sample(target, 300, draws=200, chains=4)


@pytest.fixture(scope="module")
def data(posterior):
    return posterior.to_arviz(log_likelihood=True)


def test_groups_names_and_dims(data):
    draws = data["posterior"]
    assert set(draws.data_vars) == {"mean", "effect", "contrast"}
    assert draws["effect"].dims == ("chain", "draw", "group")
    assert draws["effect"].shape == (4, 200, 2)
    assert data["log_likelihood"]["y"].dims == ("chain", "draw", "row", "group")
    contrast = draws["effect"][..., 0] - draws["effect"][..., 1]
    np.testing.assert_allclose(draws["contrast"], contrast)


@pytest.mark.filterwarnings("ignore")  # of ArviZ's own making
@pytest.mark.parametrize("plot", PLOTS)
def test_plots_are_drawn(data, plot):
    import matplotlib.pyplot as plt

    getattr(az, plot)(data, var_names=["mean", "effect"])
    assert plt.get_fignums()
    plt.close("all")


def test_the_table_has_every_name(posterior):
    rows = list(posterior.summary().index)
    assert len(rows) == 4
    assert {row.partition("[")[0] for row in rows} == {"mean", "effect", "contrast"}


@pytest.mark.filterwarnings("ignore")
def test_leave_one_out(data):
    """Twenty observations of sd 1 with two means: about two effective parameters."""
    found = az.loo(data)
    p_loo = found.p_loo if IS_FIRST else found.p
    assert 1 < p_loo < 4


def test_a_model_that_knows_no_likelihood_says_so():
    target = vhmc.from_callable(lambda theta: (-0.5 * theta @ theta, -theta), 2)
    posterior = vhmc.sample(target, 200, draws=50, chains=2)
    with pytest.raises(ValueError, match="does not say the likelihood of single data"):
        posterior.to_arviz(log_likelihood=True)
