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
    blobs = pa.array([code] * count, pa.large_binary())
    numbers = pa.array([[1.0]] * count, pa.list_(pa.float32()))
    inner = typed(pa.large_binary(), "ray.data.arrow_pickled_object", column="inner")
    nested = pa.StructArray.from_arrays([blobs], fields=[inner])
    listed = pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), nested)
    columns: dict[str, tuple[pa.Array, pa.Field]] = {
        "pickles": (blobs, typed(pa.large_binary(), "ray.data.arrow_pickled_object")),
        "pickles in a list of structs": (listed, pa.field("more", listed.type)),
        "a tensor whose shape is a pickle": (numbers, typed(numbers.type, "ray.data.arrow_tensor", code)),
        "an older type of pyarrow": (blobs, typed(pa.large_binary(), "arrow.py_extension_type", code)),
        "a type nobody knows": (blobs, typed(pa.large_binary(), "somebody.else")),
    }
    return {name: honest.append_column(field, array) for name, (array, field) in columns.items()}
