"""What a run hands back, in the user's space and in ArviZ's."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import vhmc


@pytest.fixture(scope="module")
def posterior():
    def log_density(p):
        return (
            -0.5 * jnp.sum((p["mean"] - 1) ** 2) - p["scale"] + 2 * jnp.log(p["scale"])
        )

    target = vhmc.from_jax(
        log_density, {"mean": np.zeros(2), "scale": 1.0}, {"scale": vhmc.positive}
    )
    method = vhmc.paper.VHMC(num_features=60, num_train=600, ridge=0.1)
    return vhmc.paper.sample_paper(target, method, draws=400, chains=3, seed=0)


def test_draws_are_named_and_in_the_users_space(posterior):
    assert list(posterior.draws) == ["mean", "scale"]
    assert posterior.draws["mean"].shape == (3, 400, 2)
    assert posterior.draws["scale"].shape == (3, 400)
    assert (posterior.draws["scale"] > 0).all()
    np.testing.assert_allclose(
        np.log(posterior.draws["scale"]), posterior.unconstrained[..., 2], rtol=1e-10
    )


def test_arviz_holds_draws_statistics_and_costs(posterior):
    data = posterior.to_arviz()
    group = data["posterior"]
    assert group["mean"].dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(group["scale"].values, posterior.draws["scale"])
    assert data["sample_stats"]["diverging"].shape == (3, 400)
    attributes = group.attrs
    assert attributes["num_evaluations"] == posterior.num_evaluations
    assert json.loads(attributes["costs"]) == posterior.costs


def test_summary_has_a_row_a_parameter_with_all_digits(posterior):
    table = posterior.summary()
    assert list(table.index) == ["mean[0]", "mean[1]", "scale"]
    expected = posterior.draws["scale"].mean()
    np.testing.assert_allclose(float(table.loc["scale", "mean"]), expected, rtol=1e-6)
    assert {"sd", "ess_bulk", "r_hat"} <= set(table.columns)


def test_it_prints_in_a_line(posterior):
    expected = (
        "Posterior(mean[2], scale: 3 chains x 400 draws, "
        f"{posterior.num_evaluations} evaluations)"
    )
    assert repr(posterior) == expected
