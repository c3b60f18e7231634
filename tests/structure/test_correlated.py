"""Effects with an unknown correlation go through the linear predictor."""

import numpyro
import numpyro.distributions as dist

import vhmc
from tests.structure.correlated_models import noncentred
from vhmc.sampler.model_graph import model_graph


def test_correlated_effects_have_a_predictor_with_all_their_hubs():
    """Functions of scales do not know a correlation; the program does."""
    structure = model_graph(vhmc.from_numpyro(noncentred))
    assert structure.predictor is not None
    named = {structure.labels[hub] for hub in structure.predictor.hubs}
    assert named == {"spread[0]", "spread[1]", "factor", "noise"}
    outer = [structure.labels[hub] for hub in structure.predictor.outer_hubs]
    assert outer == ["noise"]


def test_effects_with_scales_of_their_own_keep_the_graph():
    """There the graph with functions of scales is exact, and cheaper."""

    def model():
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        with numpyro.plate("groups", 8):
            z = numpyro.sample("z", dist.Normal(0, 1))
            numpyro.sample("y", dist.Normal(scale * z, 0.5), obs=1.0)

    assert model_graph(vhmc.from_numpyro(model)).predictor is None
