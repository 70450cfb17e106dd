"""Coverage-guided fuzzing of files of data sets: python tests/fuzz/fuzz_data.py [-max_total_time=60].

Needs atheris and pyarrow. The first byte says whether the rest is an IDX file, a CSV file, lines of JSON, an Arrow file
or an SQLite data base. Either items come, or an EmberletError.
"""

import gzip
import pathlib
import sqlite3
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz import harness, multiplied

harness.instrument("emberlet.host.data", "emberlet.batch.arrow_types")

import pyarrow as pa  # noqa: E402
from emberlet.errors import EmberletError  # noqa: E402
from emberlet.host.data import arrays, sqlite, tables, text_rows  # noqa: E402

FOLDER = pathlib.Path(harness.scratch())
LARGEST_INPUT = 4096
MOST = 1_000  # items that are read of a file
LARGEST = 4 << 20  # bytes to which a small file, or a row of it, may expand here
tables.EXPANDED = arrays.npy.EXPANDED = LARGEST


def read(data: bytes) -> None:
    path = FOLDER / "data"
    path.write_bytes(data[1:])
    kind = data[0] % 5 if data else 0
    try:
        if kind == 0:
            found = arrays.read_idx(path)
            assert found.nbytes <= max(LARGEST, 16 * len(data))
            return
        if kind == 1:
            rows = text_rows.csv_columns(path, ",", None, True, "utf-8")
        elif kind == 2:
            rows = text_rows.json_rows(path)
        elif kind == 3:
            rows = tables.ArrowDataset(path)
        else:
            rows = sqlite.SqliteDataset(path)
        for i in range(min(MOST, len(rows))):
            rows[i]
    except EmberletError:
        return


def arrow(table: pa.Table, **options: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=7)
    return sink.getvalue().to_pybytes()


def data_base(rows: list[dict], *statements: str) -> bytes:
    path = FOLDER / "made"
    path.unlink(missing_ok=True)
    sqlite.SqliteDataset.write(path, rows)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.execute("PRAGMA page_size = 512")  # a table takes a page; inputs have LARGEST_INPUT bytes at most
    connection.execute("VACUUM")
    connection.close()
    return path.read_bytes()


def build(n: multiplied.Numbers) -> bytes:
    """Files that are small and expand."""
    kind = n.below(4)
    if kind == 0:
        shape = [n.count(1 << 16) for _ in range(1 + n.below(4))]
        head = bytes([0, 0, 8 + n.below(7), len(shape)]) + b"".join(s.to_bytes(4, "big") for s in shape)
        return b"\0" + gzip.compress(head + bytes(n.count(1 << 22)))
    if kind == 1:
        return b"\1" + (b",".join([b"1"] * n.count(1 << 12)) + b"\n") * n.count(64)
    if kind == 2:
        return b"\2" + (b"[" * n.count(1 << 16) + b"0,")[:-1] + b"]" * n.count(1 << 16)
    value = (0.0, "x" * n.count(1 << 12), None, [1] * n.count(1 << 10))[n.below(4)]
    column = pa.array([value] * n.count(1 << 10))
    if n.below(2):
        column = column.dictionary_encode() if n.below(2) and not pa.types.is_nested(column.type) else column
        for _ in range(n.below(6)):
            count = 1 + n.below(30)
            column = pa.ListViewArray.from_arrays([0] * count, [len(column)] * count, column)
    table = pa.table({"c": column})
    return b"\3" + arrow(table, compression=("zstd", "lz4")[n.below(2)])


def seeds() -> dict[str, bytes]:
    """A file of each kind."""
    table = pa.table({"a": [1, 2, None], "t": ["x", "y", "x"], "d": pa.array(["p", "q", "p"]).dictionary_encode()})
    idx = b"\0\0\x08\2\0\0\0\2\0\0\0\3abcdef"
    rows = [{"a": i, "t": "x" * i, "f": i / 2} for i in range(20)]
    return {
        "idx": b"\0" + idx, "idx.gz": b"\0" + gzip.compress(idx), "csv": b'\1a,b\n1,"x, y"\n2,\n3,-2.5e3\n',
        "json": b'\2{"a": [1, "x"], "b": null}\n2.5\n', "arrow": b"\3" + arrow(table),
        "arrow zstd": b"\3" + arrow(table, compression="zstd"), "sqlite": b"\4" + data_base(rows),
        "sqlite generated": b"\4" + data_base(rows, "CREATE TABLE b (a, z AS (hex(zeroblob(a))))"),
    }  # fmt: skip


if __name__ == "__main__":
    pa.set_cpu_count(1)
    harness.run(read, seeds(), LARGEST_INPUT, 320, build=build)
