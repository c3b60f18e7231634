"""`vhmc ledger`: show which evaluations a run made, and at what cost."""

from pathlib import Path
from typing import Annotated

import typer

from vhmc.cli.terminal import console, fail, say

app = typer.Typer(no_args_is_help=True)


@app.command("show", epilog="Example: vhmc ledger show vhmc-run/ledger.vhmc")
def ledger_show(
    path: Annotated[
        Path, typer.Argument(help="Ledger of a run, which may still be under way.")
    ],
) -> None:
    """Print evaluations, failures and times by phase."""
    from rich.table import Table

    from vhmc.evaluation.ledger import LedgerError, LedgerFile
    from vhmc.evaluation.ledger_summary import COLUMNS, summarise

    try:
        file = LedgerFile(path, is_read_only=True)
        summary = summarise(file.facts(), file.rounds())
    except LedgerError as error:
        fail(error)
    file.close()
    for line in summary.lines:
        say(line)
    table = Table(*COLUMNS)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in summary.rows[:-1]:
        table.add_row(*row)
    table.add_section()
    table.add_row(*summary.rows[-1])
    console.print(table)
    for reason, number in summary.reasons:
        say(f"failed {number} times: {reason}")
