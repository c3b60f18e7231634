"""One figure of several runs of `vhmc bench structured`: errors against evaluations.

    python benchmarks/structured_figure.py docs/figures/structured.png RUN [RUN ...]

Each RUN is a folder that `vhmc bench structured --out` left. Where two hold the same
run, the later one counts.
"""

import sys
from pathlib import Path

from vhmc.lab.bench.figure import error_panels
from vhmc.lab.bench.rows import read_rows
from vhmc.lab.bench.structured.problems import STRUCTURED


def main(path, *folders):
    """Draw them all."""
    rows = [row for folder in folders for row in read_rows(Path(folder) / "rows.csv")]
    order = list(STRUCTURED)
    last = {row.key: row for row in rows}.values()
    known = sorted(last, key=lambda row: order.index(row.problem))
    figure = error_panels(known, "mean_error", "worst error of a mean  [sd]")
    figure.savefig(path, dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
