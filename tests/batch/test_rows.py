"""`emberlet score` reads the same rows with the same ids from every kind of file, however it is split."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from emberlet.batch import columns, files, rows
from emberlet.batch.parquet_file import Checked, Chunk, Opened
from emberlet.batch.row_sizes import sizes
from emberlet.batch.rows import FILE, ID, PLACE, ROW, Reading, schema, tables
from emberlet.data import ParquetDataset
from emberlet.errors import EmberletError, FormatError
from PIL import Image
from pyarrow import csv, parquet


def read(inputs: Sequence[Path], rows: int = 100, **options: Any) -> pa.Table:
    found = files.find([str(path) for path in inputs])
    how = Reading(
        found.system, options.get("columns"), options.get("floats", ()), rows, options.get("most_bytes", 32 << 20)
    )
    return pa.concat_tables([t for part in files.parts(found, rows) for t in tables(part, how)])


def table(random: np.random.Generator, rows: int) -> pa.Table:
    return pa.table(
        {"id": random.integers(0, 1 << 40, rows), "x": random.random(rows), "t": [f"t{i}" for i in range(rows)]}
    )


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_ids_do_not_depend_on_how_files_are_cut(seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    random = np.random.default_rng(seed)
    monkeypatch.setattr(files, "LARGE", int(random.integers(500, 5000)))
    whole = [table(random, int(n)) for n in random.integers(0, 900, 3)]
    arrays = [random.integers(0, 256, (int(n), 3, 2), np.uint8) for n in random.integers(1, 900, 3)]
    for name in ("parquet", "csv", "npy"):
        (tmp_path / name / "deep").mkdir(parents=True)
    for i, (found, array) in enumerate(zip(whole, arrays, strict=True)):
        folder = "deep/" if i == 1 else ""
        size = int(random.integers(1, 400))
        parquet.write_table(found, tmp_path / "parquet" / f"{folder}{i}.parquet", row_group_size=size)
        csv.write_csv(found, tmp_path / "csv" / f"{folder}{i}.csv")
        np.save(tmp_path / "npy" / f"{folder}{i}.npy", array)
    order = [0, 2, 1]  # 0, 2, deep/1
    wanted = pa.concat_tables([whole[i] for i in order])
    rows = np.concatenate([np.arange(len(whole[i])) for i in order])
    index = np.concatenate([np.full(len(whole[i]), k) for k, i in enumerate(order)])
    for kind in ("parquet", "csv"):
        for most in (7, 100, 5000):
            found = read([tmp_path / kind], most, most_bytes=int(random.integers(200, 1 << 20)))
            assert found.select(["id", "x", "t"]).equals(wanted), kind
            assert found[ROW].to_pylist() == rows.tolist()
            assert found[ID].to_pylist() == (index.astype(np.int64) << 40 | rows).tolist()
            assert found[FILE].to_pylist()[:1] == (
                [f"{tmp_path}/{kind}/0.{kind}"] if len(whole[0]) else found[FILE].to_pylist()[:1]
            )
    found = read([tmp_path / "npy"], 50)
    np.testing.assert_array_equal(columns.of_batch(found)["data"], np.concatenate([arrays[i] for i in order]))
    assert len(set(found[ID].to_pylist())) == len(found)


def test_large_files_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGE", 4000)
    parquet.write_table(
        pa.table({"x": np.random.default_rng(0).random(5000)}), tmp_path / "x.parquet", row_group_size=500
    )
    np.save(tmp_path / "x.npy", np.zeros((999, 5)))
    assert len(files.parts(files.find([str(tmp_path / "x.parquet")]), 1)) == 10
    assert len(files.parts(files.find([str(tmp_path / "x.npy")]), 1)) == 11


def test_only_columns_that_are_used_are_read(tmp_path: Path) -> None:
    found = table(np.random.default_rng(0), 10)
    csv.write_csv(found, tmp_path / "a.csv")
    parquet.write_table(found, tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        assert read([path], columns=("x",)).column_names == ["x", FILE, ROW, ID]
        with pytest.raises(FormatError, match=f"{path} has no column 'y'|y"):
            read([path], columns=("y",))
    part = files.parts(files.find([str(tmp_path / "a.csv")]), 1)[0]
    assert schema(part, Reading(files.find([str(tmp_path / "a.csv")]).system, None, (), 1)) == ["id", "x", "t"]


def test_a_column_of_floats_may_begin_with_integers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlet.batch.rows.BLOCK", 64)
    (tmp_path / "a.csv").write_text("x\n" + "1\n" * 100 + "2.5\n", encoding="utf-8")
    assert read([tmp_path / "a.csv"], floats=("x",))["x"].to_pylist()[-2:] == [1.0, 2.5]
    with pytest.raises(FormatError, match=r"a\.csv: .*2\.5"):
        read([tmp_path / "a.csv"])


def test_compressed_csv_and_a_uri_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n3,4\n"))
    assert read([tmp_path / "a.csv.gz"])["y"].to_pylist() == [2, 4]
    found = files.find([(tmp_path / "a.csv.gz").as_uri()])
    assert found.files[0].shown.startswith("file://")


def test_pictures_are_listed_and_not_read(tmp_path: Path) -> None:
    for i in range(7):
        Image.new("RGB", (2, 2)).save(tmp_path / f"{i}.PNG")
    (tmp_path / "notes.txt").write_text("no picture", encoding="utf-8")
    (tmp_path / ".hidden.png").write_bytes(b"")
    found = read([tmp_path], 3)
    assert found["path"].to_pylist() == [f"{tmp_path}/{i}.PNG" for i in range(7)]
    assert found[ID].to_pylist() == [i << 40 for i in range(7)]


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.npy", "a.csv", "empty.parquet", "empty.csv", "words.npy", "clash.csv"]
)
def test_damaged_files_are_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        parquet.write_table(pa.table({"x": np.random.default_rng(0).random(1000)}), path)
        truncated(path)
    elif name == "a.npy":
        np.save(path, np.zeros((100, 3)))
        truncated(path)
    elif name == "a.csv":
        path.write_text("x,y\n1,2\n3\n", encoding="utf-8")
    elif name == "words.npy":
        np.save(path, np.array([{}], object), allow_pickle=True)
    elif name == "clash.csv":
        path.write_text(f"{ID}\n1\n", encoding="utf-8")
    else:
        path.write_bytes(b"")
    with pytest.raises(EmberletError) as raised:
        read([path])
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


def test_inputs_that_are_missing_or_mixed_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.find([str(tmp_path / "nothing.csv")])
    with pytest.raises(EmberletError, match="holds no supported file"):
        files.find([str(tmp_path)])
    (tmp_path / "a.txt").write_text("", encoding="utf-8")
    with pytest.raises(EmberletError, match="its extension is not"):
        files.find([str(tmp_path / "a.txt")])
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(EmberletError, match=r"\.npy.*CSV"):
        files.find([str(tmp_path)])


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz"])
def test_a_file_without_rows_has_columns(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.table({"x": pa.array([], pa.float32()), "y": pa.array([], pa.int64())}), path)
    else:
        path.write_bytes(b"x,y\n" if kind == "csv" else gzip.compress(b"x,y\n"))
    found = files.find([str(path)])
    how = Reading(found.system, None, (), 10)
    assert [schema(part, how) for part in files.parts(found, 10)] == [["x", "y"]]


@pytest.mark.parametrize(("kind", "column"), [(".npy", "data"), (".png", "path")])
def test_files_without_names_have_one_column(kind: str, column: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{kind}"
    if kind == ".npy":
        np.save(path, np.zeros((3, 2), np.float32))
    else:
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(path)
    found = files.find([str(path)])
    (part,) = files.parts(found, 10)
    how = Reading(found.system, None, (), 10)
    assert schema(part, how) == [column]
    assert [name for table in tables(part, how) for name in table.column_names if name not in PLACE] == [column]


def test_a_file_of_very_many_columns_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("," * 20_000 + "\n" + "," * 20_000 + "\n", encoding="utf-8")
    parquet.write_table(pa.table({f"c{i}": pa.array([1]) for i in range(17_000)}), tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        found = files.find([str(tmp_path / name)])
        with pytest.raises(FormatError, match="columns"):
            list(rows.tables(files.parts(found, 1)[0], rows.Reading(found.system, None, (), 10)))


def test_rows_that_share_a_large_value_are_read_a_few_at_a_time(tmp_path):
    table = pa.table({"text": ["x" * 1_000_000] * 2000, "row": range(2000)})
    parquet.write_table(table.slice(0, 1), tmp_path / "small.parquet")
    parquet.write_table(table, tmp_path / "large.parquet", compression="zstd")
    for name, most in (("small.parquet", 1000), ("large.parquet", 300)):
        with (tmp_path / name).open("rb") as file:
            opened = Opened(pa.PythonFile(file), name)
            assert sizes(opened, name, range(9), {"text", "row"}, 1000).rows <= most
            assert sizes(opened, name, range(9), {"row"}, 1000).rows == 1000


@pytest.mark.parametrize(
    "kind, how",
    [
        (pa.binary(1 << 20), {"dictionary_pagesize_limit": 1 << 24}),
        (pa.binary(), {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}}),
    ],
    ids=["of one size", "beginnings"],
)
def test_rows_that_share_bytes_are_read_a_few_at_a_time(kind, how, tmp_path):
    file = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"c": pa.array([b"x" * (1 << 20)] * 400, kind)}), file, **how)
    assert file.stat().st_size < 1 << 20
    with file.open("rb") as opened:
        assert sizes(Opened(pa.PythonFile(opened), "x"), "x", range(9), {"c"}, 1000).rows <= 256


def test_rows_of_long_lists_are_read_a_few_at_a_time(tmp_path):
    """Arrow holds the lists of a batch several times while it joins them."""
    column = pa.FixedSizeListArray.from_arrays(pa.repeat(1.5, 100 << 14), 1 << 14).cast(pa.list_(pa.float64()))
    parquet.write_table(pa.table({f"c{i}": column for i in range(16)}), tmp_path / "x.parquet", compression="zstd")
    with (tmp_path / "x.parquet").open("rb") as opened:
        held = Opened(pa.PythonFile(opened), "x")
        assert 1 < sizes(held, "x", range(9), {f"c{i}" for i in range(16)}, 100).rows <= 32


def one_list(values):
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def test_a_text_that_a_list_repeats_is_kept_once(tmp_path):
    """A file of a kilobyte whose row would come to 400 MB."""
    text = "x" * (1 << 20)
    column = one_list(pa.array([text, None]).dictionary_encode().take(pa.array([0, 1] + 400 * [0])))
    parquet.write_table(pa.table({"c": column}), tmp_path / "x.parquet", compression="zstd")
    before = pa.total_allocated_bytes()
    found = files.find([str(tmp_path / "x.parquet")])
    (table,) = rows.tables(files.parts(found, 100)[0], rows.Reading(found.system, ("c",), (), 100))
    assert pa.total_allocated_bytes() - before < 100 << 20
    (texts,) = columns.of_batch(table)["c"]
    assert texts.tolist() == [text, None] + 400 * [text]
    assert len({id(t) for t in texts}) == 2
    assert ParquetDataset(tmp_path / "x.parquet")[0]["c"] == texts.tolist()


def test_dictionaries_of_dictionaries_and_empty_ones_are_columns():
    words = pa.array(["b", "a", None, "b"])
    for column in (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), words.dictionary_encode()), words.dictionary_encode(),
        words.cast(pa.large_string()).dictionary_encode(),
    ):  # fmt: skip
        assert columns.of_batch({"c": column})["c"].tolist() == ["b", "a", None, "b"]
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    assert columns.of_batch({"c": empty})["c"].tolist() == [None, None]


def test_texts_of_lists_are_the_same_with_a_dictionary_and_without(tmp_path):
    lists = [["a", "b", None], [], ["a"] * 5, None, ["c" * i for i in range(1000)]] * 3
    for number, how in enumerate(
        ({}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 100}, {"row_group_size": 2},
         {"use_dictionary": False, "column_encoding": {"c.list.element": "DELTA_BYTE_ARRAY"}})
    ):  # fmt: skip
        file = tmp_path / f"{number}.parquet"
        parquet.write_table(pa.table({"c": lists, "d": [[{"t": t} for t in r or ()] for r in lists]}), file, **how)
        found = files.find([str(file)])
        parts = files.parts(found, 4)
        read = [t for part in parts for t in rows.tables(part, rows.Reading(found.system, ("c", "d"), (), 4))]
        assert [row for table in read for row in table["c"].to_pylist()] == lists
        assert [row for table in read for row in table["d"].to_pylist()] == [[{"t": t} for t in r or ()] for r in lists]
        assert [row["c"] for row in ParquetDataset(file)] == lists


@pytest.mark.parametrize("kind", [pa.int8(), pa.float64(), pa.binary(16), pa.bool_()], ids=str)
def test_lists_that_come_to_much_more_than_their_file_are_refused(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("emberlet.host.npy.EXPANDED", 1 << 20)
    value = {"int8": 1, "double": 1.5, "bool": True}.get(str(kind), b"x" * 16)
    for count, refused in ((3 << 20, True), (1 << 14, False)):
        column = one_list(pa.repeat(pa.scalar(value, kind), count))
        parquet.write_table(pa.table({"c": column, "d": [1]}), tmp_path / "x.parquet", compression="zstd")
        found = files.find([str(tmp_path / "x.parquet")])
        part = files.parts(found, 100)[0]
        assert len(list(rows.tables(part, rows.Reading(found.system, ("d",), (), 100)))) == 1
        if refused:
            with pytest.raises(FormatError, match=r"the lists of the column 'c' come to [0-9]+ bytes"):
                list(rows.tables(part, rows.Reading(found.system, None, (), 100)))
        else:
            assert len(list(rows.tables(part, rows.Reading(found.system, None, (), 100)))) == 1


# -- files whose footer and pages differ -----------------------------------------------------------------------------


def with_footer_of(small: pa.Table, large: pa.Table, path: Path, **how: Any) -> None:
    """The pages of a table, with the footer of another one. Both have one column, whose bytes begin the file."""
    parts = []
    for table in (large, small):
        file = io.BytesIO()
        parquet.write_table(table, file, **how)
        data = file.getvalue()
        end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        parts.append((data[:end], data[end:]))
    path.write_bytes(parts[0][0] + parts[1][1])


NUMBER = pa.scalar(1.5, pa.float32())
PLAIN = {"use_dictionary": False, "compression": "none"}


@pytest.mark.parametrize(
    ("small", "large", "how", "says"),
    [
        (one_list(pa.repeat(NUMBER, 100_000)), one_list(pa.repeat(NUMBER, 3_000_000)), {}, "more values than"),
        (pa.array(["x" * 50]), pa.array(["x" * 5_000_000]), PLAIN | {"compression": "zstd"}, "becomes more bytes than"),
        (pa.array(["x" * 90]), pa.array(["x", "x"]), {"compression": "none"} | PLAIN, "more values than"),
        (one_list(pa.array(["x" * 90] * 3)), one_list(pa.array(["x"] * 3)),
         PLAIN | {"column_encoding": {"c.list.element": "DELTA_BYTE_ARRAY"}}, None),
    ],
    ids=["values of a list", "bytes of a text", "values of a column", "fewer bytes"],
)  # fmt: skip
def test_pages_that_are_not_as_the_footer_says_are_refused(
    small: pa.Array, large: pa.Array, how: dict[str, Any], says: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    with_footer_of(pa.table({"c": small}), pa.table({"c": large}), path, **how)
    before = pa.total_allocated_bytes()
    with pytest.raises(FormatError, match=says) if says else contextlib.suppress(FormatError):
        read([path])
    with pytest.raises(FormatError, match=says) if says else contextlib.suppress(FormatError):
        ParquetDataset(path)
    assert pa.total_allocated_bytes() - before < 4 << 20


def test_an_encoding_that_the_footer_does_not_name_is_refused(tmp_path: Path) -> None:
    """Texts that repeat the beginnings of others, under a footer that says that they are stored one by one."""
    texts = pa.array(["x" * 500] * 100)
    with_footer_of(
        pa.table({"c": texts}), pa.table({"c": texts}), tmp_path / "same.parquet", **PLAIN
    )  # the test's own footers are right
    assert read([tmp_path / "same.parquet"])["c"].to_pylist() == texts.to_pylist()
    parts = []
    for encoding in ("DELTA_BYTE_ARRAY", "PLAIN"):
        file = io.BytesIO()
        parquet.write_table(pa.table({"c": texts}), file, **PLAIN, column_encoding={"c": encoding})
        parts.append(file.getvalue())
    delta, plain = (data[: len(data) - 8 - int.from_bytes(data[-8:-4], "little")] for data in parts)
    path = tmp_path / "x.parquet"
    path.write_bytes(delta.ljust(len(plain), b"\0") + parts[1][len(plain) :])
    with pytest.raises(FormatError, match="an encoding that the file's footer does not name"):
        read([path])


def test_a_column_is_known_by_the_schema(tmp_path: Path) -> None:
    """Arrow takes the column of the schema, whatever path the row group gives it."""
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"cccc": one_list(pa.repeat(NUMBER, 1_500_000))}), path, store_schema=False)
    data = path.read_bytes()
    at = data.rindex(b"cccc")
    path.write_bytes(data[:at] + b"zzzz" + data[at + 4 :])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(FormatError, match="the lists of the column"):
        patch.setattr("emberlet.host.npy.EXPANDED", 1 << 20)
        read([path])


def test_texts_in_lists_that_repeat_their_beginnings_are_bounded(tmp_path: Path) -> None:
    """A file of half a kilobyte, whose row would take gigabytes."""
    path = tmp_path / "x.parquet"
    column = one_list(pa.array(["x" * 20_000]).dictionary_encode().take(pa.array([0] * 30_000, pa.int32())))
    how = PLAIN | {"compression": "zstd", "column_encoding": {"c.list.element": "DELTA_BYTE_ARRAY"}}
    parquet.write_table(pa.table({"c": column.cast(pa.list_(pa.string()))}), path, **how)
    before = pa.total_allocated_bytes()
    for reader in (lambda: read([path]), lambda: ParquetDataset(path)):
        with pytest.raises(FormatError, match="without the encoding DELTA_BYTE_ARRAY for texts in lists"):
            reader()
    assert pa.total_allocated_bytes() - before < 4 << 20


def test_a_page_that_becomes_very_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberlet.batch.row_sizes.AT_ONCE", 1 << 20)
    for values, how in (
        (pa.array(["x" * 1000] * 4000), PLAIN), (pa.array(np.zeros(1 << 20)), PLAIN | {"data_page_size": 1 << 23})
    ):  # fmt: skip
        parquet.write_table(pa.table({"c": values}), tmp_path / "x.parquet", **(how | {"compression": "zstd"}),
                            write_batch_size=1 << 20, max_rows_per_page=1 << 20)  # fmt: skip
        with pytest.raises(FormatError, match="a page that becomes"):
            read([tmp_path / "x.parquet"])


# -- pages that are written byte by byte ------------------------------------------------------------------------------


def varint(n: int) -> bytes:
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def zigzag(n: int) -> bytes:
    return varint(2 * n if n >= 0 else -2 * n - 1)


def struct(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct in Thrift's compact protocol: fields as (number, type, value)."""
    before = [0] + [number for number, _, _ in fields]
    return b"".join(bytes([(n - b) << 4 | kind]) + x for b, (n, kind, x) in zip(before, fields, strict=False)) + b"\0"


def i32(number: int, value: int) -> tuple[int, int, bytes]:
    return number, 5, zigzag(value)


def i64(number: int, value: int) -> tuple[int, int, bytes]:
    return number, 6, zigzag(value)


def items(number: int, kind: int, *values: bytes) -> tuple[int, int, bytes]:
    return number, 9, bytes([len(values) << 4 | kind]) + b"".join(values)


def text(number: int, value: bytes) -> tuple[int, int, bytes]:
    return number, 8, varint(len(value)) + value


def lengths(first: int, step: int, count: int, said: int | None = None, block: int = 128) -> bytes:
    """DELTA_BINARY_PACKED: `first`, then `step` more each time. said: how many the head says there are."""
    head = varint(block) + varint(4) + varint(count if said is None else said) + zigzag(first)
    return head + (zigzag(step) + bytes(4)) * -((1 - count) // block)


def data_page(rows: int, values: bytes, encoding: int, second: bool, codec: str | None, nulls: bool) -> bytes:
    level = varint(rows << 1) + b"\1" if nulls else b""
    if not second:
        values = (len(level).to_bytes(4, "little") + level if nulls else b"") + values
    stored = pa.compress(values, codec, asbytes=True) if codec else values
    if not second:
        about = (5, 12, struct(i32(1, rows), i32(2, encoding), i32(3, 3), i32(4, 3)))
        return struct(i32(1, 0), i32(2, len(values)), i32(3, len(stored)), about) + stored
    sizes = i32(5, len(level)), i32(6, 0)
    about = (8, 12, struct(i32(1, rows), i32(2, 0), i32(3, rows), i32(4, encoding), *sizes))
    return struct(i32(1, 3), i32(2, len(level + values)), i32(3, len(level + stored)), about) + level + stored


def write_page(
    path: Path, kind: int, width: int, rows: int, values: bytes, encoding: int, second: bool = False,
    codec: str | None = None, nulls: bool = False,
) -> None:  # fmt: skip
    """A Parquet file of one column with one page."""
    page = data_page(rows, values, encoding, second, codec, nulls)
    number = {None: 0, "snappy": 1, "zstd": 6}[codec]
    about = struct(
        i32(1, kind), items(2, 5, zigzag(encoding), zigzag(3)), items(3, 8, b"\1x"), i32(4, number), i64(5, rows),
        i64(6, len(page) + len(values)), i64(7, len(page)), i64(9, 4),
    )  # fmt: skip
    column = struct(i32(1, kind), i32(2, width), i32(3, int(nulls)), text(4, b"x"))
    group = struct(items(1, 12, struct(i64(2, 0), (3, 12, about))), i64(2, len(page)), i64(3, rows))
    footer = struct(
        i32(1, 2), items(2, 12, struct(text(4, b"r"), i32(5, 1)), column), i64(3, rows), items(4, 12, group)
    )
    path.write_bytes(b"PAR1" + page + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("second", [False, True], ids=["first version", "second version"])
@pytest.mark.parametrize("codec", [None, "snappy", "zstd"])
def test_more_lengths_than_values_are_refused(codec: str | None, second: bool, nulls: bool, tmp_path: Path) -> None:
    """A file of a hundred bytes for whose lengths Arrow would make room of gigabytes."""
    path = tmp_path / "x.parquet"
    how: dict[str, Any] = {"second": second, "codec": codec, "nulls": nulls}
    for encoding, values in (
        (6, lengths(3, 0, 2) + b"abcdef"), (7, lengths(0, 3, 2) + lengths(3, 0, 2) + b"abcdef")
    ):  # fmt: skip
        write_page(path, 6, 0, 2, values, encoding, **how)  # what the test writes is read
        assert [bytes(x) for x in read([path])["x"].to_pylist()] == [b"abc", b"def" if encoding == 6 else b"abcdef"]
    many = lengths(0, 0, 1, said=10**8)
    for encoding, values in ((6, many), (7, many), (7, lengths(0, 0, 1) + many)):
        write_page(path, 6, 0, 1, values, encoding, **how)
        for reader in (lambda: read([path]), lambda: ParquetDataset(path)):
            with pytest.raises(FormatError, match="more lengths than values"):
                reader()
    write_page(path, 6, 0, 2, lengths(0, 0, 2, block=1 << 20), 6, **how)
    with pytest.raises(FormatError, match="blocks of"):
        read([path])


def test_texts_with_lengths_are_read_in_every_compression(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = [None if i % 5 == 0 else "ab" * (i % 7) for i in range(2000)]
    lists = [["x" * (i % 5)] * (i % 4) for i in range(2000)]
    made = pa.table({"s": texts, "l": lists, "none": pa.nulls(2000, pa.string()), "struct": [{"a": t} for t in texts]})
    codecs = ("none", "snappy", "zstd", "gzip", "brotli", "lz4")
    for version, codec, encoding in itertools.product(
        ("1.0", "2.0"), codecs, ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
    ):
        columns = dict.fromkeys(("s", "l.list.element", "none", "struct.a"), encoding)
        parquet.write_table(made, path, compression=codec, data_page_version=version, use_dictionary=False,
                            column_encoding=columns, data_page_size=1000, row_group_size=1500)  # fmt: skip
        found = read([path])
        assert all(found[name].to_pylist() == made[name].to_pylist() for name in made.column_names)


def test_bytes_of_one_size_that_repeat_their_beginnings_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """Arrow joins a value with what it repeats, to any length, before it compares the length with the column's."""
    count, more = 14_000, 5
    values = lengths(0, more, count) + lengths(more, 0, count) + bytes(count * more)
    write_page(tmp_path / "x.parquet", 7, 4, count, values, 7)
    with (tmp_path / "x.parquet").open("rb") as opened:
        held = Opened(pa.PythonFile(opened), "x")
        assert sizes(held, "x", range(9), {"x"}, count).rows * count * more < 512 << 20
    with pytest.raises(EmberletError):
        read([tmp_path / "x.parquet"])


def test_bytes_of_one_size_in_lists_that_repeat_their_beginnings_are_bounded(tmp_path: Path) -> None:
    column = one_list(pa.array([b"x" * 20_000] * 100, pa.binary(20_000)))
    how = PLAIN | {"column_encoding": {"c.list.element": "DELTA_BYTE_ARRAY"}}
    parquet.write_table(pa.table({"c": column}), tmp_path / "x.parquet", **how)
    assert read([tmp_path / "x.parquet"]).num_rows == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("emberlet.host.npy.EXPANDED", 4 << 20)
        with pytest.raises(FormatError, match="without the encoding DELTA_BYTE_ARRAY for bytes in lists"):
            read([tmp_path / "x.parquet"])


def test_pages_without_values_take_no_memory_while_they_are_checked() -> None:
    data = data_page(0, b"", 0, False, None, False) * 4000
    checked = Checked(io.BytesIO(data), "x", {0: [Chunk("x", 1, 1, None, 0, 0)]}, 1 << 20, 1 << 20)
    tracemalloc.start()
    try:
        assert checked.read() == data
        assert tracemalloc.get_traced_memory()[1] < len(data) + (64 << 10)
    finally:
        tracemalloc.stop()
