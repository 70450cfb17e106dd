"""safetensors header by header: what is read, the ends of every limit, the layout, shards and what is written."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import store
from emberlet.burnpack.limits import Limits
from emberlet.errors import DTypeError, FormatError
from emberlet.store.formats import safetensors

ENTRY = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}


def made(entries: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def read(data: bytes, **limits: int) -> Any:
    return safetensors.read(memoryview(data), "w", limits=Limits(**limits))


def test_the_smallest_file_has_an_empty_header() -> None:
    found = read(made({}))
    assert (len(found), found.format, found.origin, found.layout, found.metadata) == (0, "safetensors", "w", None, {})
    assert len(read(made(b"{}   "))) == 0
    for size in range(8):
        with pytest.raises(FormatError, match=f"w: {size} bytes are fewer than the 8 of the header's length"):
            read(bytes(size))


def test_a_header_ends_within_the_file() -> None:
    text = json.dumps({"a": ENTRY}).encode()
    with pytest.raises(FormatError, match=rf"^w\b.*header.*\b{9 + len(text)}\b"):
        read(made({"a": ENTRY}, length=len(text) + 1))
    with pytest.raises(FormatError, match=r"^w\b.*tensors"):
        read(made({"a": ENTRY}, bytes(3)))


def test_tensors_lie_side_by_side_in_any_order() -> None:
    entries = {
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]},
        "a": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]},
        "none": {"dtype": "F32", "shape": [0, 3], "data_offsets": [4, 4]},
        "flag": {"dtype": "BOOL", "shape": [2], "data_offsets": [6, 8]},
    }
    found = read(made(entries, bytes([1, 0, 2, 0, 3, 4, 1, 0])))
    assert list(found) == ["b", "a", "none", "flag"]
    assert [found.tensor(n).tolist() for n in found] == [[3, 4], [1, 2], [], [True, False]]
    assert [found[n].stored for n in found] == ["U8", "I16", "F32", "BOOL"]
    assert [found[n].nbytes for n in found] == [2, 4, 0, 2]
    for change, said in (((3, 5), "overlap"), ((5, 7), "leave a gap")):
        entries["b"]["data_offsets"] = list(change)
        with pytest.raises(FormatError, match=f"its tensors {said} at byte"):
            read(made(entries, bytes(8)))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ([], "its entry is not a map"), ({}, "dtype 'None' is none of BOOL, F4"),
        ({**ENTRY, "dtype": "u8"}, "dtype 'u8' is none of"), ({**ENTRY, "dtype": 3}, "dtype '3' is none of"),
        ({**ENTRY, "shape": None}, "its shape is not a list of unsigned integers"),
        ({**ENTRY, "shape": [4.0]}, "its shape is not a list"),
        ({**ENTRY, "shape": [1 << 64]}, "its shape is not a list"),
        ({**ENTRY, "data_offsets": None}, "its data_offsets is not a list"),
        ({**ENTRY, "data_offsets": [0, -4]}, "its data_offsets is not a list"),
        ({**ENTRY, "data_offsets": [0, 4, 4]}, "1 dimensions and 3 offsets"),
        ({**ENTRY, "shape": [1] * 65}, "65 dimensions and 2 offsets; there are at most 64, and 2"),
        ({**ENTRY, "shape": [1 << 32, 1 << 32]}, "the product of its shape .* overflows"),
        ({**ENTRY, "shape": [(1 << 64) - 1]}, "4 bytes where shape"), ({**ENTRY, "shape": [3]}, "4 bytes where shape"),
        ({**ENTRY, "data_offsets": [4, 0]}, "-4 bytes where shape"),
        ({"dtype": "F4", "shape": [3], "data_offsets": [0, 2]}, "2 bytes where shape"),
    ],
)  # fmt: skip
def test_an_entry_that_lies_is_refused(entry: Any, said: str) -> None:
    with pytest.raises(FormatError, match=f"w: tensor 'a': {said}"):
        read(made({"a": entry}, bytes(4)))


def test_entries_at_the_ends_are_read() -> None:
    assert read(made({"a": {**ENTRY, "shape": [1] * 63 + [4]}}, bytes(4)))["a"].shape == (1,) * 63 + (4,)
    assert read(made({"a": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, bytes(2)))["a"].shape == (4,)
    assert read(made({"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}, b"\5")).tensor("a").item() == 5
    assert read(made({"a": {"dtype": "U8", "shape": [0, 1 << 40], "data_offsets": [0, 0]}}))["a"].nbytes == 0


@pytest.mark.parametrize(
    ("metadata", "layout"),
    [
        (None, None), ({}, None), ({"format": "pt"}, "pytorch"), ({"format": "np"}, None),
        ({safetensors.KEY: "burn"}, "burn"), ({safetensors.KEY: "burn", "format": "pt"}, "burn"),
        ({safetensors.KEY: "nothing", "format": "pt"}, "pytorch"), ({safetensors.KEY: "nothing"}, None),
    ],
)  # fmt: skip
def test_the_layout_is_that_of_the_metadata(metadata: Any, layout: str | None) -> None:
    found = read(made({"__metadata__": metadata}))
    assert found.layout == layout and found.metadata == (metadata or {})
    written = store.dumps(found, "safetensors")
    assert read(written).layout == layout


@pytest.mark.parametrize("metadata", [[1], 3, "a", {"a": 1}, {"a": None}])
def test_metadata_are_texts(metadata: Any) -> None:
    with pytest.raises(FormatError, match="__metadata__"):
        read(made({"__metadata__": metadata}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[]", "its header is not a JSON object"), (b"3", "its header is not a JSON object"), (b"", "is not JSON"),
        (b'{"a": Infinity}', "Infinity is not JSON"), (b'{"b":1,"a":{"c":1,"c":2}}', "the key 'c' occurs twice"),
        (b'{"b":1,"a":2,"b":3,"a":4}', "the key 'b' occurs twice"), (b'{"\xff":1}', "is not JSON"),
        (b'{"a":' * 5000, "is not JSON"), (b'{"a":' + b"[" * 200_000 + b"}", "is not JSON"),
    ],
)  # fmt: skip
def test_a_header_is_a_json_object_with_unique_keys(text: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read(made(text))


# -- shards


def sharded(folder: Path, index: Any, **files: bytes) -> Any:
    for name, data in files.items():
        (folder / f"{name}.safetensors").write_bytes(data)
    path = folder / "m.safetensors.index.json"
    path.write_text(json.dumps(index), encoding="utf-8")
    return store.open(path)


def test_shards_are_one_store_with_the_metadata_of_all(tmp_path: Path) -> None:
    one = made({"__metadata__": {"k": "1", "own": "x"}, "a": ENTRY}, bytes(4))
    two = made({"__metadata__": {"format": "pt", "k": "2"}, "b": ENTRY, "unlisted": {**ENTRY, "data_offsets": [4, 8]}},
               bytes(8))  # fmt: skip
    index = {"weight_map": {"b": "two.safetensors", "a": "one.safetensors"},
             "metadata": {"total_size": 8, "text": "t", "list": [1], "flag": True}}  # fmt: skip
    found = sharded(tmp_path, index, one=one, two=two)
    assert list(found) == ["b", "a"] and found.layout == "pytorch"
    assert found.metadata == {"k": "2", "own": "x", "format": "pt", "total_size": "8", "text": "t", "flag": "True"}
    del index["metadata"]
    assert sharded(tmp_path, index).metadata == {"k": "2", "own": "x", "format": "pt"}


@pytest.mark.parametrize("weight_map", [None, [], {"a": 1}])
def test_an_index_maps_names_to_files(weight_map: Any, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="weight_map"):
        sharded(tmp_path, {"weight_map": weight_map})


def test_an_index_has_as_many_bytes_and_files_as_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    entry = {"one": made({"a": ENTRY}, bytes(4)), "two": made({"b": ENTRY}, bytes(4))}
    monkeypatch.setattr(safetensors, "MAX_SHARDS", 2)
    assert len(sharded(tmp_path, index, **entry)) == 2
    monkeypatch.setattr(safetensors, "MAX_SHARDS", 1)
    with pytest.raises(FormatError, match="2 files are more than the limit of 1"):
        sharded(tmp_path, index)
    monkeypatch.setattr(safetensors, "MAX_SHARDS", 2)
    size = (tmp_path / "m.safetensors.index.json").stat().st_size
    data = memoryview((tmp_path / "m.safetensors.index.json").read_bytes())
    where = str(tmp_path / "m.safetensors.index.json")
    assert len(safetensors.read(data, where, path=where, limits=Limits(metadata=size))) == 2
    with pytest.raises(FormatError, match=f"{size} bytes of index are more than the limit of {size - 1}"):
        safetensors.read(data, where, path=where, limits=Limits(metadata=size - 1))


# -- writing


def test_tensors_are_written_widest_first_and_by_name() -> None:
    arrays = {"z": np.uint8([1]), "a": np.float32([1]), "b": np.int64([1]), "y": np.uint8([2])}
    whole = store.store_of({n: emberlet.asarray(v) for n, v in arrays.items()})
    head, order = safetensors.header_of(whole, {"k": "v", "a": "b"})
    assert order == ["b", "a", "y", "z"]
    assert int.from_bytes(head[:8], "little") == len(head) - 8 and len(head) % 8 == 0
    entries = json.loads(head[8:])
    assert list(entries["__metadata__"]) == ["a", "k"]
    assert [entries[n]["data_offsets"] for n in order] == [[0, 8], [8, 12], [12, 13], [13, 14]]
    assert "__metadata__" not in json.loads(safetensors.header_of(whole, {})[0][8:])
    file = io.BytesIO()
    assert safetensors.dump(whole, file, {}) == len(file.getvalue()) == len(safetensors.header_of(whole, {})[0]) + 14


def test_what_the_format_does_not_have_is_not_written() -> None:
    odd = store.store_of({"x": emberlet.asarray([1.0, 2.0, 3.0]).astype("float4_e2m1fn")})
    with pytest.raises(DTypeError, match=r"'x'.*float4_e2m1fn"):
        store.dumps(odd, "safetensors")
    named = store.store_of({"__metadata__": emberlet.asarray([1.0])})
    with pytest.raises(FormatError, match="'__metadata__'"):
        store.dumps(named, "safetensors")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_tensor_gives_as_many_bytes_as_its_shape_takes(change: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = store.store_of({"x": emberlet.asarray([1.0, 2.0])})
    monkeypatch.setattr(type(whole["x"]), "raw", lambda self: bytes(8 + change))
    with pytest.raises(FormatError, match=rf"tensor 'x' gave {8 + change} bytes where float32 of \(2,\) takes"):
        safetensors.dump(whole, io.BytesIO(), {})


def test_an_index_names_files_beside_it_that_hold_its_tensors(tmp_path: Path) -> None:
    one = made({"a": ENTRY}, bytes(4))
    with pytest.raises(FormatError, match=r"one\.safetensors.*'b'"):
        sharded(tmp_path, {"weight_map": {"b": "one.safetensors"}}, one=one)
    for name in ("../one.safetensors", "sub/one.safetensors", "", ".", "..", "a\\b", "a\0b"):
        with pytest.raises(FormatError, match="which is not in its folder"):
            sharded(tmp_path, {"weight_map": {"a": name}})
