"""The structured posteriors: two forms of a model agree, and references are exact."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm
from scipy.special import log_expit, logsumexp
from typer.testing import CliRunner

import vhmc
from vhmc import cli
from vhmc.lab.bench.measure import NUTPIE, NUTS, NUTS_WITHIN, Task
from vhmc.lab.bench.problem import Model, errors
from vhmc.lab.bench.rows import read_rows
from vhmc.lab.bench.structured.data import read
from vhmc.lab.bench.structured.problems import MODELS, STRUCTURED
from vhmc.lab.bench.structured.quadrature import scale_mixture
from vhmc.lab.bench.structured.run import METHODS, StructuredSettings
from vhmc.numerics.constraints import positive

DIMENSIONS = {
    "eight-schools-noncentred": 10,
    "eight-schools-centred": 10,
    "gp-pois-regr": 13,
    "surgical": 14,
    "hierarchical-noncentred": 22,
    "hierarchical-centred": 22,
    "horseshoe": 22,
    "seeds": 26,
    "item-response": 30,
    "stochastic-volatility-noncentred": 43,
    "stochastic-volatility-centred": 43,
    "glmm-poisson": 45,
    "rats": 65,
    "radon-noncentred": 89,
    "radon-centred": 89,
    "irt-2pl": 144,
    "radon-slopes": 175,
    "mixed-500": 500,
    "local-level-1000": 1002,
    "poisson64": 64,
}
SCALE_OF_EFFECTS = {
    "eight-schools": "tau",
    "hierarchical": "tau",
    "stochastic-volatility": "sigma",
    "radon": "sigma_alpha",
}


def test_the_names_and_dimensions_are_those_of_the_readme():
    found = {name: len(make().names()) for name, make in MODELS.items()}
    assert found | {"poisson64": 64} == DIMENSIONS


@pytest.mark.parametrize("name", STRUCTURED)
def test_a_reference_covers_every_quantity(name):
    problem = STRUCTURED[name]()
    assert len(problem.names) == len(set(problem.names)) == DIMENSIONS[name]
    assert np.isfinite(problem.mean).all() and (problem.sd > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURED)
def test_every_problem_can_be_started(name):
    target = STRUCTURED[name]().make()
    assert target.dim == DIMENSIONS[name]
    answer = target.evaluate(target.start[None])
    assert np.isfinite(answer.energy).all() and np.isfinite(answer.grad).all()


@pytest.mark.parametrize("name", SCALE_OF_EFFECTS)
def test_two_forms_differ_by_the_jacobian(name, seed):
    """Effects that are a scale times white noise: the volume is a power of the scale.

    For the volatility the first effect also has the scale of a stationary process.
    """
    white, centred = (MODELS[f"{name}-{form}"]() for form in ("noncentred", "centred"))
    target = white.make()
    rng = np.random.default_rng(seed)
    thetas = target.start + 0.5 * rng.standard_normal((2, target.dim))
    draws = target.parameters.constrain(thetas)
    values = white.report(draws)
    assert set(values) == set(centred.init)
    for i in range(2):
        z = {key: jnp.asarray(value[i]) for key, value in draws.items()}
        x = {key: jnp.asarray(value[i]) for key, value in values.items()}
        number = max(value.size for value in x.values())
        log_volume = number * jnp.log(x[SCALE_OF_EFFECTS[name]])
        if "phi" in x:
            log_volume -= 0.5 * jnp.log1p(-(x["phi"] ** 2))
        expected = centred.log_density(x) + log_volume
        np.testing.assert_allclose(white.log_density(z), expected, rtol=1e-10)


def test_quadrature_knows_a_conjugate_posterior():
    r"""Normal data whose variance has an inverse gamma prior: Student t by hand.

    With $\sigma^2 \sim \mathrm{IG}(a, b)$ and $\mu \mid \sigma \sim N(0, \sigma^2)$.
    """
    y = np.random.default_rng(3).normal(1.0, 2.0, size=12)
    shape, rate = 3.0, 4.0

    def log_density(p):
        sigma = p["sigma"]
        prior = -(2 * shape + 1) * jnp.log(sigma) - rate / sigma**2
        prior += norm.logpdf(p["mu"], 0, sigma)
        return prior + jnp.sum(norm.logpdf(y, p["mu"], sigma))

    init = {"mu": 0.0, "sigma": 1.0}
    model = Model(log_density, init, {"sigma": positive})
    found = scale_mixture(model, ("sigma",), 0.5)
    weight = len(y) + 1
    mean = y.sum() / weight
    shape += len(y) / 2
    rate += 0.5 * (np.sum(y**2) - weight * mean**2)
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-9)
    variance = rate / (shape - 1)
    np.testing.assert_allclose(found.sd[0] ** 2, variance / weight, rtol=1e-7)
    second = found.mean[1] ** 2 + found.sd[1] ** 2
    np.testing.assert_allclose(second, variance, rtol=1e-7)


def test_quadrature_keeps_the_order_of_the_names():
    problem = STRUCTURED["eight-schools-centred"]()
    found = scale_mixture(MODELS[problem.name](), ("tau",), 0.5)
    np.testing.assert_allclose(found.mean, problem.mean, rtol=1e-5)
    np.testing.assert_allclose(found.sd, problem.sd, rtol=1e-5)


def test_the_reference_of_surgical_is_that_of_nested_sums():
    """One mean for all hospitals; rates are reported, not effects."""
    hospitals = read("surgical")
    log_sigma = np.linspace(-4.5, 1.2, 58)
    # The prior of the variance is an inverse gamma of shape and scale 0.001.
    log_prior = -0.002 * log_sigma - 0.001 * np.exp(-2 * log_sigma)
    mu = np.linspace(-3.8, -1.5, 93)
    parts = [
        nested(hospitals["r"], hospitals["n"], mu, sigma, is_rate=True)
        for sigma in np.exp(log_sigma)
    ]
    log_density, centre, rates = zip(*parts, strict=True)
    sigma = powers(np.exp(log_sigma)[:, None])
    moments = np.concatenate([rates, np.array(centre)[..., None], sigma], axis=2)
    check_reference("surgical", log_prior + np.array(log_density), moments)


def test_the_reference_of_seeds_is_that_of_nested_sums():
    """Given the scale, the four kinds of plates are independent, with a mean each."""
    plates = read("seeds")
    log_sigma = np.linspace(-4.6, 1.2, 59)
    log_density = -0.002 * log_sigma - 0.001 * np.exp(-2 * log_sigma)
    effects = np.empty((len(log_sigma), 2, len(plates["n"])))
    eta = np.linspace(-3.5, 3.5, 281)
    means = {}
    for kind in ((0, 0), (1, 0), (0, 1), (1, 1)):
        of_kind = (plates["x1"] == kind[0]) & (plates["x2"] == kind[1])
        some = [plates[name][of_kind] for name in ("n", "N")]
        parts = [nested(*some, eta, s, is_rate=False) for s in np.exp(log_sigma)]
        marginal, centre, own = zip(*parts, strict=True)
        log_density = log_density + np.array(marginal)
        effects[:, :, of_kind] = own
        means[kind] = np.array(centre)
    # Coefficients are sums and differences of the four means.
    signs = {
        (0, 0): (1, -1, -1, 1),
        (1, 0): (0, 1, 0, -1),
        (0, 1): (0, 0, 1, -1),
        (1, 1): (0, 0, 0, 1),
    }
    first = sum(np.outer(means[k][:, 0], signs[k]) for k in signs)
    spreads = {k: value[:, 1] - value[:, 0] ** 2 for k, value in means.items()}
    variance = sum(np.outer(spreads[k], np.square(signs[k])) for k in signs)
    a = np.stack([first, variance + first**2], axis=1)
    sigma = powers(np.exp(log_sigma)[:, None])
    check_reference("seeds", log_density, np.concatenate([a, effects, sigma], axis=2))


def nested(successes, trials, centres, sigma, is_rate):
    """Sums over a common mean, and over the effect of each unit, at one scale.

    is_rate: whether a unit reports mean plus effect, else the effect alone.

    Log marginal density, and the first two moments of the mean and of each unit.
    """
    z = np.linspace(-8, 8, 321)
    normal = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    logit = centres[:, None] + sigma * z
    value = logit if is_rate else sigma * z
    totals, firsts, seconds = [], [], []
    for success, trial in zip(successes, trials, strict=True):
        log_density = success * log_expit(logit) + (trial - success) * log_expit(-logit)
        weights = np.exp(log_density) * normal
        totals.append(weights.sum(axis=1))
        firsts.append(np.sum(weights * value, axis=1) / totals[-1])
        seconds.append(np.sum(weights * value**2, axis=1) / totals[-1])
    log_totals = np.log(totals).sum(axis=0)
    log_density = logsumexp(log_totals)
    weights = np.exp(log_totals - log_density)
    centre = np.array([weights @ centres, weights @ centres**2])
    units = np.stack([np.array(firsts) @ weights, np.array(seconds) @ weights])
    return log_density, centre, units


def powers(values):
    """First two powers, along axis 1."""
    return np.stack([values, values**2], axis=1)


def check_reference(name, log_density, moments):
    """Compare with moments given each scale; those have axes scale, power, quantity.

    Twenty thousand effective draws have a standard error of 0.007 sd.
    """
    weights = np.exp(log_density - logsumexp(log_density))
    first, second = np.einsum("s,spq->pq", weights, moments)
    sd = np.sqrt(second - first**2)
    problem = STRUCTURED[name]()
    np.testing.assert_allclose((problem.mean - first) / sd, 0, atol=0.03)
    np.testing.assert_allclose(problem.sd / sd, 1, atol=0.03)


def test_every_method_has_its_tasks():
    settings = StructuredSettings(
        methods=(*METHODS, NUTPIE), budgets=(300, 1000), seeds=2
    )
    tasks = settings.tasks()
    assert tasks[0] == Task("vhmc", 1000, 0)
    assert len(tasks) == len(set(tasks)) == 2 * 3 * 2 + 2 * 2
    assert tasks[-4:] == tuple(Task(m, 0, s) for m in (NUTS, NUTPIE) for s in (0, 1))
    assert settings.shown_budgets() == (300, 1000)
    assert Task(NUTS_WITHIN, 300, 0) in StructuredSettings().tasks()


def test_the_command_from_end_to_end(tmp_path):
    arguments = ["bench", "structured", "--problems", "eight-schools-centred"]
    arguments += ["--methods", "laplace", "--budgets", "60,90"]
    arguments += ["--seeds", "1", "--no-nuts", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0, done.output
    assert "0 of 1 structured posteriors within" in done.stdout
    assert "60 evaluations" in done.stdout and "90 evaluations" in done.stdout
    assert len(read_rows(tmp_path / "rows.csv")) == 2


@pytest.mark.slow
def test_nutpie_counts_its_gradients(tmp_path):
    pytest.importorskip("nutpie")
    arguments = ["bench", "structured", "--problems", "eight-schools-noncentred"]
    arguments += ["--methods", "nutpie", "--budgets", "60", "--seeds", "1"]
    done = CliRunner().invoke(
        cli.app, [*arguments, "--no-nuts", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    (row,) = read_rows(tmp_path / "rows.csv")
    assert row.num_evaluations > 8000  # at least one a draw, warm-up included
    assert row.mean_error < 0.15


@pytest.mark.slow
def test_the_quick_benchmark(tmp_path):
    arguments = ["bench", "structured", "--quick", "--budgets", "60", "--out"]
    done = CliRunner().invoke(cli.app, [*arguments, str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert len(read_rows(tmp_path / "rows.csv")) == 2 * len(METHODS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["surgical", "hierarchical-centred", "hierarchical-noncentred", "glmm-poisson"],
)
def test_hierarchical_models_come_out_right(name, seed):
    """Twenty runs with seeds 0 to 4 were off by 0.08 sd and 8 % at most."""
    problem = STRUCTURED[name]()
    target = problem.make()
    posterior = vhmc.sample(target, 1000, seed=seed, progress=False)
    draws = target.parameters.constrain(posterior.unconstrained)
    assert max(errors(problem, draws)) < 0.15, posterior.verdict
