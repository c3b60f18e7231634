"""The posteriors that the verdict is calibrated on: laws, references and rates."""

import numpy as np
import pytest
from typer.testing import CliRunner

from vhmc import cli
from vhmc.lab.bench.rows import read_rows
from vhmc.lab.bench.verdict.case import Moments, errors, is_held_out
from vhmc.lab.bench.verdict.cases import CASES, FAMILIES, stored
from vhmc.lab.bench.verdict.reliability import WEIGHTS, measured
from vhmc.lab.bench.verdict.rows import VerdictRow
from vhmc.lab.bench.verdict.write import Rate, false_alarms, silent_failures

STANDARD_ERRORS = 5.5
"""At some 40 comparisons in 30 families: a false alarm once in 20,000 runs."""
WITHOUT = {"box", "half-space", "noisy-values", "noisy-gradients", "wrong-gradients"}
"""Stein's identity has a boundary term, or the answers are wrong on purpose."""
STORED = {name.rpartition("-")[0] for name in stored()}
QUICK = "sinusoid", "separated-modes", "groups-noncentred"
DRAWN = [
    pytest.param(family, marks=() if family in QUICK else pytest.mark.slow)
    for family in FAMILIES
    if family not in WITHOUT | STORED
]
ROW = VerdictRow(
    problem="banana-1",
    dim=2,
    budget=1000,
    seed=0,
    mean_error=0.05,
    sd_error=0.05,
    num_evaluations=500,
    seconds=1.0,
    verdict="good",
    concern="good",
    correction="none",
    note="",
    numbers="{}",
    parameters="{}",
)


def test_there_are_many_and_halves_are_halves():
    assert len(CASES) >= 150
    held = sum(map(is_held_out, CASES))
    assert 0.4 < held / len(CASES) < 0.6


def test_what_cannot_be_drawn_has_an_accurate_reference():
    assert set(stored()) == {
        f"{family}-{number + 1}"
        for family in STORED
        for number in range(FAMILIES[family].number)
    }
    for entry in stored().values():
        assert len(entry["mean"]) == len(entry["sd"])
        assert entry["ess"] > 50_000
        assert entry["halves_differ"] < 0.03


@pytest.mark.parametrize("family", DRAWN)
def test_draws_have_the_law_of_the_density(family):
    """Stein's identity, with a bounded test function."""
    case = CASES[f"{family}-2"]()
    target = case.make()
    parameters = target.parameters
    values = case.draw(np.random.default_rng(0), 1000)
    rows, start = {}, 0
    for name, shape in parameters.shapes.items():
        size = int(np.prod(shape))
        rows[name] = values[:, start : start + size].reshape(-1, *shape)
        start += size
    is_bare = list(rows) == ["theta"]
    thetas = np.array(
        [
            parameters.flatten(
                rows["theta"][i] if is_bare else {k: v[i] for k, v in rows.items()}
            )
            for i in range(len(values))
        ]
    )
    scale = thetas.std(axis=0)
    scores = -target.evaluate(thetas).grad * scale
    tests = np.tanh(thetas / scale)
    terms = scores * tests + 1 - tests**2
    deviation = terms.mean(axis=0) / terms.std(axis=0) * np.sqrt(len(terms))
    assert np.abs(deviation).max() < STANDARD_ERRORS


def test_walls_cut_draws_where_the_density_ends():
    for family in ("box", "half-space"):
        case = CASES[f"{family}-1"]()
        target = case.make()
        draws = case.draw(np.random.default_rng(0), 500)
        assert np.isfinite(target.evaluate(draws).energy).all()
        assert not np.isfinite(target.evaluate(draws + 100 * draws.std(0)).energy).all()


def test_errors_are_in_reference_units():
    case = CASES["gaussian-2"]()
    truth = Moments(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    values = np.array([[0.0, -1.0], [4.0, 1.0]])
    mean_errors, sd_errors = errors(case, truth, values)
    np.testing.assert_allclose(mean_errors, [0.5, 0.0])
    np.testing.assert_allclose(sd_errors, [0.0, 0.0])
    values[0, 0] = np.nan
    assert np.isinf(errors(case, truth, values)[0]).tolist() == [True, False]


def test_rates_and_their_intervals():
    wrong = ROW._replace(sd_error=0.3)
    failed = ROW._replace(mean_error=np.inf, sd_error=np.inf, verdict="failed")
    rows = [ROW, ROW._replace(verdict="caution"), wrong, failed]
    assert silent_failures(rows) == (1, 2)
    assert false_alarms(rows) == (1, 2)
    # The rule of three, and the interval of none out of none.
    assert Rate(0, 100).interval == pytest.approx((0.0, 0.0362), abs=1e-4)
    assert Rate(5, 100).interval == pytest.approx((0.0164, 0.1128), abs=1e-4)
    assert str(Rate(0, 0)) == "0 of 0"


@pytest.mark.slow
def test_the_command_measures_and_resumes(tmp_path):
    words = "bench verdict --families shares --budgets 100 --out"
    for _ in range(2):
        found = CliRunner().invoke(cli.app, [*words.split(), str(tmp_path)])
        assert found.exit_code == 0, found.output
    assert "4 of 4 runs are in" in found.output
    rows = read_rows(tmp_path / "rows.csv", VerdictRow)
    assert len(rows) == FAMILIES["shares"].number
    assert {path.name for path in tmp_path.iterdir()} >= {"record.json", "rows.csv"}
    for kind in WEIGHTS:
        numbers = measured(rows[0], kind)
        assert numbers.is_known.all()
        assert np.array(numbers.sources).shape == (5, len(numbers.true))
