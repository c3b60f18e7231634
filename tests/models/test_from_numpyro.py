"""NumPyro models: supports of all kinds, dims of plates, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import util

import vhmc


def everything():
    numpyro.sample("scale", dist.HalfNormal(1.0))
    low = numpyro.sample("low", dist.Normal(0, 1))
    # A support that depends on another site.
    numpyro.sample("above", dist.Uniform(low, low + 2))
    numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    with numpyro.plate("outer", 2, dim=-2), numpyro.plate("inner", 3, dim=-1):
        rows = numpyro.sample("rows", dist.Normal(jnp.zeros(4), 1).to_event(1))
        numpyro.deterministic("total", rows.sum(-1))


def test_supports_and_density():
    target = vhmc.from_numpyro(everything)
    space = target.parameters
    assert space.names == ["scale", "low", "above", "shares", "rows"]
    assert space.shapes["shares"] == (3,)
    assert space.shapes["rows"] == (2, 3, 4)
    assert target.dim == 1 + 1 + 1 + 2 + 24
    assert target.num_evaluations == 0
    thetas = np.random.default_rng(0).normal(size=(2, target.dim))
    values = space.expand(thetas)
    assert (values["scale"] > 0).all()
    assert (values["above"] > values["low"]).all()
    np.testing.assert_allclose(values["shares"].sum(-1), 1)
    np.testing.assert_allclose(values["total"], values["rows"].sum(-1))
    # The same energies from NumPyro's own function.
    info = util.initialize_model(jax.random.key(0), everything)
    for theta, energy in zip(thetas, target.evaluate(thetas).energy, strict=True):
        sites = space._unravel(jnp.asarray(theta))
        np.testing.assert_allclose(energy, info.potential_fn(sites), rtol=1e-10)


def test_plates_are_dims():
    space = vhmc.from_numpyro(everything).parameters
    assert space.dims["rows"] == ["outer", "inner", "rows_dim_2"]
    assert space.dims["total"] == ["outer", "inner"]
    assert space.dims["shares"] == ["shares_dim_0"]
    assert space.label(0) == "scale"
    assert space.label(space.dim - 1) == "rows[1, 2, 3]"


def test_no_density_is_computed_to_make_a_target():
    """The likelihood counts how often it runs; tracing does not run it."""
    runs = 0

    def count(x):
        nonlocal runs
        runs += 1
        return np.zeros(())

    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        cost = jax.pure_callback(
            count,
            jax.ShapeDtypeStruct((), float),
            jax.lax.stop_gradient(x),
            vmap_method="sequential",
        )
        numpyro.factor("likelihood", cost)

    target = vhmc.from_numpyro(model)
    assert runs == 0
    assert target.evaluate(np.zeros((1, 1))).reason[0] == ""
    assert runs == 1


def test_what_cannot_be_sampled_gets_a_sentence():
    with pytest.raises(ValueError, match="sites count are discrete"):
        vhmc.from_numpyro(lambda: numpyro.sample("count", dist.Poisson(3.0)))
    with pytest.raises(ValueError, match="the model has no parameters"):
        vhmc.from_numpyro(lambda: None)
