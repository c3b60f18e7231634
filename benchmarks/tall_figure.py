"""One figure of several runs of the race on tall data.

    python benchmarks/tall_figure.py docs/figures/tall.png RUN [RUN ...]

Each RUN is a folder that `vhmc bench tall --out` left.
"""

import csv
import sys
from pathlib import Path

from vhmc.lab.bench.tall.race import Finish
from vhmc.lab.bench.tall.write import time_against_rows


def read(folder):
    """Races of one run."""
    with (Path(folder) / "races.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            kinds = Finish.__annotations__
            yield Finish(**{name: kinds[name](value) for name, value in row.items()})


def main(path, *folders):
    """Draw them all."""
    races = [race for folder in folders for race in read(folder)]
    time_against_rows(races).savefig(path, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
