"""Writing burnpacks: the very bytes, the round trip of anything, and failures that leave the old file."""

import os
import random
import struct
import sys
import tracemalloc
import weakref
import zlib

import pytest
from emberlet import dtypes
from emberlet.burnpack import Burnpack
from emberlet.errors import DTypeError, FormatError
from emberlet.host.burnpack_writer import Source, dumps, save
from emberlet.host.files import LARGE, FileBytes
from hypothesis import given, settings
from hypothesis import strategies as st
from support.burnpacks import FLOATS, pack, tensor

STORABLE = [d for d in dtypes.ALL if d is not dtypes.string]


def source(dtype, shape, data, **more):
    return Source(dtype, shape, lambda: data, **more)


def checksums(*tensors):
    return "".join(f"{zlib.crc32(data):08x}" for data in tensors)


def test_a_file_is_written_byte_for_byte_as_the_format_says():
    written = dumps(
        {
            "layer.weight": source(dtypes.float32, (2, 3), FLOATS, param_id=77),
            "layer.mask": source(dtypes.bool, (3,), b"\1\0\1"),
            "count": source(dtypes.int64, (), struct.pack("<q", 42)),
        },
        metadata={"producer": "somebody"},
        scalars={"steps": 7, "large": (1 << 64) - 1, "rate": 0.5, "done": True},
    )
    expected = {
        "tensors": {
            "count": tensor("I64", [], 0, 8),
            "layer.mask": tensor({"Bool": "Native"}, [3], 256, 259),
            "layer.weight": tensor("F32", [2, 3], 512, 536, param_id=77),
        },
        "metadata": {"producer": "somebody", "emberlet.crc32": checksums(struct.pack("<q", 42), b"\1\0\1", FLOATS)},
        "scalars": {
            "done": {"Bool": True},
            "large": {"UInt": (1 << 64) - 1},
            "rate": {"Float": 0.5},
            "steps": {"Int": 7},
        },
    }
    expected["metadata"] = dict(sorted(expected["metadata"].items()))
    data = struct.pack("<q", 42).ljust(256, b"\0") + b"\1\0\1".ljust(256, b"\0") + FLOATS
    assert written == pack(expected, data)


def test_empty_metadata_and_scalars_are_left_out():
    assert dumps({}, metadata={}, scalars={}) == pack({"tensors": {}})


def test_a_dtype_without_a_name_in_the_format_is_readable_as_bytes_by_every_reader():
    written = dumps({"t": source(dtypes.int4, (3, 3), b"\x21\x43\x65\x87\x09")})
    assert written == pack(
        {
            "tensors": {"t": tensor("U8", [5], 0, 5)},
            "metadata": {
                "emberlet.crc32": checksums(b"\x21\x43\x65\x87\x09"),
                "emberlet.dtype.t": "int4 3 3",
            },
        },
        b"\x21\x43\x65\x87\x09",
    )
    found = Burnpack.from_bytes(written)
    assert found.tensors["t"].dtype is dtypes.int4
    assert found.tensors["t"].shape == (3, 3)
    assert found.metadata == {}


def test_two_names_of_one_tensor_share_its_bytes():
    shared = source(dtypes.uint8, (4,), b"once")
    found = Burnpack.from_bytes(dumps({"a": shared, "b": shared, "c": source(dtypes.uint8, (4,), b"more")}))
    assert (found.tensors["a"].start, found.tensors["a"].end) == (found.tensors["b"].start, found.tensors["b"].end)
    assert [bytes(found.raw(n)) for n in "abc"] == [b"once", b"once", b"more"]


names = st.text(min_size=0, max_size=12)
text = st.text(max_size=20)


@st.composite
def contents(draw):
    tensors = {}
    for name in draw(st.lists(names, max_size=5, unique=True)):
        dtype = draw(st.sampled_from(STORABLE))
        shape = draw(st.lists(st.integers(0, 5), max_size=4))
        count = 1
        for n in shape:
            count *= n
        data = draw(st.binary(min_size=dtype.nbytes(count), max_size=dtype.nbytes(count)))
        param_id = draw(st.none() | st.integers(0, (1 << 64) - 1))
        tensors[name] = (dtype, tuple(shape), data, param_id)
    scalars = st.booleans() | st.floats(allow_nan=False) | st.integers(-(1 << 63), (1 << 64) - 1)
    return tensors, draw(st.dictionaries(names, text, max_size=4)), draw(st.dictionaries(names, scalars, max_size=4))


@settings(max_examples=150)
@given(contents())
def test_whatever_is_written_is_read_back(given_contents):
    tensors, metadata, scalars = given_contents
    written = dumps({n: source(d, s, b, param_id=i) for n, (d, s, b, i) in tensors.items()}, metadata, scalars)
    found = Burnpack.from_bytes(written)
    assert {n: (e.dtype, e.shape, bytes(found.raw(n)), e.param_id) for n, e in found.tensors.items()} == tensors
    assert found.metadata == metadata
    assert found.scalars == scalars
    assert [type(found.scalars[k]) for k in scalars] == [type(scalars[k]) for k in scalars]
    for entry in found.tensors.values():
        assert entry.start % 256 == 0


@settings(max_examples=300)
@given(contents(), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6), st.integers(0, 10**6))
def test_a_damaged_file_is_read_or_refused_and_never_anything_else(given_contents, changes, cut):
    tensors, metadata, scalars = given_contents
    damaged = bytearray(dumps({n: source(d, s, b) for n, (d, s, b, _) in tensors.items()}, metadata, scalars))
    for at, value in changes:
        damaged[at % min(len(damaged), 300)] = value
    if cut % 3 == 0:
        damaged = damaged[: cut % (len(damaged) + 1)]
    try:
        found = Burnpack.from_bytes(bytes(damaged))
    except FormatError:
        return
    for name, entry in found.tensors.items():
        assert len(found.raw(name)) == entry.nbytes


def test_a_name_without_extension_gets_bpk(tmp_path):
    size = save(tmp_path / "model", {"t": source(dtypes.uint8, (1,), b"x")})
    assert os.listdir(tmp_path) == ["model.bpk"]
    assert (tmp_path / "model.bpk").stat().st_size == size


def test_a_failing_save_leaves_the_old_file_and_no_scratch(tmp_path):
    path = tmp_path / "model.bpk"
    save(path, {"t": source(dtypes.uint8, (3,), b"old")})
    before = path.read_bytes()

    def fail():
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        save(path, {"a": source(dtypes.uint8, (3,), b"new"), "t": Source(dtypes.uint8, (3,), fail)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.bpk"]


@pytest.mark.parametrize("data", [b"", b"xx", b"xxxx"])
def test_a_source_that_gives_another_size_than_it_said_is_refused(tmp_path, data):
    with pytest.raises(FormatError, match=r"tensor 't' gave \d bytes where uint8 of shape \(3,\) takes 3"):
        save(tmp_path / "model.bpk", {"t": source(dtypes.uint8, (3,), data)})
    assert os.listdir(tmp_path) == []


def test_the_bytes_may_come_in_pieces_of_any_buffer():
    import array

    pieces = [array.array("f", [1.0]), b"", memoryview(array.array("f", [2.0, 3.0])), bytearray(4)]
    found = Burnpack.from_bytes(dumps({"t": Source(dtypes.float32, (4,), lambda: iter(pieces))}))
    assert struct.unpack("<4f", found.raw("t")) == (1.0, 2.0, 3.0, 0.0)


def test_one_tensor_is_held_at_a_time(tmp_path):
    class Data(bytearray):  # a bytearray itself knows no weak references
        pass

    alive = []

    def read():
        assert not any(ref() for ref in alive)
        data = Data(1000)
        alive.append(weakref.ref(data))
        return data

    save(tmp_path / "m", {name: Source(dtypes.uint8, (1000,), read) for name in "abc"})
    assert len(alive) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "other").write_bytes(b"")
    save(tmp_path / "model.bpk", {})
    assert (tmp_path / "model.bpk").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_an_open_file_may_be_replaced_by_one_read_from_it(tmp_path):
    path = tmp_path / "model.bpk"
    save(path, {"t": source(dtypes.uint8, (3,), b"abc")})
    opened = Burnpack.from_file(path)
    save(path, {"u": source(dtypes.uint8, (3,), opened.raw("t"))})
    assert bytes(opened.raw("t")) == b"abc"
    assert bytes(Burnpack.from_file(path).raw("u")) == b"abc"


def test_strings_cannot_be_stored():
    with pytest.raises(DTypeError, match="tensor 't' holds strings"):
        dumps({"t": source(dtypes.string, (1,), b"")})


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1, "text", None])
def test_a_scalar_that_does_not_fit_is_refused(value):
    with pytest.raises(FormatError, match="scalar 's'"):
        dumps({}, scalars={"s": value})


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, {"emberlet.dtype.t": "int4 1"}])
def test_metadata_is_text_and_not_the_writers_own(metadata):
    with pytest.raises(FormatError, match="metadata"):
        dumps({}, metadata=metadata)


def test_a_checksum_tells_which_tensors_were_damaged(tmp_path):
    shared = source(dtypes.uint8, (4,), b"once")
    path = tmp_path / "w.bpk"
    save(
        path,
        {"a": shared, "b": source(dtypes.uint8, (3,), b"abc"), "c": shared, "empty": source(dtypes.int8, (0,), b"")},
    )
    pack_ = Burnpack.from_file(path)
    assert pack_.verify() is True
    entry = pack_.tensors["b"]
    data = bytearray(path.read_bytes())
    for at in range(entry.start, entry.end):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(FormatError, match=r"damaged, these tensors have changed: b$"):
            Burnpack.from_bytes(damaged).verify()
    data[Burnpack.from_bytes(data).tensors["a"].start] ^= 128
    with pytest.raises(FormatError, match=r"changed: a, c$"):
        Burnpack.from_bytes(data).verify()


def test_a_file_without_checksums_loads_and_says_so():
    found = Burnpack.from_bytes(pack({"tensors": {"t": tensor("U8", [2], 0, 2)}}, b"ab"))
    assert found.verify() is False
    assert found.tensor("t").tolist() == [97, 98]


@pytest.mark.parametrize("count", [1 << 16, 3 << 19], ids=["small", "huge pages"])
def test_a_file_that_is_cut_after_it_was_opened_gives_an_error(count, tmp_path):
    """It used to end the process: mapped pages beyond the end of a file are a signal."""
    path = tmp_path / "w.bpk"
    save(path, {"t": source(dtypes.float32, (count,), bytes(4 * count))})
    found = Burnpack.from_file(path)
    with open(path, "r+b") as file:  # as `cp new old` does
        file.truncate(1000)
    with pytest.raises(FormatError, match=r"w\.bpk: was truncated after it was opened; .* bytes are missing"):
        found.tensor("t")


def test_every_part_of_a_file_reads_as_its_bytes_and_outlives_the_file(tmp_path):
    path, choose = tmp_path / "w", random.Random(0)
    wanted = choose.randbytes(5 * LARGE + 7)
    path.write_bytes(wanted)
    data = FileBytes(path)
    parts = [(choose.randrange(LARGE), choose.randrange(1, 5 * LARGE)) for _ in range(8)]
    parts += [(0, len(wanted)), (3, 3 + LARGE), (3, 2 + LARGE), (5, 5)]
    found = [data[start:stop] for start, stop in parts]
    del data
    path.write_bytes(b"other")
    assert all(view == wanted[start:stop] for view, (start, stop) in zip(found, parts, strict=True))
    assert all(view.readonly and view.format == "B" for view in found)


def test_what_was_loaded_stays_when_the_file_is_overwritten(tmp_path):
    path = tmp_path / "w.bpk"
    save(path, {"t": source(dtypes.float32, (6,), FLOATS)})
    x = Burnpack.from_file(path).tensor("t", "numpy")
    before = x.tolist()
    path.write_bytes(bytes(path.stat().st_size))
    assert x.tolist() == before


def test_zero_copy_shares_the_pages_of_the_file(tmp_path):
    path = tmp_path / "w.bpk"
    save(path, {"t": source(dtypes.float32, (6,), FLOATS)})
    found = Burnpack.from_file(path, zero_copy=True)
    x = found.tensor("t", "numpy")
    assert x.tolist() == list(struct.unpack("<6f", FLOATS))
    save(path, {"t": source(dtypes.float32, (6,), bytes(24))})  # replaced, not overwritten
    assert x.tolist() == list(struct.unpack("<6f", FLOATS))


def test_opening_a_file_reads_only_its_table_of_contents(tmp_path):
    path = tmp_path / "w.bpk"
    save(path, {"t": source(dtypes.uint8, (1 << 24,), bytes(1 << 24))})
    tracemalloc.start()
    Burnpack.from_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
