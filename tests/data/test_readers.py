"""Data sets from files: what they give, compared with what other libraries wrote, and what they refuse."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sqlite3
import struct
import sys
import tempfile
import threading
import tracemalloc
import zipfile
from collections import namedtuple
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.data import (
    ArrowDataset,
    DataframeDataset,
    DataLoader,
    HuggingfaceDatasetLoader,
    ImageFolderDataset,
    InMemDataset,
    MnistDataset,
    NpyDataset,
    NpzDataset,
    ParquetDataset,
    SqliteDataset,
    read_idx,
)
from emberlet.errors import ArgumentError, EmberletError, FormatError
from emberlet.host.extras import MissingLibraryError
from hypothesis import given
from hypothesis import strategies as st
from support.processes import python

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
Row = namedtuple("Row", "name size")

ROWS = [
    {"name": "a", "size": 1, "weight": 0.5, "tags": ["x"], "none": None},
    {"name": "b, c", "size": -2, "weight": 1.25, "tags": [], "none": None},
    {"name": "ü\n", "size": 3, "weight": -7.0, "tags": ["y", "z"], "none": None},
]


def in_another_process(dataset: Any) -> Any:
    return pickle.loads(pickle.dumps(dataset))


# -- CSV and JSON -----------------------------------------------------------------------------------------------------


def csv(tmp_path: Path, text: str, **options: Any) -> InMemDataset:
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8", newline="")
    return InMemDataset.from_csv(tmp_path / "rows.csv", **options)


def test_csv_columns_get_the_narrowest_type_that_fits(tmp_path: Path) -> None:
    found = csv(tmp_path, '\ufeffa,b,c,d\r\n1,1,"x,\ny",\n-2,2.5e3,007,\n\n3,nan," ",\n')
    assert len(found) == 3
    assert found[1] == {"a": -2, "b": 2500.0, "c": "007", "d": None}
    assert found[0]["c"] == "x,\ny"
    assert [type(v) for v in found[0].values()] == [int, float, str, type(None)]
    assert csv(tmp_path, "zip;x\n007;\n;1\n", delimiter=";", types={"zip": str})[0] == {"zip": "007", "x": None}
    assert list(csv(tmp_path, "1\t2\n3\t4\n", delimiter="\t", header=False)) == [{"0": 1, "1": 2}, {"0": 3, "1": 4}]
    assert csv(tmp_path, "a\n1_000\n9223372036854775808\n")[0] == {"a": "1_000"}


@given(rows=st.lists(st.tuples(st.integers(-(10**17), 10**17), st.text("ab,\"\n'é", min_size=1)), min_size=1))
def test_csv_gives_what_the_standard_library_wrote(rows: list[tuple[int, str]], tmp_path_factory: Any) -> None:
    import csv as standard

    path = tmp_path_factory.getbasetemp() / "drawn.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = standard.writer(file)
        writer.writerow(["n", "text"])
        writer.writerows(rows)
    assert [tuple(r.values()) for r in InMemDataset.from_csv(path, types={"text": str})] == rows


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("a,b\n1\n", {}, "line 2 has 1 cells where there are 2 columns"),
        ("a,a\n1,2\n", {}, "two columns are called 'a'"),
        ('a\n"1', {}, "line 2"),
        ("a\n1\nx\n", {"types": {"a": int}}, "column 'a', row 1: 'x' is no int"),
        ("a\n1\n", {"types": {"b": int}}, "has no column 'b'; it has a"),
        ("a\n1\n", {"types": {"a": list}}, "a type is int, float or str"),
        ("a\n1\n", {"delimiter": "::"}, "one character"),
        ("a" + "," * (1 << 14), {}, "at most 16384 are read"),
        ("a\n" + "x" * 200_000, {}, "field larger than field limit"),
    ],
)
def test_csv_that_does_not_fit_is_refused(text: str, options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(EmberletError, match=message):
        csv(tmp_path, text, **options)


def test_text_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(FormatError, match=r"rows\.csv.*utf-8"):
        InMemDataset.from_csv(tmp_path / "rows.csv")
    assert InMemDataset.from_csv(tmp_path / "rows.csv", encoding="latin-1")[1] == {"a": "ÿ"}


def test_json_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("\n".join(json.dumps(r) for r in ROWS) + "\n\n", encoding="utf-8")
    assert list(InMemDataset.from_json_rows(path)) == ROWS
    for text, message in (('{"a": 1}\n{"a":', "line 2 is not JSON"), ("[" * 100_000, "line 1 is not JSON")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FormatError, match=message):
            InMemDataset.from_json_rows(path)


# -- tables -----------------------------------------------------------------------------------------------------------


def test_parquet_and_arrow_give_the_rows(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=2)
    with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", table.schema) as writer:
        writer.write_table(table)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    coded = table.set_column(0, "name", table.column("name").dictionary_encode())
    with pa.ipc.new_file(tmp_path / "coded.arrow", coded.schema, options=options) as writer:
        writer.write_table(coded)
    for found in (
        ParquetDataset(tmp_path / "rows.parquet"),
        *(ArrowDataset(tmp_path / f"{name}.arrow") for name in ("rows", "stream", "coded")),
    ):
        assert list(found) == ROWS
        assert list(in_another_process(found)) == ROWS
    few = ParquetDataset(tmp_path / "rows.parquet", columns=["size"])
    assert few[1] == {"size": -2}
    assert isinstance(few[1]["size"], int)
    for kind, name in ((ParquetDataset, "rows.parquet"), (ArrowDataset, "rows.arrow")):
        with pytest.raises(EmberletError, match="no column 'weigth'"):
            kind(tmp_path / name, columns=["weigth"])
        with pytest.raises(FileNotFoundError):
            kind(tmp_path / "none")


def test_table_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], "int64"), "b": pa.array([], "string")}), tmp_path / "e.parquet")
    found = ParquetDataset(tmp_path / "e.parquet", columns=["b"])
    assert (len(found), found.table.schema.names) == (0, ["b"])


def test_batches_of_a_table_hold_numbers_and_texts(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS).drop(["tags"]), tmp_path / "rows.parquet")
    batch = next(iter(DataLoader(ParquetDataset(tmp_path / "rows.parquet"), batch_size=3)))
    assert batch["size"].tolist() == [1, -2, 3]
    assert batch["weight"].dtype.name == "float32"
    assert batch["name"] == [r["name"] for r in ROWS]


def test_data_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["a", "b"], "size": [1, 2]})

    class Interchanged:  # what older versions of pandas and other frames have
        def __dataframe__(self, *_: Any, **__: Any) -> Any:
            return pa.Table.from_pylist([{"name": "a", "size": 1}, {"name": "b", "size": 2}]).__dataframe__()

    for given_frame in (frame, pa.Table.from_pandas(frame), Interchanged()):
        assert list(DataframeDataset(given_frame)) == [{"name": "a", "size": 1}, {"name": "b", "size": 2}]
    assert DataframeDataset(frame, columns=["size"])[1] == {"size": 2}
    with pytest.raises(ArgumentError, match="list is no data frame"):
        DataframeDataset([1])
    with pytest.raises(ArgumentError, match="two columns of the table have one name"):
        DataframeDataset(pa.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize(
    "parameters, message",
    [
        (b'{"shape":' + b"[" * 500_000 + b"]" * 500_000 + b"}", "parameters that are not JSON"),
        (b"[" * 500_000, "parameters that are not JSON"),
        (b'{"shape":[' + b"1," * 64 + b"2]}", "tensors of 65 axes; at most 64 are read"),
    ],
    ids=["nested", "unending", "axes"],
)
def test_tensors_of_arrow_have_shapes_that_arrow_can_parse(tmp_path: Path, parameters: bytes, message: str) -> None:
    metadata = {"ARROW:extension:name": "arrow.fixed_shape_tensor", "ARROW:extension:metadata": parameters}
    field = pa.field("a", pa.list_(pa.int8(), 2), metadata=metadata)
    table = pa.Table.from_arrays([pa.array([[1, 2]], field.type)], schema=pa.schema([field]))
    with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "rows.parquet")
    for kind, name in ((ArrowDataset, "rows.arrow"), (ParquetDataset, "rows.parquet")):
        with pytest.raises(FormatError, match=message):
            kind(tmp_path / name)


def test_extension_types_are_refused_before_arrow_opens_them(tmp_path: Path) -> None:
    opened: list[bytes] = []

    class Runs(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.int64(), "tests.runs")

        def __arrow_ext_serialize__(self) -> bytes:
            return b"code"

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: Any, data: bytes) -> Any:
            opened.append(data)
            return cls()

    column = pa.ExtensionArray.from_storage(Runs(), pa.array([1, 2]))
    table = pa.table({"a": column})
    with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "rows.parquet")
    pa.register_extension_type(Runs())
    opened.clear()
    try:
        for kind, name in ((ArrowDataset, "rows.arrow"), (ParquetDataset, "rows.parquet")):
            with pytest.raises(FormatError, match=r"'a'.*'tests\.runs'"):
                kind(tmp_path / name)
        assert opened == []
        with pytest.raises(FormatError, match=r"tests\.runs"):  # a frame in memory was opened already
            DataframeDataset(table)
    finally:
        pa.unregister_extension_type("tests.runs")


def test_compressed_batches_that_expand_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberlet.host.data import tables

    table = pa.table({"a": np.zeros(1 << 20)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(tmp_path / "zeros.arrow", table.schema, options=options) as writer:
        writer.write_table(table)
    pq.write_table(table, tmp_path / "zeros.parquet")
    assert len(ArrowDataset(tmp_path / "zeros.arrow")) == 1 << 20
    monkeypatch.setattr(tables, "EXPANDED", 1 << 20)
    for kind, name in ((ArrowDataset, "zeros.arrow"), (ParquetDataset, "zeros.parquet")):
        with pytest.raises(FormatError, match="in memory; divide the file"):
            kind(tmp_path / name)
    with pa.ipc.new_file(tmp_path / "nulls.arrow", pa.schema([("n", pa.null())])) as writer:
        writer.write_table(pa.table({"n": pa.nulls(1 << 22)}))
    with pytest.raises(FormatError, match="in memory"):
        ArrowDataset(tmp_path / "nulls.arrow")


@given(place=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.one_of(st.none(), st.integers(0, 10**6)))
def test_damaged_arrow_files_are_read_or_refused(place: int, byte: int, cut: int | None, tmp_path_factory: Any) -> None:
    table = pa.Table.from_pylist(ROWS[:2])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    data = bytearray(sink.getvalue().to_pybytes())
    data[place % len(data)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.arrow"
    path.write_bytes(data if cut is None else data[: cut % len(data)])
    try:
        list(ArrowDataset(path))
    except EmberletError as error:
        assert "damaged.arrow" in str(error) or "column" in str(error)


def test_a_date_that_python_does_not_have_is_refused_with_its_column_and_row() -> None:
    days = pa.array([0, 4_000_000], pa.int32()).view(pa.date32())
    data = DataframeDataset(pa.table({"day": days}))
    assert data[0]["day"].year == 1970
    with pytest.raises(FormatError, match="'day', row 1"):
        data[1]


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for make in (lambda: ParquetDataset(tmp_path / "x"), lambda: ArrowDataset("x"), lambda: DataframeDataset(1)):
        with pytest.raises(MissingLibraryError, match="needs pyarrow"):
            make()


# -- SQLite -----------------------------------------------------------------------------------------------------------


def test_sqlite_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    rows = [{"name": f"n{i}", "x": i / 2, 'odd "name"': None, "bytes": bytes([i])} for i in range(20)]
    found = SqliteDataset.write(path, iter(rows))
    assert list(found) == rows
    assert list(SqliteDataset(path)) == rows
    assert list(in_another_process(found)) == rows
    assert list(SqliteDataset.write(path, [Row("a", np.int64(3))], table="more")) == [{"name": "a", "size": 3}]
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(found[3]))
    thread.start()
    thread.join()
    assert seen == [rows[3]]
    for workers in ({"workers": 2}, {"workers": 2, "processes": True, "context": "fork"}):
        assert [n for b in DataLoader(found, batch_size=3, **workers) for n in b["name"]] == [r["name"] for r in rows]


def test_sqlite_rows_may_have_gaps(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    SqliteDataset.write(path, [{"i": i} for i in range(6)])
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM data WHERE i IN (0, 3)")
    connection.close()
    found = SqliteDataset(path)
    assert [r["i"] for r in found] == [1, 2, 4, 5]
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM data WHERE i = 4")
    connection.close()
    with pytest.raises(FormatError, match=r"row 2.*'data'"):
        found[2]


def test_sqlite_says_what_it_does_not_store(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    for rows, message in (
        ([{"a": [1]}], "row 0: 'a' is a list; store numbers"),
        ([{"a": 1}, {"b": 1}], r"row 1 has the keys \['b'\], the first one \['a'\]"),
        ([], "there are no rows"),
        ([3], "row 0 is a int"),
        ([{"a": 2**70}], "row 0: 'a'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            SqliteDataset.write(path, rows)  # type: ignore[arg-type]
        assert not path.exists()
    SqliteDataset.write(path, [{"a": 1}])
    with pytest.raises(ArgumentError, match="already exists"):
        SqliteDataset.write(path, [{"a": 1}])
    with pytest.raises(ArgumentError, match="has no table 'b'; its tables: data"):
        SqliteDataset(path, "b")
    with pytest.raises(FileNotFoundError):
        SqliteDataset(tmp_path / "none.db")


def test_sqlite_files_that_cannot_be_opened_are_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=str(tmp_path)):
        SqliteDataset(tmp_path)
    with pytest.raises(ArgumentError, match=r"x\.db: 'data'"):
        SqliteDataset.write(tmp_path / "none" / "x.db", [{"a": 1}])
    assert list(SqliteDataset.write(tmp_path / "x.db", [{"a": float("nan")}])) == [{"a": None}]


def hostile_data_base(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_sqlite_schemas_run_nothing(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c"
    hostile_data_base(
        tmp_path / "a.db",
        f"CREATE VIEW data AS {endless}",
        "CREATE TABLE big (a, b AS (zeroblob(500000000)))",
        "INSERT INTO big VALUES (1)",
        "CREATE TABLE keyed (a PRIMARY KEY) WITHOUT ROWID",
    )
    with pytest.raises(FormatError, match="'data'"):
        SqliteDataset(tmp_path / "a.db")
    assert list(SqliteDataset(tmp_path / "a.db", "big")) == [{"a": 1}]  # generated columns are not listed
    with pytest.raises(FormatError, match="no such column: rowid"):
        SqliteDataset(tmp_path / "a.db", "keyed")


@pytest.mark.parametrize(
    "sql", ["CREATE/**/VIRTUAL TABLE data USING rtree(a, b, c)", b"CREATE TABLE data(a)", "CREATE TABLE d2(a)"]
)
def test_sqlite_tables_whose_statement_says_something_else_are_refused(sql: str | bytes, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("CREATE VIRTUAL TABLE data USING rtree(a, b, c)")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'data'", (sql,))
    connection.commit()
    connection.close()
    with pytest.raises(FormatError, match="a\\.db"):
        SqliteDataset(tmp_path / "a.db")


def test_sqlite_tables_are_found_however_their_names_were_written(tmp_path: Path) -> None:
    names = ("data", '"data"', "'data'", "`data`", "[data]", "IF NOT EXISTS data", "data/**/")
    for number, name in enumerate(names):
        connection = sqlite3.connect(tmp_path / f"{number}.db")
        connection.execute(f"create  table {name}(a)")
        connection.execute("INSERT INTO data VALUES (1)")
        connection.commit()
        connection.close()
        assert list(SqliteDataset(tmp_path / f"{number}.db")) == [{"a": 1}]


def test_sqlite_errors_that_are_not_utf8_are_told(tmp_path: Path) -> None:
    SqliteDataset.write(tmp_path / "a.db", [{"a": 1}])
    data = (tmp_path / "a.db").read_bytes()
    (tmp_path / "a.db").write_bytes(data.replace(b'("a")', b"('\xff\xff)"))
    with pytest.raises(FormatError, match=r"a\.db: 'data'"):
        SqliteDataset(tmp_path / "a.db")


@given(data=st.binary(max_size=300), at=st.integers(0, 8191), after=st.booleans())
def test_damaged_data_bases_are_read_or_refused(data: bytes, at: int, after: bool, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.db"
    path.unlink(missing_ok=True)
    if after:
        SqliteDataset.write(path, [{"i": i, "t": "x" * i} for i in range(90)])
        whole = bytearray(path.read_bytes())
        whole[at : at + len(data)] = data
        path.write_bytes(whole)
    else:
        path.write_bytes(data)
    try:
        list(SqliteDataset(path))
    except EmberletError as error:
        assert "damaged.db" in str(error)


# -- arrays -----------------------------------------------------------------------------------------------------------


def test_npy_rows_stay_on_disk(tmp_path: Path) -> None:
    for array in (np.arange(12.0).reshape(4, 3), np.asfortranarray(np.arange(12).reshape(4, 3)), np.zeros((0, 3))):
        np.save(tmp_path / "x.npy", array)
        found = NpyDataset(tmp_path / "x.npy")
        assert np.array_equal(np.array(list(found)).reshape(array.shape), array)
        assert len(pickle.dumps(found)) < 300
    (tmp_path / "x.npy").unlink()
    np.save(tmp_path / "x.npy", np.arange(6))
    batch = next(iter(DataLoader(NpyDataset(tmp_path / "x.npy"), batch_size=4, workers=1)))
    assert batch.tolist() == [0, 1, 2, 3]


def test_npy_that_is_truncated_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """And ends no process with SIGBUS, as a map of it would."""
    np.save(tmp_path / "x.npy", np.arange(40_000).reshape(10_000, 4))
    found = NpyDataset(tmp_path / "x.npy")
    assert found.stacked([9_999, -1, 3, 4, 5])[:, 0].tolist() == [39_996, 39_996, 12, 16, 20]
    assert found.stacked([]).shape == (0, 4) and found[2].tolist() == [8, 9, 10, 11]
    with pytest.raises(IndexError):
        found.stacked([10_000])
    os.truncate(tmp_path / "x.npy", 1000)
    assert found[2].tolist() == [8, 9, 10, 11]
    with pytest.raises(FormatError, match="truncated after it was opened"):
        found.stacked([9_000])


@given(st.data())
def test_npy_rows_are_taken_as_numpy_takes_them(data: Any) -> None:
    n = data.draw(st.integers(1, 300))
    array = np.arange(2 * n).reshape(n, 2)
    some = st.integers(-n - 1, n)
    indices = data.draw(
        st.one_of(
            st.lists(some), st.slices(n), st.lists(st.booleans(), min_size=n, max_size=n).map(np.array),
            st.lists(st.booleans(), max_size=n + 1), st.just([0.5]), st.lists(st.integers(-3, 3)).map(np.int8),
            st.lists(st.integers(0, n)).map(np.uint64),
        )
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", array)
        found = NpyDataset(Path(folder) / "x.npy")
        try:
            expected = array[indices]
        except IndexError:
            with pytest.raises(IndexError):
                found.stacked(indices)
        else:
            assert found.stacked(indices).tolist() == expected.tolist()


def test_a_row_of_an_npy_costs_what_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(1 << 20, np.uint8))
    found = NpyDataset(tmp_path / "x.npy")
    tracemalloc.start()
    try:
        assert found[-1] == 0 and found.stacked(slice(5, 8)).tolist() == [0, 0, 0]
        assert tracemalloc.get_traced_memory()[1] < 256 << 10
    finally:
        tracemalloc.stop()


def test_npz_rows_are_dicts(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", x=np.eye(3), y=np.arange(3), version=np.int64(2), short=np.arange(2))
    np.save(tmp_path / "row.npy", np.arange(3))
    found = NpzDataset(tmp_path / "x.npz", names=["x", "y"])
    assert found[1]["x"].tolist() == [0, 1, 0]
    assert next(iter(DataLoader(found, batch_size=3)))["y"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(tmp_path / "self.npz", "w") as archive:
        archive.write(tmp_path / "row.npy", "self.npy")
    assert NpzDataset(tmp_path / "self.npz")[1] == {"self": 1}
    for names, message in ((None, "'version' has no axis"), (["x", "short"], "one length"), (["z"], "no array 'z'")):
        with pytest.raises(FormatError, match=message):
            NpzDataset(tmp_path / "x.npz", names)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: np.array([{"a": 1}]), "not read"),
        (lambda: np.float64(3), "without axes"),
    ],
)
def test_npy_that_holds_no_rows_of_numbers_is_refused(make: Any, message: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", make(), allow_pickle=True)
    with pytest.raises(EmberletError, match=message):
        NpyDataset(tmp_path / "x.npy")


def test_npy_of_another_length_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6))
    whole = (tmp_path / "x.npy").read_bytes()
    for data in (whole[:-1], whole + b"x", b"", b"PK"):
        (tmp_path / "x.npy").write_bytes(data)
        with pytest.raises(FormatError, match=r"x\.npy"):
            NpyDataset(tmp_path / "x.npy")


def idx(array: Any) -> bytes:
    """As the page of MNIST describes the format."""
    code = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}[array.dtype.str[1:]]
    head = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
def test_idx_files(dtype: str, tmp_path: Path) -> None:
    array = (np.arange(24) * 5).reshape(2, 3, 4).astype(dtype)
    for data in (idx(array), gzip.compress(idx(array))):
        (tmp_path / "x").write_bytes(data)
        found = read_idx(tmp_path / "x")
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)


def mnist(folder: Path, part: str = "train", count: int = 5, end: str = "") -> tuple[Any, Any]:
    folder.mkdir(exist_ok=True)
    images = np.random.RandomState(1).randint(0, 256, (count, 28, 28)).astype(np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        data = idx(array)
        (folder / f"{part}-{name}-ubyte{end}").write_bytes(gzip.compress(data) if end else data)
    return images, labels


@pytest.mark.parametrize(("part", "end"), [("train", ""), ("t10k", ".gz")])
def test_mnist(part: str, end: str, tmp_path: Path) -> None:
    images, labels = mnist(tmp_path, part, end=end)
    found = (MnistDataset.train if part == "train" else MnistDataset.test)(tmp_path)
    assert found[3].label == 3
    assert found[3].image.dtype == np.float32
    assert np.array_equal(found[3].image, images[3])
    at_once, one_by_one = [next(iter(DataLoader(d, batch_size=5, shuffle=1))) for d in (found, list(found))]
    assert at_once.image.tolist() == one_by_one.image.tolist()
    assert sorted(at_once.label.tolist()) == labels.tolist()
    assert at_once.label.dtype is one_by_one.label.dtype
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        (MnistDataset.test if part == "train" else MnistDataset.train)(tmp_path)


def test_mnist_whose_files_do_not_fit_is_refused(tmp_path: Path) -> None:
    mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(FormatError, match="not images"):
        MnistDataset.train(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x08", "not an IDX file"),
        (b"\0\0\x07\1" + b"\0" * 8, "not an IDX file"),
        (b"\0\0\x08\3\0\0", "ends early"),
        (b"\0\0\x08\xff" + b"\0" * 1020, "too many"),
        (b"\0\0\x08\1\0\0\0\5abcd", "4 bytes of data where its header says 5"),
        (b"\0\0\x08\1\0\0\0\3abcd", "more than 3 bytes"),
        (b"\0\0\x08\2" + b"\xff" * 8, "would become"),
        (b"\0\0\x08\3\0\0\0\0" + b"\xff" * 8, "would become"),
        (gzip.compress(b"\0\0\x08\1\0\0\0\4abcd", mtime=0)[:-9], "damaged gzip data"),
        (b"\x1f\x8bno", "damaged gzip data"),
    ],
)
def test_damaged_idx_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(FormatError, match=message):
        read_idx(tmp_path / "x")


# -- pictures ---------------------------------------------------------------------------------------------------------


def pictures(folder: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, color in (("cat/1.png", (255, 0, 0)), ("dog/b/2.PNG", (0, 255, 0)), ("dog/1.png", (0, 0, 255))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        image.new("RGB", (3, 2), color).save(folder / name)
    (folder / ".hidden").mkdir()
    (folder / "dog" / "notes.txt").write_text("no picture", encoding="utf-8")


def test_classes_of_an_image_folder_are_its_folders(tmp_path: Path) -> None:
    pictures(tmp_path)
    found = ImageFolderDataset.new_classification(tmp_path)
    assert found.classes == ["cat", "dog"]
    assert [(item.image[0, 0].tolist(), item.label) for item in found] == [
        ([255, 0, 0], 0), ([0, 0, 255], 1), ([0, 255, 0], 1),
    ]  # fmt: skip
    batch = next(iter(DataLoader(found, batch_size=3, workers=1)))
    assert batch.image.shape == (3, 2, 3, 3)
    assert batch.image.dtype.name == "uint8"
    assert ImageFolderDataset.new_classification(tmp_path, channels=1)[0].image.shape == (2, 3, 1)


def test_pictures_with_several_labels(tmp_path: Path) -> None:
    pictures(tmp_path)
    items = [(tmp_path / "cat/1.png", ["animal", "cat"]), (tmp_path / "dog/1.png", ["dog", "animal", "dog"])]
    found = ImageFolderDataset.new_multilabel_classification_with_items(items, ["animal", "cat", "dog"])
    assert [item.label.tolist() for item in found] == [[1, 1, 0], [1, 0, 1]]
    with pytest.raises(ArgumentError, match="'bird'"):
        ImageFolderDataset.new_multilabel_classification_with_items([("x.png", ["bird"])], ["animal"])


def test_folders_and_files_without_pictures_are_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no folder in it holds a picture"):
        ImageFolderDataset.new_classification(tmp_path)
    with pytest.raises(ArgumentError, match="channels is 1"):
        ImageFolderDataset([], [], channels=2)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").write_bytes(b"no picture")
    os.mkfifo(tmp_path / "a" / "y.png")  # which is not waited for
    found = ImageFolderDataset.new_classification(tmp_path)
    with pytest.raises(FormatError, match=r"x\.png"):
        found[0]
    with pytest.raises(OSError, match="not a regular file"):
        found[1]


# -- Hugging Face -----------------------------------------------------------------------------------------------------


def test_hugging_face_data_sets_come_from_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingLibraryError, match="needs datasets: "):
        HuggingfaceDatasetLoader("dbpedia_14")

    class Stand:
        __spec__ = None

        @staticmethod
        def load_dataset(*given: Any, **options: Any) -> Any:
            return [{"given": given, **options}]

    monkeypatch.setitem(sys.modules, "datasets", Stand)
    found = HuggingfaceDatasetLoader("dbpedia_14", cache_dir="here").dataset("train")
    assert found == [{"given": ("dbpedia_14", None), "split": "train", "cache_dir": "here"}]


@pytest.mark.skipif(not find_spec("datasets"), reason="datasets is not installed: the tests' environment has none")
def test_a_hugging_face_data_set_is_a_data_set_for_any_workers() -> None:
    datasets = pytest.importorskip("datasets")
    rows = {
        "text": [f"{i}" for i in range(50)],
        "label": [i % 3 for i in range(50)],
        "x": [[i / 2, i] for i in range(50)],
    }
    data = datasets.Dataset.from_dict(rows)
    orders = []
    for options in ({}, {"workers": 3}, {"workers": 2, "processes": True, "context": "spawn"}):
        order: list[str] = []
        for batch in DataLoader(data, batch_size=16, shuffle=5, **options):
            found = [int(text) for text in batch["text"]]
            assert batch["label"].tolist() == [i % 3 for i in found]
            assert batch["x"].tolist() == [[i / 2, i] for i in found]
            order += batch["text"]
        orders.append(order)
    assert orders[0] == orders[1] == orders[2] and sorted(orders[0], key=int) == rows["text"]


def test_data_sets_load_what_they_need_only() -> None:
    code = (
        "import sys, emberlet.data as d; d.InMemDataset, d.DataLoader([1]), d.MnistDataset, d.SqliteDataset;"
        "print(*[m for m in ('pyarrow', 'PIL', 'emberlet.batch', 'multiprocessing') if m in sys.modules])"
    )
    assert python("-c", code, check=True).stdout == "\n"
