"""Converting columns of a batch (NumPy, Arrow, pandas) to a model's inputs, and its outputs to columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import dtypes
from ..errors import DTypeError, EmberletError, ShapeError
from ..host.cli.model import Dims, Input
from ..host.listing import names as listed_names
from ..host.listing import shortened
from .pictures import decode

Columns = dict[str, Any]
"""name -> an array whose first axis is the rows, or a list of arrays of different shapes."""


@dataclass(frozen=True)
class Fitted:
    """An input for all rows. shared: all rows use the same value; whole: each row is a whole input, without a batch
    axis."""

    array: NDArray[Any]
    shared: bool = False
    whole: bool = False


def of_batch(batch: Any) -> Columns:
    """The columns of a dict of arrays (NumPy's or Arrow's), an Arrow table or record batch, or a pandas frame."""
    if isinstance(batch, Mapping):
        return {name: _column(name, x) if hasattr(x, "null_count") else x for name, x in batch.items()}
    if hasattr(batch, "schema") and hasattr(batch, "column"):
        return {name: _column(name, batch.column(i)) for i, name in enumerate(batch.schema.names)}
    if hasattr(batch, "columns") and hasattr(batch, "iloc"):
        return {str(name): batch[name].to_numpy() for name in batch.columns}
    raise EmberletError(f"a batch is a dict of arrays, an Arrow table or a pandas frame, found {type(batch).__name__}")


def _column(name: str, column: Any) -> Any:
    """`_of_arrow`. Raises DTypeError for types that Arrow itself cannot turn into arrays."""
    import pyarrow as pa

    try:
        return _of_arrow(column)
    except (pa.ArrowException, IndexError) as error:
        raise DTypeError(f"column {name!r} of type {column.type}: {shortened(str(error))}") from None


def _of_arrow(column: Any) -> Any:
    """An Arrow array as a NumPy array; lists of equal lengths become axes."""
    import pyarrow as pa

    from .arrow_types import check_type

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):  # too long for one array
            return np.concatenate([_of_arrow(chunk) for chunk in column.chunks])
    kind = column.type
    check_type(kind, "a batch: a column")
    if isinstance(kind, pa.BaseExtensionType):
        if hasattr(column, "to_numpy_ndarray"):
            return column.to_numpy_ndarray()
        return column.to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):
        return _of_dictionary(column)
    if pa.types.is_fixed_size_list(kind) and not column.null_count:
        inner = _of_arrow(column.flatten())
        if not isinstance(inner, np.ndarray):  # of lists of different lengths, or of structs
            return column.to_pylist()
        return inner.reshape(len(column), kind.list_size, *inner.shape[1:])
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and not column.null_count:
        lengths = set(column.value_lengths().to_pylist())
        inner = _of_arrow(column.flatten())
        if not isinstance(inner, np.ndarray):
            return column.to_pylist()
        if len(lengths) == 1:
            return inner.reshape(len(column), lengths.pop(), *inner.shape[1:])
        offsets = column.offsets.to_numpy() - column.offsets[0].as_py()
        return [inner[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]
    if pa.types.is_struct(kind):
        return column.to_pylist()
    return column.to_numpy(zero_copy_only=False)


def _of_dictionary(column: Any) -> Any:
    import pyarrow as pa

    kinds = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
    if column.type.value_type not in kinds or not len(column.dictionary):
        return _of_arrow(column.dictionary_decode())
    texts = column.dictionary.to_numpy(zero_copy_only=False)
    found = texts[column.indices.fill_null(0).to_numpy(zero_copy_only=False)]  # a text is kept once
    found[column.is_null().to_numpy(zero_copy_only=False)] = None
    return found


def like(columns: Columns, batch: Any) -> Any:
    """Result columns, in the type of the input batch."""
    if isinstance(batch, Mapping):
        return columns
    if hasattr(batch, "schema"):
        found = table(columns)
        if isinstance(batch, type(found)):
            return found
        import pyarrow as pa

        arrays = [x.combine_chunks() for x in found.columns]  # Spark expects a record batch for a record batch
        return pa.RecordBatch.from_arrays(
            [x.chunk(0) if isinstance(x, pa.ChunkedArray) else x for x in arrays], schema=found.schema
        )
    import pandas as pd

    return pd.DataFrame({name: list(x) if getattr(x, "ndim", 1) > 1 else x for name, x in columns.items()})


def table(columns: Columns) -> Any:
    """An Arrow table: further axes become fixed-size lists, which every Parquet reader supports."""
    import pyarrow as pa

    return pa.table({name: x if isinstance(x, pa.Array | pa.ChunkedArray) else arrow(x) for name, x in columns.items()})


def arrow(x: Any) -> Any:
    """An array as an Arrow array."""
    import pyarrow as pa

    if not isinstance(x, np.ndarray) or x.ndim < 2:
        if isinstance(x, np.ndarray) and x.dtype.kind not in "biufMmOUS":  # a dtype of ml_dtypes
            x = x.astype(np.float32)
        return pa.array(x)
    flat = arrow(np.ascontiguousarray(x).reshape(-1))
    for axis in range(x.ndim - 1, 0, -1):
        size = x.shape[axis]
        flat = pa.FixedSizeListArray.from_arrays(flat, size) if size else pa.array([[]] * prod(x.shape[:axis]))
    return flat


def names_of(i: Input, given: Mapping[str, Any] | None, columns: Sequence[str], only: bool) -> list[str]:
    """The columns of an input: those given for it, the one with its name, or, if the model has a single input, the
    `only` column. Raises EmberletError if there is none."""
    said = (given or {}).get(i.name, (given or {}).get(i.parameter))
    if said is not None:
        wanted = [said] if isinstance(said, str) else list(said)
    elif i.name in columns or i.parameter in columns:
        wanted = [i.name if i.name in columns else i.parameter]
    elif only and len(columns) == 1:
        wanted = list(columns)
    else:
        raise EmberletError(
            f"no column is named {i.name!r}, an input of the model; name its column: inputs={{{i.name!r}: column}}, "
            f"on the command line --input {i.name}=COLUMN. The columns are {', '.join(columns) or 'none'}"
        )
    lacking = [name for name in wanted if name not in columns]
    if lacking and list(columns) == [""]:  # an .npy file
        raise EmberletError(f"there is no column {lacking[0]!r}: the data is one array; name no column of {i.name!r}")
    if lacking:
        raise EmberletError(f"there is no column {lacking[0]!r}; the columns are {listed_names(columns) or 'none'}")
    return wanted


def joined(columns: Columns, names: Sequence[str]) -> Any:
    """One column, or several numeric ones stacked to (rows, columns)."""
    if len(names) == 1:
        return columns[names[0]]
    parts = [np.asarray(columns[name]) for name in names]
    for name, part in zip(names, parts, strict=True):
        if part.dtype.kind not in "biuf":
            raise DTypeError(f"the column {name!r} holds {part.dtype}, and stacked columns must hold numbers")
    return np.stack(parts, axis=1) if all(p.ndim == 1 for p in parts) else np.concatenate(parts, axis=1)


def is_picture(column: Any, i: Input) -> bool:
    """Whether the column of a numeric input holds image files, as bytes or as paths."""
    if i.dtype is None or i.dtype.kind == "string" or len(column) == 0:
        return False
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OSU":
        return False
    first = column[0]
    return isinstance(first, bytes | str) or (isinstance(first, Mapping) and bool({"bytes", "path"} & first.keys()))


def channels_of(i: Input) -> int:
    """The number of color channels of an input (n, c, height, width) or (n, height, width, c); 3 if it is open."""
    shape = i.shape or ()
    for axis in (1, 3) if len(shape) == 4 else (0, 2) if len(shape) == 3 else ():
        if shape[axis] in (1, 3, 4):
            return int(shape[axis] or 3)
    return 1 if len(shape) in (2, 3) else 3


def pictures(column: Any, i: Input) -> Any:
    """Image files as uint8 (rows, height, width, channels); a list if their sizes differ."""
    decoded = [decode(x, channels_of(i)) for x in column]
    return np.stack(decoded) if len({x.shape for x in decoded}) == 1 else decoded


def fit(column: Any, i: Input) -> Fitted:
    """A column converted to the dtype and the axes of the input.

    Integers become floats, and floats change width; rows with as many numbers as the input get its shape; the channels
    of images move to the input's axis. Nothing is scaled or resized.

    Raises DTypeError, ShapeError.
    """
    x = _typed(_stacked(column, i), i)
    if i.shape is None:
        return Fitted(x)
    row, wanted = x.shape[1:], i.shape
    if len(wanted) == 0 and row == ():
        if len(x) and not (x == x[0]).all():
            raise ShapeError(f"the model takes {i}, one value for all rows; the column holds several")
        return Fitted(x[0].reshape(()), shared=True)
    if len(row) + 1 == len(wanted) and _agree(row, wanted[1:]):
        return Fitted(x)
    if len(row) == 3 and len(wanted) == 4 and _agree((row[2], *row[:2]), wanted[1:]):
        return Fitted(np.ascontiguousarray(np.moveaxis(x, 3, 1)))
    inner = wanted[1:]
    if all(isinstance(d, int) for d in inner) and prod(row) == prod(inner):  # type: ignore[arg-type]
        return Fitted(x.reshape(len(x), *inner))
    if len(row) == len(wanted) and _agree(row, wanted):
        return Fitted(x, whole=True)
    hint = "; preprocess= (--preprocess module:function) may resize it" if x.dtype == np.uint8 or len(row) == 3 else ""
    raise ShapeError(f"the model takes {i}, found rows of shape {row}{hint}")


def _agree(found: Sequence[int], wanted: Dims) -> bool:
    return all(not isinstance(d, int) or d == n for n, d in zip(found, wanted, strict=True))


def _stacked(column: Any, i: Input) -> NDArray[Any]:
    """One array of all rows."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column
    if i.dtype is not None and i.dtype.kind == "string":
        return np.asarray(column, dtype=object)
    empty = [k for k, x in enumerate(column) if x is None]
    if empty:
        raise DTypeError(f"the model takes {i}, and row {empty[0]} of the batch has no value")
    rows = [np.asarray(x) for x in column]
    shapes = list(dict.fromkeys(x.shape for x in rows))
    if len(shapes) > 1:
        raise ShapeError(
            f"the model takes {i}, found rows of different shapes, {shapes[0]} and {shapes[1]}; preprocess= "
            f"(--preprocess module:function) may convert them"
        )
    return np.stack(rows) if rows else np.empty((0,), np.float32)


def _typed(x: NDArray[Any], i: Input) -> NDArray[Any]:
    if i.dtype is None or i.dtype.kind == "string":
        return x
    if x.dtype.kind not in "biuf" and x.dtype.name not in dtypes.BY_NAME:
        raise DTypeError(f"the model takes {i}, found {'texts' if x.dtype.kind in 'OUS' else x.dtype}")
    have, want = dtypes.BY_NAME.get(x.dtype.name), i.dtype
    if have is want:
        return x
    target = _numpy_dtype(want)
    if want.is_float and (have is None or x.dtype.kind in "biuf" or have.is_float):
        return x.astype(target)
    if x.dtype.kind in "iu" and want.kind in ("int", "uint"):
        low, high = want.range
        if x.size and (int(x.min()) < low or int(x.max()) > high):
            raise DTypeError(f"the model takes {i}, found {x.dtype} values that {want} does not hold")
        return x.astype(target)
    if x.dtype.kind == "f" and want.kind in ("int", "uint") and np.isnan(x).any():
        raise DTypeError(f"the model takes {i}, and a row of the column has no value")
    raise DTypeError(f"the model takes {i}, found {x.dtype}; preprocess= (--preprocess module:function) may convert it")


def _numpy_dtype(dtype: dtypes.DType) -> Any:
    if hasattr(np, dtype.name) and dtype.name != "bool":
        return np.dtype(dtype.name)
    if dtype.name == "bool":
        return np.dtype(np.bool_)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype.name))
