"""The command `vhmc`."""

import time
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

app = typer.Typer(no_args_is_help=True, add_completion=False)
experiments = typer.Typer(no_args_is_help=True)
app.add_typer(
    experiments, name="reproduce", help="Reproduce an experiment of the paper."
)
benchmarks = typer.Typer(no_args_is_help=True)
app.add_typer(
    benchmarks, name="bench", help="Compare with known posteriors and other methods."
)
console = Console()


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.")
    ] = False,
) -> None:
    """Bayesian posteriors whose gradient is expensive, from few exact gradients."""
    if version:
        import vhmc

        console.print(vhmc.__version__)
        raise typer.Exit()


@experiments.command("beta-binomial")
def reproduce_beta_binomial(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-results/beta-binomial"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, in under a minute.")
    ] = False,
    nodes: Annotated[
        str | None, typer.Option(help="Numbers of hidden nodes, as 10,20,40.")
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="Runs for each number of nodes.")
    ] = None,
    train: Annotated[int | None, typer.Option(help="Training iterations t0.")] = None,
    ridge: Annotated[float | None, typer.Option(help="Regularisation lambda.")] = None,
    start: Annotated[
        str | None, typer.Option(help="Where to start, m,K as 0.001,1000.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of all random numbers.", min=0, max=2**32 - 1)
    ] = 0,
) -> None:
    """Experiment 1: cancer mortality; the surrogate improves as its nodes grow."""
    # Here and not above: JAX takes seconds to load, which --help need not wait for.
    from vhmc.experiments.beta_binomial.run import QUICK, Settings, run
    from vhmc.experiments.beta_binomial.write import write
    from vhmc.runs.training import RunFailure

    given: dict[str, Any] = {
        "nodes": _numbers("--nodes", nodes, int),
        "repetitions": repetitions,
        "num_train": train,
        "ridge": ridge,
        "start": _numbers("--start", start, float, 2),
        "seed": seed,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if quick:
        chosen = QUICK | chosen
    began = time.perf_counter()
    try:
        settings = Settings(**chosen)
        out.mkdir(parents=True, exist_ok=True)
        with console.status("finding the mode") as status:
            results = run(settings, lambda s: status.update(f"training with {s} nodes"))
        table = write(out, settings, results, time.perf_counter() - began)
    except (ValueError, OSError, RunFailure) as error:
        _fail(error)
    console.print(table)
    total = sum(results.costs.values())
    console.print(f"{total} evaluations, {time.perf_counter() - began:.0f} s")
    console.print(
        f"Figures, numbers and settings are in {out}", soft_wrap=True, markup=False
    )


@benchmarks.command("posteriors")
def bench_posteriors(
    out: Annotated[
        Path, typer.Option(help="Folder for the results; a run goes on from it.")
    ] = Path("vhmc-results/bench-posteriors"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two problems, two budgets, one seed.")
    ] = False,
    problems: Annotated[str | None, typer.Option(help="Names, as arK,garch.")] = None,
    budgets: Annotated[
        str | None, typer.Option(help="Evaluations of the model, as 100,300.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Runs of each.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names, as vhmc,laplace; NUTS is apart.")
    ] = None,
    no_nuts: Annotated[bool, typer.Option("--no-nuts", help="Without NUTS.")] = False,
    workers: Annotated[
        int, typer.Option(help="Processes; times are true up to one a core.")
    ] = 1,
) -> None:
    """Errors and costs of vhmc and its rivals on posteriors with known moments."""
    from vhmc.bench.run import QUICK, Settings, run
    from vhmc.bench.write import write

    given: dict[str, Any] = {
        "problems": _names(problems),
        "budgets": _numbers("--budgets", budgets, int),
        "seeds": seeds,
        "methods": _names(methods),
        "with_nuts": False if no_nuts else None,
        "workers": workers,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    if quick:
        chosen = QUICK | chosen
    if chosen.get("budgets") and Settings.main_budget not in chosen["budgets"]:
        chosen["main_budget"] = max(chosen["budgets"])
    try:
        settings = Settings(**chosen)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, _say, out / "rows.csv")
        tables, headline = write(out, settings, rows)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        _fail(error)
    console.print(*tables)
    _say(headline)
    _say(f"Figures, rows, summary and settings are in {out}")


@benchmarks.command("calibration")
def bench_calibration(
    out: Annotated[
        Path, typer.Option(help="Folder for the results; a run goes on from it.")
    ] = Path("vhmc-results/bench-calibration"),
    problems: Annotated[str | None, typer.Option(help="Names, as ring,funnel.")] = None,
    budget: Annotated[int, typer.Option(help="Evaluations of the model.")] = 1000,
    seeds: Annotated[int, typer.Option(help="Runs of each.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
) -> None:
    """How often the verdict of vhmc is wrong, on problems it was not tuned on."""
    from vhmc.bench.calibrate import Settings, run, write

    given: dict[str, Any] = {"budget": budget, "seeds": seeds, "workers": workers}
    if problems is not None:
        given["problems"] = _names(problems)
    try:
        settings = Settings(**given)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, _say, out / "rows.csv")
        table, headline = write(out, settings, rows)
    except (ValueError, OSError) as error:
        _fail(error)
    console.print(table)
    _say(headline)
    _say(f"Rows and settings are in {out}")


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(","))


def _say(line: str) -> None:
    console.print(line, soft_wrap=True, markup=False, highlight=False)


def _numbers(
    option: str, text: str | None, kind: type, count: int | None = None
) -> tuple[Any, ...] | None:
    if text is None:
        return None
    try:
        numbers = tuple(kind(part) for part in text.split(","))
    except ValueError:
        _fail(f"{option} takes numbers with commas between them, got {text}")
    if count not in (None, len(numbers)):
        _fail(f"{option} takes {count} numbers, got {text}")
    return numbers


def _fail(error: Any) -> NoReturn:
    Console(stderr=True).print(
        f"vhmc: {error}", style="red", soft_wrap=True, markup=False, highlight=False
    )
    raise typer.Exit(2)


def main() -> None:
    """Run the command."""
    app()
