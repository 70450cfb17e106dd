"""Arrow tables with columns whose reader would run a command, made without the libraries that would run it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa


class Touch:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.system, (f"touch {self.path}",)


def typed(kind: pa.DataType, name: str, parameters: bytes = b"", column: str = "more") -> pa.Field:
    """A field of an extension type, as a file stores it."""
    return pa.field(
        column, kind, metadata={b"ARROW:extension:name": name.encode(), b"ARROW:extension:metadata": parameters}
    )


def hostile_parquet(honest: pa.Table, trap: Path) -> dict[str, pa.Table]:
    """Tables like the honest one, each with another column that is a trap."""
    code = pickle.dumps(Touch(trap))
    count = len(honest)
    blobs, nested = _pickled(code, count)
    numbers = pa.array([[1.0]] * count, pa.list_(pa.float32()))
    offsets = pa.array(range(count + 1), pa.int32())
    keys = pa.array(["k"] * count)
    columns: dict[str, tuple[pa.Array, pa.Field]] = {
        "pickles": (blobs, typed(pa.large_binary(), "ray.data.arrow_pickled_object")),
        "pickles of a dictionary": (
            blobs.dictionary_encode(),
            typed(pa.dictionary(pa.int32(), pa.large_binary()), "ray.data.arrow_pickled_object"),
        ),
        "a tensor whose shape is a pickle": (numbers, typed(numbers.type, "ray.data.arrow_tensor", code)),
        "an older type of pyarrow": (blobs, typed(pa.large_binary(), "arrow.py_extension_type", code)),
        "a type nobody knows": (blobs, typed(pa.large_binary(), "somebody.else")),
    }
    for name, found in {
        "a struct": nested,
        "a struct in a struct": pa.StructArray.from_arrays([nested], ["outer"]),
        "a list of structs": pa.ListArray.from_arrays(offsets, nested),
        "a list of lists": pa.ListArray.from_arrays(offsets, pa.LargeListArray.from_arrays(offsets, nested)),
        "a list of one size": pa.FixedSizeListArray.from_arrays(nested, 1),
        "a map": pa.MapArray.from_arrays(offsets, keys, nested),
    }.items():
        columns[f"pickles in {name}"] = found, pa.field("more", found.type)
    return {name: honest.append_column(field, array) for name, (array, field) in columns.items()}


def hostile_arrow(honest: pa.Table, trap: Path) -> dict[str, pa.Table]:
    """The same, with columns that Parquet has not."""
    count = len(honest)
    _, nested = _pickled(pickle.dumps(Touch(trap)), count)
    indices = pa.array(range(count), pa.int32())
    kinds = pa.array([0] * count, pa.int8())
    columns = {
        "a dictionary": pa.DictionaryArray.from_arrays(indices, nested),
        "a list of a dictionary": pa.ListArray.from_arrays(
            pa.array(range(count + 1), pa.int32()), pa.DictionaryArray.from_arrays(indices, nested)
        ),
        "a view of a list": pa.ListViewArray.from_arrays(indices, pa.array([1] * count, pa.int32()), nested),
        "a union": pa.UnionArray.from_sparse(kinds, [nested]),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, count + 1), pa.int32()), nested),
    }
    found = {f"pickles in {name}": honest.append_column("more", array) for name, array in columns.items()}
    return hostile_parquet(honest, trap) | found


def _pickled(code: bytes, count: int) -> tuple[pa.Array, pa.StructArray]:
    """Pickles as bytes, and as a field of a struct whose type has them unpickled."""
    blobs = pa.array([code] * count, pa.large_binary())
    inner = typed(pa.large_binary(), "ray.data.arrow_pickled_object", column="inner")
    return blobs, pa.StructArray.from_arrays([blobs], fields=[inner])
