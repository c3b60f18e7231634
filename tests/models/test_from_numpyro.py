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


def test_draws_of_the_prior_have_its_moments():
    """Within four standard errors of 400 draws: 0.2 of an sd, 0.14 of an sd's size."""

    def model(y=None):
        mu = numpyro.sample("mu", dist.Normal(3.0, 2.0))
        tau = numpyro.sample("tau", dist.LogNormal(1.0, 0.5))
        with numpyro.plate("rows", 3):
            x = numpyro.sample("x", dist.Normal(mu, tau))
        numpyro.sample("y", dist.Normal(x[0], 0.01), obs=y)

    space = vhmc.from_numpyro(model, y=50.0).parameters
    drawn = space.constrain(space.draw_prior(np.random.default_rng(0), 400))
    scores = (drawn["mu"] - 3) / 2, 2 * (np.log(drawn["tau"]) - 1)
    effects = (drawn["x"] - drawn["mu"][:, None]) / drawn["tau"][:, None]
    for score in (*scores, *effects.T):
        assert abs(score.mean()) < 0.2 and abs(score.std() - 1) < 0.14


def test_an_improper_prior_has_no_draws():
    def model():
        numpyro.sample("a", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.factor("data", 0.0)

    target = vhmc.from_numpyro(model)
    assert len(target.draw_prior(np.random.default_rng(0), 5)) == 0


def test_a_mode_far_off_within_the_prior_is_found():
    """It is 1,150 sds from where the search begins, beyond all points of the look."""

    def model():
        place = numpyro.sample("place", dist.Normal(0.0, 100.0))
        # Both have half of the mass under this prior.
        logs = [
            -0.5 * ((place - mode) / 0.1) ** 2 + 0.5 * (mode / 100) ** 2
            for mode in (5.0, 120.0)
        ]
        numpyro.factor("data", jnp.logaddexp(*logs))

    def share(target):
        posterior = vhmc.sample(target, 1000, draws=500, seed=0, progress=False)
        return float(np.mean(posterior.draws["place"] > 60)), posterior

    known = vhmc.from_numpyro(model)
    found, posterior = share(known)
    assert abs(found - 0.5) < 0.1
    assert any("draws of the prior" in note for note in posterior.verdict.notes)
    unknown = vhmc.from_numpyro(model)
    unknown.parameters.draw_prior = lambda rng, number: None
    assert share(unknown)[0] == 0, "without them it is missed"
