"""Transforms invert, and their log-Jacobians match autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vhmc.numerics import constraints

CONSTRAINTS = {
    "real": constraints.real,
    "positive": constraints.positive,
    "unit_interval": constraints.unit_interval,
    "interval": constraints.interval(-3.0, 5.0),
    "ordered": constraints.ordered,
    "simplex": constraints.simplex,
}
UNCONSTRAINED = arrays(float, (2, 4), elements=st.floats(-6, 6))


@pytest.mark.parametrize("name", CONSTRAINTS)
@given(unconstrained=UNCONSTRAINED)
@settings(deadline=None, max_examples=30)
def test_inverts_inside_the_support(name, unconstrained):
    constraint = CONSTRAINTS[name]
    value = constraint.constrain(jnp.asarray(unconstrained))
    assert constraint.contains(value)
    np.testing.assert_allclose(constraint.unconstrain(value), unconstrained, atol=1e-7)


@pytest.mark.parametrize("name", CONSTRAINTS)
@given(unconstrained=UNCONSTRAINED)
@settings(deadline=None, max_examples=30)
def test_log_jacobian_matches_autodiff(name, unconstrained):
    constraint = CONSTRAINTS[name]

    def flat(vector):
        value = constraint.constrain(vector.reshape(2, -1))
        # The last entry of a simplex follows from the others.
        kept = value[:, :-1] if name == "simplex" else value
        return kept.ravel()

    jacobian = jax.jacobian(flat)(jnp.asarray(unconstrained).ravel())
    expected = jnp.linalg.slogdet(jacobian)[1]
    log_jacobian = constraint.log_jacobian(jnp.asarray(unconstrained))
    np.testing.assert_allclose(log_jacobian, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("real", np.inf),
        ("positive", 0.0),
        ("positive", np.nan),
        ("unit_interval", 1.0),
        ("interval", -3.0),
        ("ordered", [1.0, 1.0]),
        ("ordered", 1.0),
        ("simplex", [0.5, 0.4]),
        ("simplex", [1.0]),
        ("simplex", [1.5, -0.5]),
    ],
)
def test_the_edge_is_outside(name, value):
    assert not CONSTRAINTS[name].contains(jnp.asarray(value))


def test_simplex_of_zero_is_uniform():
    np.testing.assert_allclose(
        constraints.simplex.constrain(jnp.zeros(3)), np.full(4, 0.25)
    )


def test_an_interval_needs_room():
    with pytest.raises(ValueError, match=r"lower < upper, got 2\.0 and 1\.0"):
        constraints.interval(2.0, 1.0)
