"""The benchmark: its arithmetic by hand, its problems and rivals at no great cost."""

import io

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import vhmc
from vhmc import cli
from vhmc.lab.bench import rivals, summary
from vhmc.lab.bench.calibration.run import CALIBRATION
from vhmc.lab.bench.calibration.run import headline as calibration_headline
from vhmc.lab.bench.jobs import Job, run_jobs
from vhmc.lab.bench.measure import NUTS, NUTS_WITHIN, Task, TimedTarget, measure
from vhmc.lab.bench.problem import errors
from vhmc.lab.bench.rows import Row, append_row, read_rows, start_file
from vhmc.lab.bench.run import PROBLEMS, Settings, run
from vhmc.lab.bench.write import write

ROW = Row(
    problem="arK",
    dim=7,
    method="vhmc",
    budget=1000,
    seed=0,
    mean_error=0.05,
    sd_error=0.05,
    num_evaluations=800,
    seconds=3.0,
    seconds_outside=2.0,
    is_first=False,
    verdict="good",
    correction="none",
    note="",
)
NUTS_ROW = ROW._replace(method=NUTS, budget=0, num_evaluations=40_000, verdict="")


def ignore(line: str) -> None:
    """A report that prints nothing."""


def laplace_job(name: str, *seeds: int) -> Job:
    tasks = tuple(Task("laplace", 100, seed) for seed in seeds)
    return Job(PROBLEMS[name], name, tasks)


def test_errors_are_the_worst_in_reference_units():
    problem = PROBLEMS["banana-2"]()
    steps = np.array([-1.0, 1.0]) / np.sqrt(2)  # of standard deviation 1
    draws = np.stack([0.3 + 1.2 * steps, -0.1 + 0.9 * steps], axis=1) * problem.sd
    mean_error, sd_error = errors(problem, {"theta": draws})
    np.testing.assert_allclose([mean_error, sd_error], [0.3, 0.2])
    draws[0, 0] = np.nan
    assert errors(problem, {"theta": draws}) == (np.inf, np.inf)


@pytest.mark.parametrize(
    "name",
    [*PROBLEMS, *(pytest.param(name, marks=pytest.mark.slow) for name in CALIBRATION)],
)
def test_every_problem_can_be_started_and_measured(name):
    problem = (PROBLEMS | CALIBRATION)[name]()
    target = problem.make()
    answer = target.evaluate(target.start[None])
    assert np.isfinite(answer.energy).all()
    assert np.isfinite(answer.grad).all()
    draws = target.parameters.constrain(np.tile(target.start, (2, 3, 1)))
    assert problem.quantities(draws).shape == (2, 3, len(problem.names))


@pytest.mark.parametrize("rival", [rivals.laplace_only, rivals.laplace_psis])
def test_a_rival_keeps_to_its_budget_and_counts_truly(rival):
    target = PROBLEMS["banana-2"]().make()
    found = rival(target, 100, seed=0, num_draws=50)
    assert found.num_evaluations == target.num_evaluations <= 100
    assert found.draws.shape == (50, 2)
    assert np.isfinite(found.draws).all()


def test_a_method_that_raises_is_a_row():
    problem = PROBLEMS["banana-2"]()
    row = measure(problem, problem.make(), Task("vhmc", 1, 0), is_first=True)
    assert row.mean_error == row.sd_error == np.inf
    assert row.num_evaluations == 0
    assert row.note.startswith("ValueError: budget must be at least")


def test_time_outside_the_model_is_a_part_of_the_whole():
    problem = PROBLEMS["banana-2"]()
    row = measure(problem, problem.make(), Task("laplace", 100, 0), is_first=True)
    assert 0 < row.seconds_outside < row.seconds


def test_a_timed_target_is_the_target_but_for_its_clock():
    """A ledger and its evaluator read all of these."""
    traced = PROBLEMS["banana-2"]().make()
    serial = vhmc.from_callable(lambda x: (-0.5 * x @ x, -x), 2)
    assert traced.fingerprint() and serial.is_serial and not traced.is_serial
    for target in (traced, serial):
        timed = TimedTarget(target)
        assert timed.fingerprint() == target.fingerprint()
        for name in ("is_serial", "price", "route", "hessian_price", "parameters"):
            assert getattr(timed, name) == getattr(target, name)


def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    path, said = tmp_path / "rows.csv", []
    first = run_jobs([laplace_job("banana-2", 0)], ignore, path)
    with path.open("a") as file:
        file.write("banana-2,2,lapl")  # cut off
    both = run_jobs([laplace_job("banana-2", 0, 1)], said.append, path)
    assert [row.seed for row in both] == [0, 1]
    assert both[:1] == first
    assert read_rows(path) == both
    assert said[0] == f"1 of 2 runs are in {path} already and are skipped"
    assert len(said) == 2


def test_rows_survive_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    row = ROW._replace(mean_error=np.inf, is_first=True, note='a, "b" | c')
    start_file(path)
    append_row(path, row)
    assert read_rows(path) == [row]
    path.write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="is not of this benchmark"):
        read_rows(path)


def test_silent_failures_and_false_alarms():
    wrong = ROW._replace(sd_error=0.3)
    assert summary.is_silent_failure(wrong)
    assert not summary.is_silent_failure(wrong._replace(verdict="caution"))
    assert not summary.is_silent_failure(ROW)
    assert summary.is_false_alarm(ROW._replace(verdict="bad"))
    assert not summary.is_false_alarm(wrong._replace(verdict="bad"))
    rows = [wrong, ROW, ROW._replace(verdict="bad")]
    assert calibration_headline(rows).startswith("1 silent failures")
    assert "1 false alarms" in calibration_headline(rows)


@pytest.mark.parametrize(
    ("error", "nuts_error", "expected"),
    [
        (0.05, 0.1, (50.0, True)),  # we are better: no extrapolation
        (0.05, 0.05, (50.0, True)),
        (0.10, 0.05, (12.5, False)),  # NUTS may stop after a quarter
        (np.inf, 0.05, (0.0, False)),
        (0.05, np.inf, (50.0, True)),
    ],
)
def test_ratio_of_nuts(error, nuts_error, expected):
    assert summary.nuts_ratio(800, error, 40_000, nuts_error) == expected


def test_summary_by_hand():
    rows = [
        ROW._replace(is_first=True, seconds_outside=9.0),
        ROW._replace(seed=1, mean_error=0.07),
        ROW._replace(seed=2, mean_error=np.inf, verdict="caution"),
        ROW._replace(budget=100, mean_error=0.4),
        NUTS_ROW._replace(mean_error=0.035),
    ]
    (line,) = summary.summarise(rows, 1000)
    assert line["mean_error"] == 0.07
    assert (line["within"], line["runs"]) == (2, 3)
    assert line["verdicts"] == "good 2, caution 1"
    assert line["silent_failures"] == 0
    assert (line["seconds_outside_first"], line["seconds_outside"]) == (9.0, 2.0)
    assert line["nuts_ratio"] == pytest.approx(12.5)
    assert np.isnan(line["laplace_mean_error"])
    text = summary.headline(rows, [line])
    assert "0 of 1 posteriors" in text
    assert "1 silent failures in 4 runs of vhmc" in text  # the one at the small budget
    assert "NUTS takes 12.5 times" in text


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ((0.10, 0.30), (0.20, 0.23), True),
        ((0.10, 0.30), (0.25, 0.10), False),  # less, but not by more than noise
        ((0.04, 0.05), (0.01, 0.01), False),
        ((np.inf, np.inf), (2.0, 1.0), True),
        ((0.10, 0.30), (np.nan, np.nan), False),
    ],
)
def test_a_rival_is_ahead_by_the_larger_error(ours, theirs, expected):
    rows = [
        ROW._replace(mean_error=ours[0], sd_error=ours[1]),
        ROW._replace(method=NUTS_WITHIN, mean_error=theirs[0], sd_error=theirs[1]),
    ]
    (line,) = summary.summarise(rows, 1000)
    assert summary.is_ahead(line, NUTS_WITHIN) is expected
    assert line[f"{NUTS_WITHIN}_runs"] == np.isfinite(theirs).all()


def test_the_table_of_rivals_is_narrow_and_says_who_is_ahead(tmp_path):
    """At 80 columns, with the longest name; a dash where a method did not run."""
    methods = ("vhmc", "vhmc-unstructured", "pathfinder+psis", NUTS_WITHIN)
    settings = Settings(problems=("arK",), methods=(*methods, "nutpie-within"))
    long = ROW._replace(problem="stochastic-volatility-noncentred", mean_error=0.2)
    rows = [
        long,
        long._replace(method="vhmc-unstructured", mean_error=0.1),
        long._replace(method="pathfinder+psis", mean_error=np.inf),
        long._replace(method=NUTS_WITHIN, mean_error=0.15),
        long._replace(method="nutpie-within", mean_error=np.nan, sd_error=np.nan),
    ]
    tables, _ = write(tmp_path, settings, rows)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(tables[2])
    lines = console.export_text().splitlines()
    (cells,) = [line for line in lines if line.startswith(long.problem)]
    assert " ".join(cells.split()[1:]) == "0.20 0/1 0.10 1/1 inf 0/1 0.15 0/1 -"
    text = " ".join(" ".join(lines).split())
    assert "pathfinder+psis in 0 of 1 problems, nuts-within in 1 of 1 problems." in text


def test_the_folder_is_complete(tmp_path):
    settings = Settings(problems=("arK",), budgets=(1000,), seeds=1)
    failed = ROW._replace(method="laplace", num_evaluations=0, mean_error=np.inf)
    tables, _ = write(tmp_path, settings, [ROW, NUTS_ROW, failed])
    assert [table.row_count for table in tables] == [1, 1, 1, 1]
    names = {"summary.csv", "record.json"}
    names |= {f"{m}_error.{end}" for m in ("mean", "sd") for end in ("png", "pdf")}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_the_first_run_is_the_one_of_the_tables():
    tasks = Settings(budgets=(100, 1000), seeds=2).tasks()
    assert tasks[0] == Task("vhmc", 1000, 0)
    assert len(tasks) == len(set(tasks)) == 2 * 5 * 2 + 2


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"problems": ("arK", "foo")}, "no problem is named foo: choose from arK, "),
        ({"problems": ()}, "name at least one problem"),
        ({"methods": ("magic",)}, "no method is named magic"),
        ({"budgets": (0,), "main_budget": 0}, "a budget must be at least 20"),
        ({"budgets": (100,)}, "main_budget must be one of the budgets 100, got 1000"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"workers": -1}, "workers must be at least 1, got -1"),
    ],
)
def test_bad_settings_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        Settings(**choice)


def test_missing_data_are_missed_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("VHMC_POSTERIORS", str(tmp_path / "nowhere"))
    settings = Settings(problems=("banana-2", "arK"), methods=("laplace",))
    with pytest.raises(FileNotFoundError, match="set VHMC_POSTERIORS"):
        run(settings, ignore, tmp_path / "rows.csv")
    assert not list(tmp_path.iterdir())


def test_the_command_refuses_in_one_line(tmp_path):
    arguments = ["bench", "posteriors", "--problems", "foo", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("vhmc: no problem is named foo: choose from arK")
    assert len(done.stderr.splitlines()) == 1


def test_the_command_from_end_to_end(tmp_path):
    arguments = ["bench", "posteriors", "--problems", "banana-2", "--methods"]
    arguments += ["laplace", "--budgets", "50", "--seeds", "1", "--no-nuts", "--out"]
    done = CliRunner().invoke(cli.app, [*arguments, str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "0 silent failures in 0 runs" in done.stdout
    assert len(read_rows(tmp_path / "rows.csv")) == 1
