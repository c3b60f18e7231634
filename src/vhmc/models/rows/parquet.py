"""Stream the rows of Parquet files; memory holds a few chunks of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vhmc.models.rows.likelihood import RowLikelihood
from vhmc.models.rows.source import Chunks, read_ahead

BUFFER_BYTES = 2**20
"""Buffer of a column that is being read."""


def from_files(
    likelihood: RowLikelihood, files: Sequence[str], columns: Sequence[str], size: int
) -> Chunks:
    """Source that reads the files again at every pass.

    columns: names of those that the likelihood uses.
    size: rows per chunk.
    """
    name = f"{len(files)} Parquet file{'s' if len(files) > 1 else ''}"
    return Chunks(name, likelihood, lambda: read_ahead(read(files, columns, size)))


def parquet_files(path: Path) -> list[str]:
    """A file, or all Parquet files below a folder in alphabetical order."""
    if not path.exists():
        raise ValueError(f"there are no data {path}")
    files = [path] if path.is_file() else sorted(path.rglob("*.parquet"))
    if not files:
        raise ValueError(f"{path} has no Parquet files")
    return [str(file) for file in files]


def first_rows(file: str) -> dict[str, np.ndarray]:
    """One row of zeros for each numeric column, from the file's schema.

    The first list of a column of lists defines their length.
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
    """Raise an error if a file lacks one of the columns."""
    import pyarrow.parquet

    for file in files:
        missing = set(columns) - set(pyarrow.parquet.read_schema(file).names)
        if missing:
            raise ValueError(
                f"{file} has no column {', '.join(sorted(missing))}, which the other "
                "files have"
            )


def kinds_of(file: str, columns: Sequence[str]) -> Any:
    """Arrow schema of the columns of one file, to which all others are cast."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(file)
    return pyarrow.schema([(name, schema.field(name).type) for name in columns])


def read(
    files: Sequence[str], columns: Sequence[str], num_rows: int
) -> Iterator[dict[str, np.ndarray]]:
    """Chunks of `num_rows` rows; only the last is shorter."""
    import pyarrow
    import pyarrow.parquet

    rest, kinds = None, kinds_of(files[0], columns)
    for name in files:
        # Without `pre_buffer`, which would load whole row groups into memory.
        options = {"pre_buffer": False, "buffer_size": BUFFER_BYTES}
        with pyarrow.parquet.ParquetFile(name, **options) as file:
            for batch in file.iter_batches(num_rows, columns=list(columns)):
                table = pyarrow.Table.from_batches([batch]).select(columns).cast(kinds)
                rest = table if rest is None else pyarrow.concat_tables([rest, table])
                while len(rest) >= num_rows:
                    yield arrays_of(rest.slice(0, num_rows), name)
                    rest = rest.slice(num_rows)
    if rest is not None and len(rest):
        yield arrays_of(rest, name)


def arrays_of(table: Any, file: str) -> dict[str, np.ndarray]:
    """Columns of a table of this file, as arrays."""
    return {name: _as_array(table[name], name, file) for name in table.column_names}


def _as_array(column: Any, name: str, file: str) -> np.ndarray:
    """Array of a column of numbers, or of lists of numbers of one length."""
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
