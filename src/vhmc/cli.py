"""The command `vhmc`."""

import os
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
ledgers = typer.Typer(no_args_is_help=True)
app.add_typer(ledgers, name="ledger", help="Look into the record of a run.")
console = Console()
MOST_ROWS = 60
"""Of a table on the terminal; longer ones are in the folder."""


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


Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the results; an interrupted run goes on from it."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, in a minute.")]
Full = Annotated[bool, typer.Option("--full", help="The paper's own length: hours.")]
Data = Annotated[Path | None, typer.Option(help="Data file, or a folder with it.")]
Seed = Annotated[int, typer.Option(help="Of all random numbers.", min=0, max=2**32 - 1)]


@experiments.command("beta-binomial")
def reproduce_beta_binomial(
    out: Out = None,
    quick: Quick = False,
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
    seed: Seed = 0,
) -> None:
    """Experiment 1: cancer mortality; the surrogate improves as its nodes grow."""
    given = {
        "nodes": _numbers("--nodes", nodes, int),
        "repetitions": repetitions,
        "num_train": train,
        "ridge": ridge,
        "start": _numbers("--start", start, float, 2),
        "seed": seed,
    }
    _reproduce("beta-binomial", out, given, quick=quick)


@experiments.command("probit")
def reproduce_probit(
    out: Out = None,
    quick: Quick = False,
    runs: Annotated[int | None, typer.Option(help="Data sets.")] = None,
    seed: Seed = 0,
) -> None:
    """Experiment 2: posterior means of probit regression, by passes over the data."""
    _reproduce("probit", out, {"num_runs": runs, "seed": seed}, quick=quick)


@experiments.command("logistic")
def reproduce_logistic(
    out: Out = None,
    quick: Quick = False,
    full: Full = False,
    limits: Annotated[
        str | None, typer.Option(help="Two time limits in seconds, as 4,40.")
    ] = None,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Experiment 3: a9a; error after a fixed time against the rate of mixing."""
    given = {"limits": _numbers("--limits", limits, float, 2), "seed": seed}
    _reproduce("logistic", out, given, quick=quick, full=full, data=data)


@experiments.command("ica")
def reproduce_ica(
    out: Out = None,
    quick: Quick = False,
    full: Full = False,
    limit: Annotated[
        float | None, typer.Option(help="Seconds of every method.")
    ] = None,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Experiment 4: independent components of an MEG recording, by time."""
    given = {"limit": limit, "seed": seed}
    _reproduce("ica", out, given, quick=quick, full=full, data=data)


@experiments.command("all")
def reproduce_all(
    out: Out = None, quick: Quick = False, full: Full = False, seed: Seed = 0
) -> None:
    """All four, each in a folder of its own, and one page for all."""
    from vhmc.experiments.page import write_page

    root = out or Path("vhmc-results") / ("all-quick" if quick else "all")
    stories = [
        _reproduce(name, root / name, {"seed": seed}, quick=quick, full=full)
        for name in ("beta-binomial", "probit", "logistic", "ica")
    ]
    _say(f"All on one page: {write_page(root / 'index.html', stories)}")


def _reproduce(
    name: str,
    out: Path | None,
    given: dict[str, Any],
    *,
    quick: bool,
    full: bool = False,
    data: Path | None = None,
) -> Any:
    """Run an experiment, write its folder, print its claims; return its story."""
    # Here and not above: JAX takes seconds to load, which --help need not wait for.
    import importlib

    from vhmc.experiments.page import write_page
    from vhmc.experiments.progress import Progress
    from vhmc.targets.account import RunFailure

    if quick and full:
        _fail("--quick and --full exclude each other")
    package = f"vhmc.experiments.{name.replace('-', '_')}"
    run = importlib.import_module(f"{package}.run")
    write = importlib.import_module(f"{package}.write").write
    chosen = {key: value for key, value in given.items() if value is not None}
    if quick:
        chosen = run.QUICK | chosen
    if full:
        chosen = getattr(run, "FULL", {}) | chosen
    folder = out or Path("vhmc-results") / (f"{name}-quick" if quick else name)
    more = {} if data is None else {"data": data}
    began = time.perf_counter()
    try:
        settings = run.Settings(**chosen)
        folder.mkdir(parents=True, exist_ok=True)
        results = run.run(folder, settings, Progress(console, name), **more)
        story = write(folder, settings, results, quick)
        page = write_page(folder / "index.html", [story])
    except (ValueError, OSError, ModuleNotFoundError, RunFailure) as error:
        _fail(error)
    except KeyboardInterrupt:
        _say(f"stopped: the same command goes on from {folder}")
        raise typer.Exit(130) from None
    _tell(story)
    _say(f"{time.perf_counter() - began:.0f} s; figures, numbers and page: {page}")
    return story


def _tell(story: Any) -> None:
    """The table and the claims of an experiment."""
    from rich.markup import escape
    from rich.table import Table

    colours = {"held": "green", "held in part": "yellow", "not held": "red"}
    table = Table(title=story.title)
    for number, header in enumerate(story.table[0]):
        table.add_column(header, justify="right" if number else "left")
    for row in story.table:
        table.add_row(*row.values())
    if len(story.table) <= MOST_ROWS:
        console.print(table)
    for panel in story.panels:
        for claim in panel.claims:
            console.print(
                f"[{colours[claim.status]}]{claim.status}[/]:",
                escape(f"{claim.sentence} {claim.numbers}"),
                soft_wrap=True,
                highlight=False,
            )
    if story.is_quick:
        _say("This was the quick version: too small to judge the claims by.")


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


@benchmarks.command("tall")
def bench_tall(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-results/bench-tall"
    ),
    problems: Annotated[
        str | None, typer.Option(help="Names, as a9a,simulated-100000.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Names, as vhmc,nutpie.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds for each method.")] = 600.0,
    rounds: Annotated[
        int, typer.Option(help="Of sixteen exact draws, for the reference.")
    ] = 200,
) -> None:
    """Time to a given accuracy on tall data, against NUTS and others."""
    # A device a core, for chains of others that run beside each other.
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    from vhmc.bench.tall.run import Settings, run
    from vhmc.bench.tall.write import write

    given: dict[str, Any] = {"limit": limit, "rounds": rounds}
    given |= {} if problems is None else {"problems": _names(problems)}
    given |= {} if methods is None else {"methods": _names(methods)}
    try:
        settings = Settings(**given)
        rows = run(out, settings, _say)
        table = write(out, settings, rows)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        _fail(error)
    console.print(table)
    _say(f"Figure, rows and settings are in {out}")


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


@ledgers.command("show")
def ledger_show(
    path: Annotated[Path, typer.Argument(help="Ledger of a run, also one under way.")],
) -> None:
    """Print costs, phases, failures and rates."""
    from rich.table import Table

    from vhmc.ledger.file import LedgerError, LedgerFile
    from vhmc.ledger.summary import COLUMNS, summarise

    try:
        file = LedgerFile(path, is_read_only=True)
        summary = summarise(file.facts(), file.rounds())
    except LedgerError as error:
        _fail(error)
    file.close()
    for line in summary.lines:
        _say(line)
    table = Table(*COLUMNS)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in summary.rows[:-1]:
        table.add_row(*row)
    table.add_section()
    table.add_row(*summary.rows[-1])
    console.print(table)
    for reason, number in summary.reasons:
        _say(f"failed {number} times: {reason}")


def main() -> None:
    """Run the command, with programs kept that XLA compiled for an earlier one."""
    import jax
    import pooch

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = str(pooch.os_cache("vhmc") / "compiled")
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    app()
