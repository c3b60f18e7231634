"""`vhmc reproduce`: the experiments of the paper."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from vhmc.cli.terminal import console, fail, numbers, say

app = typer.Typer(no_args_is_help=True)
MOST_ROWS = 60
"""Longer tables are not printed on the terminal, only written to the folder."""
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the results; an interrupted run resumes from it."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A small version, in a minute.")]
Full = Annotated[bool, typer.Option("--full", help="The paper's own length: hours.")]
Data = Annotated[Path | None, typer.Option(help="Data file, or a folder with it.")]
TrainedInputs = Annotated[
    bool,
    typer.Option(
        "--trained-inputs", help="Also the form whose input weights are trained."
    ),
]
Seed = Annotated[int, typer.Option(help="Of all random numbers.", min=0, max=2**32 - 1)]


@app.command(
    "beta-binomial", epilog="Example: vhmc reproduce beta-binomial --nodes 10,40"
)
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
    trained_inputs: TrainedInputs = False,
    seed: Seed = 0,
) -> None:
    """Experiment 1: cancer mortality; the surrogate improves as its nodes grow."""
    given = {
        "nodes": numbers("--nodes", nodes, int),
        "repetitions": repetitions,
        "num_train": train,
        "ridge": ridge,
        "start": numbers("--start", start, float, 2),
        "trained_inputs": trained_inputs,
        "seed": seed,
    }
    _reproduce("beta-binomial", out, given, quick=quick)


@app.command("probit", epilog="Example: vhmc reproduce probit --quick")
def reproduce_probit(
    out: Out = None,
    quick: Quick = False,
    runs: Annotated[int | None, typer.Option(help="Data sets.")] = None,
    seed: Seed = 0,
) -> None:
    """Experiment 2: posterior means of probit regression, by passes over the data."""
    _reproduce("probit", out, {"num_runs": runs, "seed": seed}, quick=quick)


@app.command("logistic", epilog="Example: vhmc reproduce logistic --quick")
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
    given = {"limits": numbers("--limits", limits, float, 2), "seed": seed}
    _reproduce("logistic", out, given, quick=quick, full=full, data=data)


@app.command("ica", epilog="Example: vhmc reproduce ica --quick")
def reproduce_ica(
    out: Out = None,
    quick: Quick = False,
    full: Full = False,
    limit: Annotated[
        float | None, typer.Option(help="Seconds of every method.")
    ] = None,
    trained_inputs: TrainedInputs = False,
    data: Data = None,
    seed: Seed = 0,
) -> None:
    """Experiment 4: independent components of an MEG recording, by time."""
    given = {"limit": limit, "trained_inputs": trained_inputs, "seed": seed}
    _reproduce("ica", out, given, quick=quick, full=full, data=data)


@app.command("all", epilog="Example: vhmc reproduce all --quick")
def reproduce_all(
    out: Out = None, quick: Quick = False, full: Full = False, seed: Seed = 0
) -> None:
    """All four, each in a folder of its own, and one page for all."""
    from vhmc.lab.baselines.nuts import load_blackjax
    from vhmc.lab.experiments.output import write_page

    try:
        load_blackjax()  # the second experiment needs it, after minutes of the first
    except ModuleNotFoundError as error:
        fail(error)
    root = out or Path("vhmc-results") / ("all-quick" if quick else "all")
    stories = [
        _reproduce(name, root / name, {"seed": seed}, quick=quick, full=full)
        for name in ("beta-binomial", "probit", "logistic", "ica")
    ]
    say(f"All on one page: {write_page(root / 'index.html', stories)}")


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

    from vhmc.evaluation.evaluator import RunFailure
    from vhmc.lab.experiments.output import write_page
    from vhmc.lab.experiments.parts import Progress

    if quick and full:
        fail("--quick and --full exclude each other")
    package = f"vhmc.lab.experiments.{name.replace('-', '_')}"
    run = importlib.import_module(f"{package}.run")
    write = importlib.import_module(f"{package}.write").write
    chosen = {key: value for key, value in given.items() if value is not None}
    if quick or full:
        chosen = getattr(run, "QUICK" if quick else "FULL", {}) | chosen
    folder = out or Path("vhmc-results") / (f"{name}-quick" if quick else name)
    if folder.exists() and not folder.is_dir():
        fail(f"{folder} is a file: --out names a folder")
    more = {} if data is None else {"data": data}
    began = time.perf_counter()
    try:
        settings = run.Settings(**chosen)
        results = run.run(folder, settings, Progress(console, name), **more)
        story = write(folder, settings, results, quick)
        page = write_page(folder / "index.html", [story])
    except (ValueError, OSError, ModuleNotFoundError, RunFailure) as error:
        fail(error)
    except KeyboardInterrupt:
        say(f"stopped: the same command resumes from {folder}")
        raise typer.Exit(130) from None
    _tell(story)
    say(f"{time.perf_counter() - began:.0f} s; figures, numbers and page: {page}")
    return story


def _tell(story: Any) -> None:
    """Print the table and the claims of an experiment."""
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
    for claim in (claim for panel in story.panels for claim in panel.claims):
        status = f"[{colours[claim.status]}]{claim.status}[/]:"
        words = escape(f"{claim.sentence} {claim.numbers}")
        console.print(status, words, soft_wrap=True, highlight=False)
    if story.is_quick:
        say("This was the quick version: too small to judge the claims by.")
