"""PyMC models: both routes, transforms of all kinds, and what is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.op import Apply, Op

import vhmc


class Square(Op):
    """An Op that JAX has never heard of, with a gradient of its own."""

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(np.sum(inputs[0] ** 2))

    def L_op(self, inputs, outputs, output_grads):
        return [2 * inputs[0] * output_grads[0]]

    def make_node(self, x):
        return Apply(self, [pt.as_tensor_variable(x)], [pt.dscalar()])


def custom():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 2, shape=3)
        size = pm.Deterministic("size", Square()(x))
        pm.Potential("energy", -0.5 * size)
    return model


def test_an_op_that_jax_cannot_trace_is_compiled_by_pytensor():
    target = vhmc.from_pymc(custom())
    assert target.route.startswith("compiled by PyTensor, as JAX cannot trace it")
    assert "Square" in target.route
    thetas = np.random.default_rng(0).normal(size=(4, 3))
    answer = target.evaluate(thetas)
    # A normal prior of sd 2 and a normal likelihood of sd 1.
    np.testing.assert_allclose(answer.grad, 1.25 * thetas, rtol=1e-10)
    assert target.num_evaluations == 4
    values = target.parameters.expand(thetas)
    np.testing.assert_allclose(values["size"], np.sum(thetas**2, axis=1))


def test_a_compiled_model_is_sampled():
    target = vhmc.from_pymc(custom())
    posterior = vhmc.sample(target, 500, draws=500, chains=4)
    assert posterior.verdict.status == "good", posterior.verdict
    assert np.abs(posterior.draws["x"].std(axis=(0, 1)) / np.sqrt(0.8) - 1).max() < 0.15
    assert posterior.draws["size"].shape == (4, 500)


def test_transforms_of_all_kinds():
    with pm.Model() as model:
        pm.HalfNormal("scale", 1)
        pm.Uniform("rate", -1, 3)
        pm.Dirichlet("shares", np.ones(3))
        pm.Normal(
            "cuts",
            0,
            1,
            shape=3,
            transform=pm.distributions.transforms.ordered,
            initval=[-1.0, 0.0, 1.0],
        )
        pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1))
    target = vhmc.from_pymc(model)
    assert target.route == "traced by JAX"
    thetas = np.random.default_rng(0).normal(size=(5, target.dim))
    values = target.parameters.expand(thetas)
    assert (values["scale"] > 0).all()
    assert ((values["rate"] > -1) & (values["rate"] < 3)).all()
    np.testing.assert_allclose(values["shares"].sum(axis=-1), 1)
    assert (np.diff(values["cuts"], axis=-1) > 0).all()
    log_density = model.compile_logp()
    for theta, energy in zip(thetas, target.evaluate(thetas).energy, strict=True):
        parts = target.parameters.split(theta)
        point = dict(zip([v.name for v in model.value_vars], parts, strict=True))
        assert -energy == pytest.approx(float(log_density(point)), rel=1e-10)


def test_what_cannot_be_sampled_gets_a_sentence():
    with pm.Model() as discrete:
        pm.Poisson("count", 3)
    with pytest.raises(ValueError, match="parameters count are discrete"):
        vhmc.from_pymc(discrete)
    with pm.Model() as empty:
        pm.Normal("y", 0, 1, observed=0.0)
    with pytest.raises(ValueError, match="the model has no parameters"):
        vhmc.from_pymc(empty)


def test_draws_of_the_prior_have_its_moments():
    """Within four standard errors of 400 draws: 0.2 of an sd, 0.14 of an sd's size."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 3.0, 2.0)
        tau = pm.LogNormal("tau", 1.0, 0.5)
        x = pm.Normal("x", mu, tau, shape=3)
        share = pm.Uniform("share", mu, mu + 1.0)
        pm.Normal("y", x[0] + share, 0.01, observed=50.0)
    space = vhmc.from_pymc(model).parameters
    drawn = space.constrain(space.draw_prior(np.random.default_rng(0), 400))
    scores = (drawn["mu"] - 3) / 2, 2 * (np.log(drawn["tau"]) - 1)
    effects = (drawn["x"] - drawn["mu"][:, None]) / drawn["tau"][:, None]
    uniform = np.sqrt(12) * (drawn["share"] - drawn["mu"] - 0.5)
    for score in (*scores, *effects.T, uniform):
        assert abs(score.mean()) < 0.2 and abs(score.std() - 1) < 0.14


def test_an_improper_prior_has_no_draws():
    with pm.Model() as model:
        pm.Flat("a")
        pm.Potential("data", pt.as_tensor_variable(0.0))
    target = vhmc.from_pymc(model)
    assert len(target.draw_prior(np.random.default_rng(0), 5)) == 0
