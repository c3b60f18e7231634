"""Targets: named parameters, transforms, and the count of evaluations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vhmc

PRECISION = np.array([[2.0, 0.5], [0.5, 1.0]])


def quadratic(theta):
    return -0.5 * theta @ PRECISION @ theta, -PRECISION @ theta


def traced():
    return vhmc.from_jax(lambda x: -0.5 * x @ PRECISION @ x, jnp.zeros(2))


def opaque():
    return vhmc.from_callable(quadratic, 2)


KINDS = {"from_jax": traced, "from_callable": opaque}


@pytest.mark.parametrize("kind", KINDS)
def test_energies_and_gradients(kind):
    target = KINDS[kind]()
    thetas = np.random.default_rng(0).normal(size=(5, 2))
    answers = target.evaluate(thetas)
    np.testing.assert_allclose(answers.grad, thetas @ PRECISION, rtol=1e-12)
    expected = 0.5 * np.einsum("ni,ij,nj->n", thetas, PRECISION, thetas)
    np.testing.assert_allclose(answers.energy, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_hessian(kind):
    target = KINDS[kind]()
    np.testing.assert_allclose(target.hessian(np.ones(2)), PRECISION, rtol=1e-8)


@pytest.mark.parametrize(("kind", "hessian"), [("from_jax", 2), ("from_callable", 4)])
def test_nothing_bypasses_the_counter(kind, hessian):
    """Batches, Hessians, and traced values and gradients, alone and in batches."""
    target = KINDS[kind]()
    potential = target.potential
    target.evaluate(np.zeros((3, 2)))
    assert target.num_evaluations == 3
    target.hessian(np.zeros(2))
    assert target.num_evaluations == 3 + hessian
    before = target.num_evaluations

    theta = jnp.ones(2)
    jax.block_until_ready(jax.jit(potential)(theta))
    jax.block_until_ready(jax.grad(potential)(theta))
    jax.block_until_ready(
        jax.jit(jax.vmap(jax.value_and_grad(potential)))(jnp.ones((4, 2)))
    )
    assert target.num_evaluations == before + 1 + 1 + 4
    jax.block_until_ready(jax.vmap(jax.vmap(jax.grad(potential)))(jnp.ones((3, 4, 2))))
    assert target.num_evaluations == before + 6 + 12


@pytest.mark.parametrize("kind", KINDS)
def test_exact_hmc_is_counted_to_the_evaluation(kind):
    target = KINDS[kind]()
    kernel = vhmc.paper.HMC(vhmc.paper.unit_mass(2), 0.3, num_steps=5)
    run = vhmc.paper.run_chains(
        jax.random.key(0), kernel, jnp.zeros((3, 2)), target.potential, 4
    )
    jax.block_until_ready(run.theta)
    assert target.num_evaluations == 3 * (1 + 4 * 5)


@pytest.mark.parametrize("kind", KINDS)
def test_potential_can_be_traced_and_differentiated(kind):
    target = KINDS[kind]()
    theta = jnp.array([0.5, -1.0])
    value, grad = jax.jit(jax.value_and_grad(target.potential))(theta)
    np.testing.assert_allclose(value, 0.5 * theta @ PRECISION @ theta, rtol=1e-12)
    np.testing.assert_allclose(grad, PRECISION @ theta, rtol=1e-12)


def test_names_keep_the_order_they_were_written_in():
    target = vhmc.from_jax(
        lambda p: -(p["z"] ** 2) - jnp.sum(p["a"] ** 2), {"z": 1.0, "a": [2.0, 3.0]}
    )
    assert target.parameters.names == ["z", "a"]
    np.testing.assert_array_equal(target.start, [1.0, 2.0, 3.0])


def test_a_list_of_arrays_is_a_pytree():
    init = {"layers": [np.zeros(2), np.zeros((2, 3))]}
    target = vhmc.from_jax(lambda p: -sum(jnp.sum(w**2) for w in p["layers"]), init)
    assert target.parameters.names == ["layers.0", "layers.1"]
    assert target.dim == 8


def test_nested_parameters_are_named_by_their_path():
    init = {"prior": {"scale": 2.0, "mean": 1.0}, "beta": np.zeros(2)}
    target = vhmc.from_jax(
        lambda p: -p["prior"]["scale"] - p["prior"]["mean"] ** 2 - sum(p["beta"] ** 2),
        init,
        constraints={"prior.scale": vhmc.positive},
    )
    assert target.parameters.names == ["prior.mean", "prior.scale", "beta"]
    values = target.parameters.constrain(target.start[None])
    np.testing.assert_allclose(values["prior.scale"], [2.0])
    assert values["beta"].shape == (1, 2)


def test_all_constraints_at_once():
    """Draws come back in the user's space and shapes; a simplex loses a dimension."""
    init = {
        "mean": np.zeros((2, 2)),
        "scale": 1.5,
        "rate": 0.3,
        "angle": 1.0,
        "cuts": [0.0, 1.0, 2.5],
        "shares": [0.2, 0.3, 0.5],
    }
    constraints = {
        "scale": vhmc.positive,
        "rate": vhmc.unit_interval,
        "angle": vhmc.interval(-3.0, 3.0),
        "cuts": vhmc.ordered,
        "shares": vhmc.simplex,
    }
    target = vhmc.from_jax(lambda p: -jnp.sum(p["mean"] ** 2), init, constraints)
    assert target.dim == 4 + 1 + 1 + 1 + 3 + 2
    values = target.parameters.constrain(np.tile(target.start, (2, 3, 1)))
    for name, value in init.items():
        assert values[name].shape == (2, 3, *np.shape(value))
        np.testing.assert_allclose(values[name][0, 0], value, atol=1e-12)


def test_the_jacobian_is_added():
    """Exponential(1) on the positive line is exp(x - e^x) on the real line."""
    target = vhmc.from_jax(lambda p: -p["x"], {"x": 1.0}, {"x": vhmc.positive})
    energy = target.evaluate(np.array([[0.7]])).energy[0]
    np.testing.assert_allclose(energy, np.exp(0.7) - 0.7)


def test_a_function_that_works_in_place_does_not_move_the_points():
    def greedy(theta):
        theta *= 0
        return 0.0, theta

    points = np.ones((2, 2))
    vhmc.from_callable(greedy, 2).evaluate(points)
    assert (points == 1).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: vhmc.from_jax(lambda p: -p["x"], {"x": 1.0}, {"y": vhmc.positive}),
            r"constraints name no parameter: y \(parameters are x\)",
        ),
        (
            lambda: vhmc.from_jax(
                lambda p: -p["x"], {"x": 2.0}, {"x": vhmc.unit_interval}
            ),
            "start of x must be strictly between 0 and 1, got 2.0",
        ),
        (
            lambda: vhmc.from_jax(lambda p: -p["x"], {"x": np.nan}),
            "start of x must be finite, got nan",
        ),
        (
            lambda: vhmc.from_jax(lambda p: -p["x"], {"x": "one"}),
            "parameters must be real numbers or arrays of them",
        ),
        (lambda: vhmc.from_jax(lambda p: 0.0, {}), "init has no parameters"),
        (
            lambda: vhmc.from_jax(lambda x: -x, jnp.ones(3)),
            r"must return one real number, got float64 of shape \(3,\)",
        ),
        (
            lambda: vhmc.from_jax(lambda x: None, jnp.ones(3)),
            "must return one number, got NoneType",
        ),
        (
            lambda: vhmc.from_jax(lambda x: np.sum(np.asarray(x)), jnp.ones(3)),
            "which JAX cannot trace: use jax.numpy, or from_callable",
        ),
        (lambda: vhmc.from_jax(lambda x: 0.0, []), "init has no parameters"),
        (
            lambda: vhmc.from_jax(lambda p: p["x"], {"x": 1j}),
            "parameters must be real numbers or arrays of them",
        ),
        (lambda: vhmc.interval(0.0, np.inf), "an interval needs finite bounds"),
        (
            lambda: vhmc.from_jax(lambda p: 0.0, {"a.b": 1.0, "a": {"b": 2.0}}),
            "two parameters are named a.b",
        ),
        (lambda: vhmc.from_callable(quadratic, 0), "dim must be at least 1, got 0"),
        (
            lambda: vhmc.from_callable(quadratic, 2, init=np.zeros(3)),
            r"init must have shape \(2,\), got \(3,\)",
        ),
    ],
)
def test_bad_input_costs_nothing_and_gets_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"x": vhmc.interval}, "the constraint of x must be one of vhmc's, got "),
        ({"x": "positive"}, "the constraint of x must be one of vhmc's, got positive"),
        (vhmc.positive, "constraints must be a dict from names to constraints"),
        ({1: vhmc.positive}, "constraints name no parameter: 1"),
    ],
)
@pytest.mark.usefixtures("no_shape_checks")
def test_constraints_of_the_wrong_type_get_a_sentence(constraints, message):
    with pytest.raises(ValueError, match=message):
        vhmc.from_jax(lambda p: p["x"], {"x": 1.0}, constraints)


def test_points_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\), got \(2,\)"):
        traced().evaluate(np.zeros(2))


def test_entries_are_labelled_as_in_the_tables():
    init = {"beta": np.zeros((2, 2)), "share": np.full(3, 1 / 3), "scale": 1.0}
    target = vhmc.from_jax(
        lambda p: -jnp.sum(p["beta"] ** 2) - p["scale"] + jnp.sum(jnp.log(p["share"])),
        init,
        {"share": vhmc.simplex, "scale": vhmc.positive},
    )
    space = target.parameters
    # An unconstrained entry of a simplex belongs to no single entry of the parameter.
    assert [space.label(i) for i in range(space.dim)] == [
        *("beta[0, 0]", "beta[0, 1]", "beta[1, 0]", "beta[1, 1]"),
        *("share", "share", "scale"),
    ]
    space.dims, space.coords = {"beta": ["row", "arm"]}, {"arm": ["control", "treated"]}
    assert space.labels("beta", (2, 2))[1] == "beta[0, treated]"
