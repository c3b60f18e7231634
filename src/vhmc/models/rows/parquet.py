"""Rows in Parquet files, streamed: memory holds a few chunks of them."""

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.source import Source, Sums, add_up

AHEAD = 2
"""Chunks that are read while others are computed with."""
BUFFER_BYTES = 2**20
"""Of a column that is being read."""


class Parquet(Source):
    """Files of one dataset, read again at every pass.

    files: in order.
    columns: names of those that are needed.
    num_rows: of a chunk.
    """

    def __init__(
        self,
        likelihood: RowLikelihood,
        files: Sequence[str],
        columns: Sequence[str],
        num_rows: int,
    ):
        self._likelihood = likelihood
        self._files, self._columns, self._num_rows = files, columns, num_rows
        number = len(files)
        self.name = f"{number} Parquet file{'s' if number > 1 else ''}"

    def total(self, summand: str, thetas: np.ndarray) -> Sums:
        """One pass over the files; reading and computing overlap."""
        chunks = ahead(read(self._files, self._columns, self._num_rows))
        return add_up(getattr(self._likelihood, summand), thetas, chunks)


def parquet_files(path: Path) -> list[str]:
    """A file, or all Parquet files of a folder and of those in it, by name."""
    if not path.exists():
        raise ValueError(f"there are no data {path}")
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not files:
        raise ValueError(f"{path} has no Parquet files")
    return [str(file) for file in files]


def first_rows(file: str) -> dict[str, np.ndarray]:
    """A row of zeros for each column of numbers, from the file's head.

    Where lists may differ in length the first of them says how long they are.
    """
    import pyarrow
    import pyarrow.parquet

    rows: dict[str, np.ndarray] = {}
    shape: tuple[int, ...]
    for field in pyarrow.parquet.read_schema(file):
        kind, shape = field.type, ()
        if pyarrow.types.is_fixed_size_list(kind):
            kind, shape = kind.value_type, (kind.list_size,)
        elif _is_list(kind):
            kind, shape = kind.value_type, (_first_length(file, field.name),)
        is_number = pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)
        if is_number or pyarrow.types.is_boolean(kind):
            rows[field.name] = np.zeros((1, *shape), dtype=kind.to_pandas_dtype())
    return rows


def _is_list(kind: Any) -> bool:
    import pyarrow

    return pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)


def _first_length(file: str, name: str) -> int:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(1, columns=[name]):
            return len(batch[name][0] or ())
    return 0


def check_columns(files: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse files that have not all columns of the first."""
    import pyarrow.parquet

    for file in files:
        missing = set(columns) - set(pyarrow.parquet.read_schema(file).names)
        if missing:
            raise ValueError(
                f"{file} has no column {', '.join(sorted(missing))}, which the other "
                "files have"
            )


def kinds_of(file: str, columns: Sequence[str]) -> Any:
    """Types of columns: those of one file are asked of all others."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(file)
    return pyarrow.schema([(name, schema.field(name).type) for name in columns])


def read(
    files: Sequence[str], columns: Sequence[str], num_rows: int
) -> Iterator[dict[str, np.ndarray]]:
    """Chunks of so many rows; only the last is shorter, so there are two programs."""
    import pyarrow
    import pyarrow.parquet

    rest, kinds = None, kinds_of(files[0], columns)
    for name in files:
        # In pages: a row group may be larger than what memory is to hold.
        options = {"pre_buffer": False, "buffer_size": BUFFER_BYTES}
        with pyarrow.parquet.ParquetFile(name, **options) as file:
            for batch in file.iter_batches(num_rows, columns=list(columns)):
                table = pyarrow.Table.from_batches([batch]).select(columns).cast(kinds)
                rest = table if rest is None else pyarrow.concat_tables([rest, table])
                while len(rest) >= num_rows:
                    yield _arrays(rest.slice(0, num_rows), name)
                    rest = rest.slice(num_rows)
    if rest is not None and len(rest):
        yield _arrays(rest, name)


def _arrays(table: Any, file: str) -> dict[str, np.ndarray]:
    return {name: as_array(table[name], name, file) for name in table.column_names}


def as_array(column: Any, name: str, file: str) -> np.ndarray:
    """A column of numbers, or of lists of numbers of one length."""
    import pyarrow

    array = column.combine_chunks()
    is_fixed = pyarrow.types.is_fixed_size_list(array.type)
    values = array.flatten() if is_fixed or _is_list(array.type) else array
    if column.null_count or values.null_count:
        raise ValueError(f"column {name} of {file} has missing values")
    numbers = values.to_numpy(zero_copy_only=False)
    if values is array:
        return numbers
    if not is_fixed and len(array) and np.ptp(array.value_lengths().to_numpy()):
        raise ValueError(f"column {name} of {file} has lists of different lengths")
    return numbers.reshape(len(array), -1)


def ahead(chunks: Iterable[Any], depth: int = AHEAD) -> Iterator[Any]:
    """The same, read by a thread that is a few ahead of who uses them."""
    shelf: queue.Queue = queue.Queue(depth)
    is_left = threading.Event()
    end = object()

    def put(item: Any) -> bool:
        while not is_left.is_set():
            try:
                shelf.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def read_on() -> None:
        try:
            for chunk in chunks:
                if not put(chunk):
                    return
            put(end)
        except BaseException as error:  # for the thread that waits to raise
            put(error)

    threading.Thread(target=read_on, daemon=True).start()
    try:
        while (item := shelf.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_left.set()
