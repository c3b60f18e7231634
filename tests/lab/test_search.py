"""The benchmark of the search: references are where the energy says, and it runs."""

import numpy as np
import pytest
from typer.testing import CliRunner

from vhmc import cli
from vhmc.lab.bench.search.problems import QUESTS, moments
from vhmc.lab.bench.search.run import Found

EXACT = {"gaussian-far": 300.0, "gaussian-rotated": 3.0, "gaussian-50": 1.0}
"""Means of Gaussians."""


def test_there_is_a_reference_for_every_posterior():
    assert len(QUESTS) >= 30
    for name, make in QUESTS.items():
        truth = moments(name)
        assert len(truth.mean) == len(make().start)
        assert np.all(np.diag(truth.factor) > 0)


@pytest.mark.parametrize("name", EXACT)
def test_references_of_gaussians_are_exact_to_their_number_of_draws(name):
    """An effective size above 8,000: a tenth is nine standard errors."""
    truth = moments(name)
    assert truth.distance(np.full(len(truth.mean), EXACT[name]))[0] < 0.1


def test_a_search_is_measured(tmp_path):
    words = "bench search --problems gaussian-far --seeds 1 --methods vhmc --out"
    found = CliRunner().invoke(cli.app, [*words.split(), str(tmp_path)])
    assert found.exit_code == 0, found.output
    header, row = (tmp_path / "rows.csv").read_text().splitlines()
    assert tuple(header.split(",")) == Found._fields
    assert float(row.split(",")[4]) < 0.5
