"""What every experiment leaves behind: figures, every number, the settings."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from vhmc.report.versions import versions


def save_figure(folder: Path, name: str, figure: Figure) -> list[Path]:
    """Write a figure as PNG for the screen and as PDF for print."""
    paths = [folder / f"{name}.png", folder / f"{name}.pdf"]
    for path in paths:
        # No date in the PDF: the same run writes the same file.
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else None
        figure.savefig(path, dpi=160, metadata=metadata)
    return paths


def save_table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows that share their keys as CSV."""
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def save_record(folder: Path, name: str, record: Mapping[str, Any]) -> Path:
    """Write settings, seeds and costs as JSON, with the versions they were run with."""
    path = folder / f"{name}.json"
    full = {**record, "versions": versions(), "cores": os.cpu_count()}
    path.write_text(json.dumps(full, indent=2) + "\n")
    return path
