"""`vhmc sample`: sample the posterior of a model in a file."""

import csv
import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from vhmc.cli.terminal import Budget, Debug, Seed, console, fail, is_debugging, say

LEDGER, RUN, REPORT = "ledger.vhmc", "run.npz", "report.html"
FAILED, BAD, INTERRUPTED = 1, 3, 130
"""Exit codes beside 0 (good or caution) and 2 (bad input)."""


def sample(
    model: Annotated[
        str, typer.Argument(help="FILE.py:NAME or FILE.stan.", metavar="MODEL")
    ],
    init: Annotated[
        Path | None, typer.Option(help="JSON file with initial values.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="JSON file with the data of a Stan program.")
    ] = None,
    budget: Budget = 1000,
    draws: Annotated[int, typer.Option(help="Draws per chain.")] = 1000,
    chains: Annotated[int, typer.Option(help="Number of chains on the surrogate.")] = 8,
    correction: Annotated[
        str, typer.Option(help="auto, none, importance or exact.")
    ] = "auto",
    seed: Seed = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "vhmc-run"
    ),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in that folder.")
    ] = False,
    progress: Annotated[bool, typer.Option(help="Show progress.")] = True,
    show_traceback: Debug = False,
) -> None:
    """Sample the posterior of a model in a file.

    NAME in a Python file is a log density that JAX can trace (with --init, or `init`
    in the file, and `constraints` if there are any), a PyMC model, or a vhmc target.

    \b
    vhmc sample model.py:log_density --init init.json --budget 1000
    vhmc sample model.stan --data data.json --out run
    vhmc sample model.stan --data data.json --out run --resume

    The folder then has report.html, summary.csv, draws.csv, run.npz for `vhmc report`,
    and the ledger, from which --resume continues without repeating evaluations.

    Exit codes: 0 verdict good or caution, 3 verdict bad, 2 bad input, 1 the model
    failed, 130 interrupted (partial results are written).
    """  # noqa: D301
    if show_traceback:
        is_debugging.set(True)
    from vhmc.evaluation.evaluator import Interrupted, RunFailure
    from vhmc.evaluation.ledger import LedgerError
    from vhmc.sampler import sample as default
    from vhmc.sampler.plan import plan

    ledger = out / LEDGER
    if ledger.exists() and not resume:
        fail(
            f"{out} has a run already: continue it with --resume, or choose another "
            "--out"
        )
    if resume and not ledger.exists():
        fail(f"{out} has no run to continue: start one without --resume")
    try:
        target = _loaded(model, init, data)
        plan(target, budget, correction)
        out.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            # `_show` prints the verdict with its reasons.
            warnings.filterwarnings("ignore", "verdict bad", UserWarning)
            posterior = default.sample(
                target,
                budget,
                draws=draws,
                chains=chains,
                correction=correction,
                seed=seed,
                ledger=ledger,
                progress=progress,
            )
    except (ValueError, TypeError, OSError, ImportError, LedgerError) as error:
        fail(error)
    except RunFailure as error:
        is_wish = isinstance(error.__context__, Interrupted)
        fail(error, INTERRUPTED if is_wish else FAILED)
    finish(posterior, out)


def finish(posterior: Any, folder: Path) -> None:
    """Write the results, print them, and exit with the code of the verdict."""
    _write(posterior, folder)
    _show(posterior, folder)
    verdict = posterior.verdict
    if "the run was interrupted" in (verdict.reasons or ("",))[0]:
        raise typer.Exit(INTERRUPTED)
    if verdict.status == "bad":
        raise typer.Exit(BAD)


def _loaded(model: str, init: Path | None, data: Path | None) -> Any:
    """The target; any exception of the user's file counts as bad input."""
    from vhmc.cli.model_file import load_model

    try:
        return load_model(model, init, data)
    except (ValueError, ImportError):
        raise
    except Exception as error:
        raise ValueError(f"{model}: {type(error).__name__}: {error}") from error


def _write(posterior: Any, folder: Path) -> None:
    """Write the results of a run into a folder."""
    from vhmc.report.facts import facts_of, save
    from vhmc.report.page import write_page

    facts = facts_of(posterior)
    facts.words["command"] = shlex.join(["vhmc", *sys.argv[1:]])
    try:
        save(facts, folder / RUN)
        posterior.summary().to_csv(folder / "summary.csv", encoding="utf-8")
        with (folder / "draws.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["chain", "draw", *facts.names])
            for chain, rows in enumerate(facts.values):
                writer.writerows([chain, draw, *row] for draw, row in enumerate(rows))
        write_page(facts, folder / REPORT)
    except OSError as error:
        fail(
            f"the results cannot be written ({error}): make room, then run the same "
            "command with --resume, which repeats no evaluation",
            FAILED,
        )


def _show(posterior: Any, folder: Path, most: int = 12) -> None:
    """Print the verdict, a table of the parameters, and the path of the report.

    most: parameters that the table shows.
    """
    from rich.markup import escape
    from rich.table import Table

    verdict = posterior.verdict
    style = {"good": "green", "caution": "yellow", "bad": "red"}[verdict.status]
    console.print(f"verdict: [bold {style}]{verdict.status}[/]", highlight=False)
    for reason in (*verdict.reasons, *verdict.notes):
        say(f"- {reason}")
    summary = posterior.summary()
    lacks = "moments" in summary.columns
    more = ("5%", "median", "95%") if lacks else ()
    table = Table("", "mean", "sd", *more, "ESS", "R-hat", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, row in summary.iloc[:most].iterrows():
        mean, sd = f"{row['mean']:.4g}", f"{row['sd']:.3g}"
        if lacks and row["moments"]:
            is_mean = row["moments"] == "no mean"
            mean, sd = ("no mean", "–") if is_mean else (mean, "no sd")
        table.add_row(
            *(escape(str(name)), mean, sd, *(f"{row[key]:.4g}" for key in more)),
            *(f"{row['ess_bulk']:.0f}", f"{row['r_hat']:.3f}"),
        )
    console.print(table)
    if len(summary) > most:
        say(f"and {len(summary) - most} more in {folder / 'summary.csv'}")
    if posterior.evidence is not None and not posterior.constants:
        say(f"log evidence {posterior.evidence}")
    say(f"{posterior.num_evaluations} evaluations; the report is {folder / REPORT}")
