"""`vhmc bench`: posteriors with known moments, and other methods."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vhmc.cli.terminal import console, fail, names, numbers, say

if TYPE_CHECKING:
    from vhmc.lab.bench.run import Settings

app = typer.Typer(no_args_is_help=True)
Out = Annotated[
    Path, typer.Option(help="Folder for the results; a run resumes from it.")
]


Quick = Annotated[
    bool, typer.Option("--quick", help="Two problems, one seed, small budgets.")
]
Problems = Annotated[
    str | None, typer.Option(help="Names, with commas between them; else all.")
]
Budgets = Annotated[
    str | None, typer.Option(help="Evaluations of the model, as 100,300.")
]
Seeds = Annotated[int | None, typer.Option(help="Runs of each.")]
Methods = Annotated[
    str | None, typer.Option(help="Names, as vhmc,laplace; NUTS has --no-nuts.")
]
NoNuts = Annotated[bool, typer.Option("--no-nuts", help="Without NUTS.")]
Workers = Annotated[
    int, typer.Option(help="Processes; more than one per core distort times.")
]


@app.command(
    "posteriors", epilog="Example: vhmc bench posteriors --problems arK --budgets 300"
)
def bench_posteriors(
    out: Out = Path("vhmc-results/bench-posteriors"),
    quick: Quick = False,
    problems: Problems = None,
    budgets: Budgets = None,
    seeds: Seeds = None,
    methods: Methods = None,
    no_nuts: NoNuts = False,
    workers: Workers = 1,
) -> None:
    """Errors and costs of vhmc and its rivals on posteriors with known moments."""
    from vhmc.lab.bench.run import QUICK, WITHOUT_NUTS, Settings

    changes = (QUICK if quick else {}) | (WITHOUT_NUTS if no_nuts else {})
    chosen = _choice(problems, budgets, methods, seeds)
    _compare(out, Settings, changes | chosen | {"workers": workers})


@app.command(
    "structured", epilog="Example: vhmc bench structured --problems rats --seeds 1"
)
def bench_structured(
    out: Out = Path("vhmc-results/bench-structured"),
    quick: Quick = False,
    problems: Problems = None,
    budgets: Budgets = None,
    seeds: Seeds = None,
    methods: Methods = None,
    no_nuts: NoNuts = False,
    workers: Workers = 1,
) -> None:
    """The same on hierarchical and structured posteriors of 10 to 1,002 dimensions."""
    from vhmc.lab.bench.structured.run import QUICK, WITHOUT_NUTS, StructuredSettings

    changes = (QUICK if quick else {}) | (WITHOUT_NUTS if no_nuts else {})
    chosen = _choice(problems, budgets, methods, seeds)
    _compare(out, StructuredSettings, changes | chosen | {"workers": workers})


@app.command("calibration", epilog="Example: vhmc bench calibration --seeds 3")
def bench_calibration(
    out: Out = Path("vhmc-results/bench-calibration"),
    problems: Annotated[str | None, typer.Option(help="Names, as ring,funnel.")] = None,
    budget: Annotated[int, typer.Option(help="Evaluations of the model.")] = 1000,
    seeds: Annotated[int, typer.Option(help="Runs of each.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
) -> None:
    """How often the verdict of vhmc is wrong, on problems it was not tuned on."""
    from vhmc.lab.bench.calibration.run import Settings, run, write

    chosen = _given(problems=names(problems), budget=budget, seeds=seeds)
    try:
        settings = Settings(**chosen, workers=workers)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, say, out / "rows.csv")
        table, headline = write(out, settings, rows)
    except (ValueError, OSError) as error:
        fail(error)
    console.print(table)
    say(headline)
    say(f"Rows and settings are in {out}")


@app.command(
    "verdict", epilog="Example: vhmc bench verdict --families banana,ring --workers 2"
)
def bench_verdict(
    out: Out = Path("vhmc-results/bench-verdict"),
    families: Annotated[
        str | None, typer.Option(help="Names, as banana,ring; else all.")
    ] = None,
    budgets: Budgets = None,
    seeds: Seeds = None,
    workers: Workers = 1,
) -> None:
    """How often the verdict is wrong, with intervals, on some 200 posteriors."""
    from vhmc.lab.bench.verdict.run import Settings, run
    from vhmc.lab.bench.verdict.write import write

    chosen = _given(
        families=names(families),
        budgets=numbers("--budgets", budgets, int),
        seeds=seeds,
    )
    try:
        settings = Settings(**chosen, workers=workers)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, say, out / "rows.csv")
        tables, headline = write(out, settings, rows)
    except (ValueError, OSError) as error:
        fail(error)
    console.print(*tables)
    say(headline)
    say(f"Figure, rows, rates and settings are in {out}")


@app.command(
    "tall", epilog="Example: vhmc bench tall --problems a9a --methods vhmc,nutpie"
)
def bench_tall(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-results/bench-tall"
    ),
    problems: Annotated[
        str | None, typer.Option(help="Names, as a9a,simulated-100000.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Names, as vhmc,nutpie.")] = None,
    limit: Annotated[float, typer.Option(help="Seconds for each method.")] = 600.0,
    times: Annotated[
        float, typer.Option(help="Times as long as ours that a method may take.")
    ] = 50.0,
    rounds: Annotated[
        int, typer.Option(help="Rounds of sixteen exact draws, for the reference.")
    ] = 200,
) -> None:
    """Time to a given accuracy on tall data, against NUTS and others."""
    # One device per core, for parallel chains of other methods.
    flags = os.environ.get("XLA_FLAGS", "")
    if "device_count" not in flags:
        flags += " --xla_force_host_platform_device_count=2"
        os.environ["XLA_FLAGS"] = flags.strip()
    from vhmc.lab.bench.tall.run import Settings, run
    from vhmc.lab.bench.tall.write import write

    chosen = _given(problems=names(problems), methods=names(methods), limit=limit)
    try:
        settings = Settings(**chosen, times=times, rounds=rounds)
        rows = run(out, settings, say)
        table = write(out, settings, rows)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        fail(error)
    console.print(table)
    say(f"Figure, rows and settings are in {out}")


@app.command(
    "search", epilog="Example: vhmc bench search --problems arma --methods vhmc,lbfgs"
)
def bench_search(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-results/bench-search"
    ),
    problems: Annotated[
        str | None, typer.Option(help="Names, as arma,linear-years; else all.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names, as vhmc,lbfgs,pathfinder,nuts.")
    ] = None,
    evaluations: Annotated[int, typer.Option(help="Of the model, in each run.")] = 200,
    seeds: Annotated[int, typer.Option(help="Runs of each.")] = 5,
) -> None:
    """Evaluations until the mass is found, from bad starts and in raw units."""
    from vhmc.lab.bench.search.run import Settings, run, write

    chosen = _given(problems=names(problems), methods=names(methods))
    try:
        settings = Settings(**chosen, evaluations=evaluations, seeds=seeds)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, say, out / "rows.csv")
        table, headline = write(out, settings, rows)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        fail(error)
    console.print(table)
    say(headline)
    say(f"Rows and settings are in {out}")


@app.command("modes", epilog="Example: vhmc bench modes --problems two-2,labels-2")
def bench_modes(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-results/bench-modes"
    ),
    problems: Annotated[
        str | None, typer.Option(help="Names, as two-2,labels-2; else all.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Evaluations of the model.")] = 1500,
    seeds: Annotated[int, typer.Option(help="Runs of each.")] = 5,
) -> None:
    """Masses of separate modes, and what the verdict says where one is missing."""
    from vhmc.lab.bench.modes.run import Settings, run, write

    chosen = _given(problems=names(problems), budget=budget, seeds=seeds)
    try:
        settings = Settings(**chosen)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, say, out / "rows.csv")
        table, headline = write(out, settings, rows)
    except (ValueError, OSError) as error:
        fail(error)
    console.print(table)
    say(headline)
    say(f"Rows and settings are in {out}")


def _given(**options: Any) -> dict[str, Any]:
    """Settings that were chosen; the others keep their defaults."""
    return {name: value for name, value in options.items() if value is not None}


def _choice(
    problems: str | None, budgets: str | None, methods: str | None, seeds: int | None
) -> dict[str, Any]:
    return _given(
        problems=names(problems),
        budgets=numbers("--budgets", budgets, int),
        seeds=seeds,
        methods=names(methods),
    )


def _compare(out: Path, kind: "type[Settings]", chosen: dict[str, Any]) -> None:
    """Run the methods, write the results and print the tables."""
    from vhmc.lab.bench.run import run
    from vhmc.lab.bench.write import write

    if chosen.get("budgets") and kind.main_budget not in chosen["budgets"]:
        chosen["main_budget"] = max(chosen["budgets"])
    try:
        settings = kind(**chosen)
        out.mkdir(parents=True, exist_ok=True)
        rows = run(settings, say, out / "rows.csv")
        tables, headline = write(out, settings, rows)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        fail(error)
    console.print(*tables)
    say(headline)
    say(f"Figures, rows, summary and settings are in {out}")
