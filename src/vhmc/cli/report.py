"""`vhmc report`: write the HTML report of a saved run."""

from pathlib import Path
from typing import Annotated

import typer

from vhmc.cli.sample import LEDGER, REPORT, RUN
from vhmc.cli.terminal import fail, say


def report(
    run: Annotated[
        Path,
        typer.Argument(help="Folder of `vhmc sample`, or a file of posterior.save()."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Path of the report; by default beside the run.")
    ] = None,
) -> None:
    """Write the report of a run: one HTML file that needs no network.

    \b
    vhmc report vhmc-run
    vhmc report saved.npz --out page.html
    """  # noqa: D301
    from vhmc.report.facts import load
    from vhmc.report.page import write_page

    file = run / RUN if run.is_dir() else run
    if not file.exists():
        if (run / LEDGER).exists():
            fail(
                f"the run in {run} has not ended: continue it by the command that "
                "started it, with --resume"
            )
        fail(f"there is no run at {run}: give the folder of `vhmc sample --out`")
    if file.suffix == ".vhmc":
        fail(
            f"{file} is a ledger, which holds evaluations and no draws: give the "
            "folder of `vhmc sample`, or a file of posterior.save()"
        )
    try:
        page = write_page(load(file), out or file.with_name(REPORT))
    except (ValueError, OSError) as error:
        fail(error)
    say(f"The report is {page}")
