"""The look of the benchmark's tables."""

from rich import box
from rich.table import Table

TEXTS = ("problem", "method", "verdict", "verdicts", "first reason")


def plain_table(title: str, *headers: str) -> Table:
    """A narrow table: numbers to the right, names never cut."""
    table = Table(
        title=f"\n{title}",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        min_width=60,
    )
    for header in headers:
        table.add_column(
            header,
            justify="left" if header in TEXTS else "right",
            no_wrap=header in ("problem", "method"),
            overflow="fold",
        )
    return table
