"""Coverage-guided fuzzing of files of rows: python tests/fuzz/fuzz_rows.py [-max_total_time=60].

Needs atheris and pyarrow. The first byte says whether the rest is Parquet, CSV, compressed CSV or .npy, read as
`emberlet score` reads it, or a recipe for Arrow arrays in memory. Either rows come, or an EmberletError.
"""

import gzip
import io
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.batch", "emberlet.host.npy")

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
from emberlet.batch import columns, files, rows  # noqa: E402
from emberlet.errors import EmberletError  # noqa: E402
from pyarrow import fs, parquet  # noqa: E402

KINDS = ("x.parquet", "x.csv", "x.csv.gz", "x.npy", "arrow")
FOLDER = pathlib.Path(harness.scratch())
MOST = 200_000  # values of a file: one of a few bytes may say that it has billions, which are read as long as one likes


def read(data: bytes) -> None:
    name = KINDS[data[0] % len(KINDS)] if data else KINDS[0]
    try:
        if name == "arrow":
            n = multiplied.Numbers(data[1:])
            x = arrow(n)
            columns.of_batch({"x": pa.chunked_array([x] * n.below(4), x.type) if n.below(2) else x})
            return
        (FOLDER / name).write_bytes(data[1:])
        found = files.find([os.fspath(FOLDER / name)])
        seen = 0
        for part in files.parts(found, 1):
            for table in rows.tables(part, rows.Reading(found.system, None, (), 64)):
                columns.of_batch(table)
                seen += table.num_rows * table.num_columns
                if seen > MOST:
                    return
    except EmberletError:
        return


def arrow(n: multiplied.Numbers, depth: int = 0) -> pa.Array:
    """Lists, dictionaries, structs, slices and missing values, from numbers."""
    kind = n.below(9) if depth < 4 else n.below(4)
    size = n.below(9)
    if kind < 4:
        values = [
            None if n.below(5) == 0 else (n.below(100), "x" * n.below(9), bool(n.below(2)), 1.5)[kind]
            for _ in range(size)
        ]
        return pa.array(values, (pa.int64(), pa.string(), pa.bool_(), pa.float32())[kind])
    inner = arrow(n, depth + 1)
    if kind == 4:
        width = 1 + n.below(3)
        return pa.FixedSizeListArray.from_arrays(inner.slice(0, len(inner) // width * width), width)
    if kind == 5:
        ends = sorted(n.below(len(inner) + 1) for _ in range(size))
        return pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), inner).slice(n.below(2))
    if kind == 6:
        return pa.StructArray.from_arrays([inner], ["a"])
    if kind == 7 and len(inner):
        return pa.DictionaryArray.from_arrays(pa.array([n.below(len(inner)) for _ in range(size)], pa.int32()), inner)
    return inner.slice(n.below(9))


def build(n: multiplied.Numbers) -> bytes:
    """Files of many columns, of long lines, and of values that many rows share."""
    kind = n.below(4)
    if kind in (1, 2):
        columns_, value = n.count(), b"x" * n.count(4096)
        text = (b",".join([value] * min(columns_, multiplied.LARGEST // (len(value) + 1))) + b"\n") * (2 + n.below(20))
        return bytes([kind]) + (gzip.compress(text * n.count(64)) if kind == 2 else text)
    if kind == 3:
        shape = [n.count(256)] * n.below(70)
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}\n".encode()
        return b"\3\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + bytes(n.count())
    value = ("x" * n.count(), [1.5] * n.count(), None, 1, {"a": [0] * n.count(1024)})[n.below(5)]
    table = pa.table({f"c{i}": pa.array([value] * n.count(512)) for i in range(1)} | {})
    table = pa.table({f"c{i}": table["c0"] for i in range(n.below(100))})
    file = io.BytesIO()
    parquet.write_table(table, file, compression=("zstd", "none", "gzip")[n.below(3)], row_group_size=1 + n.below(200))
    return b"\0" + file.getvalue()


def seeds() -> dict[str, bytes]:
    """A file of each kind, and Parquet in several encodings."""
    table = pa.table(
        {"a": [1, 2, None], "t": ["x", "y", "x"], "l": [[1.0], [2.0], [3.0]], "d": pa.array(["p", "q", "p"])}
    )
    found = {}
    for i, how in enumerate(({}, {"compression": "gzip"}, {"use_dictionary": False}, {"data_page_version": "2.0"})):
        file = io.BytesIO()
        parquet.write_table(table, file, **how)
        found[f"parquet {i}"] = b"\0" + file.getvalue()
    text = b'a,b\n1,"x, y"\n2,\n'
    array = io.BytesIO()
    np.save(array, np.ones((3, 2), np.float32))
    found |= {"csv": b"\1" + text, "csv.gz": b"\2" + gzip.compress(text), "npy": b"\3" + array.getvalue()}
    return found | {f"arrow {i}": b"\4" + bytes([4 + i % 5, 3, 0, 4, 2, 1, 1, 2, 3, i]) for i in range(8)}


if __name__ == "__main__":
    pa.set_cpu_count(1)
    assert fs  # its file systems start threads
    harness.run(read, seeds(), 4096, 320, build=build)
