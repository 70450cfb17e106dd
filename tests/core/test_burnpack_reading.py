"""Reading burnpacks assembled by hand from the format's description, and refusing everything else."""

import struct

import pytest
from emberlet import dtypes
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
from support import burnpacks
from support.burnpacks import FLOATS, one, pack, tensor
from support.rows import every


@pytest.mark.parametrize("name", burnpacks.allowed())
def test_valid_but_unusual_files_are_read(name):
    found = Burnpack.from_bytes(burnpacks.allowed()[name])
    assert found.tensors["t"].dtype is dtypes.float32
    assert found.tensors["t"].shape == (2, 3)
    assert bytes(found.raw("t")) == FLOATS


@every("name", burnpacks.malformed())
def test_malformed_files_are_refused(name):
    with pytest.raises(FormatError, match=r"^file\.bpk: |^file\.bpk, byte"):
        Burnpack.from_bytes(burnpacks.malformed()[name], "file.bpk")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("shorter_than_header", "9 bytes are fewer than the 10 of the header"),
        ("truncated_in_metadata", "is truncated: its metadata ends at byte"),
        ("truncated_in_data", "is truncated: tensor 't' ends at byte 280, the file at 279"),
        ("magic", "not with the magic 0x4255524e"),
        ("version_2", "has version 2; this release reads version 1"),
        ("length_past_limit", "4294967295 bytes of metadata are more than the limit of 104857600"),
        ("far_too_deep", "nested deeper than 128"),
        ("shape_product", r"24 bytes where shape \[2, 4\] of F32 takes 32"),
        ("offsets_backwards", "tensor 't' ends at 0, before it starts at 24"),
        ("dtype_unknown", "dtype 'F33' is none that a burnpack has"),
        ("name_twice", "the key 't' stands twice in one map"),
    ],
)
def test_the_refusal_says_what_was_found(name, says):
    with pytest.raises(FormatError, match=says):
        Burnpack.from_bytes(burnpacks.malformed()[name])


def test_64_dimensions_of_a_narrow_tensor_are_read_and_65_are_refused():
    def read(rank):
        text = "int4" + " 1" * rank
        contents = {"tensors": {"t": tensor("U8", [1], 0, 1)}, "metadata": {"emberlet.dtype.t": text}}
        return Burnpack.from_bytes(pack(contents, b"\0"))

    assert read(64).tensors["t"].shape == (1,) * 64
    with pytest.raises(FormatError, match="tensor 't'"):
        read(65)


@pytest.mark.parametrize("limit", ["MAX_METADATA", "MAX_FILE", "MAX_TENSORS", "MAX_TENSOR", "MAX_RANK"])
def test_a_limit_itself_is_allowed_and_one_more_is_not(limit, monkeypatch):
    data = pack({"tensors": {"t": tensor("U8", [2, 3], 0, 6), "u": tensor("U8", [1], 6, 7)}}, bytes(7))
    exact = {
        "MAX_METADATA": int.from_bytes(data[6:10], "little"), "MAX_FILE": len(data),
        "MAX_TENSORS": 2, "MAX_TENSOR": 6, "MAX_RANK": 2,
    }[limit]  # fmt: skip
    monkeypatch.setattr("emberlet.burnpack." + limit, exact)
    assert len(Burnpack.from_bytes(data).tensors) == 2
    monkeypatch.setattr("emberlet.burnpack." + limit, exact - 1)
    with pytest.raises(FormatError, match=f"more than the limit of {exact - 1}"):
        Burnpack.from_bytes(data)


@pytest.mark.parametrize(
    ("stored", "dtype", "itemsize"),
    [
        ("F64", dtypes.float64, 8),
        ("F32", dtypes.float32, 4),
        ("Flex32", dtypes.float32, 4),
        ("F16", dtypes.float16, 2),
        ("BF16", dtypes.bfloat16, 2),
        ("I64", dtypes.int64, 8),
        ("I32", dtypes.int32, 4),
        ("I16", dtypes.int16, 2),
        ("I8", dtypes.int8, 1),
        ("U64", dtypes.uint64, 8),
        ("U32", dtypes.uint32, 4),
        ("U16", dtypes.uint16, 2),
        ("U8", dtypes.uint8, 1),
        ("Bool", dtypes.bool, 1),
        ({"Bool": "Native"}, dtypes.bool, 1),
        ({"Bool": "U8"}, dtypes.bool, 1),
        ({"Bool": "U32"}, dtypes.bool, 4),
    ],
)
def test_every_dtype_of_the_format_is_known(stored, dtype, itemsize):
    entry = Burnpack.from_bytes(one(stored, [3], bytes(3 * itemsize))).tensors["t"]
    assert entry.dtype is dtype
    assert entry.nbytes == 3 * itemsize


def test_metadata_scalars_and_ids_are_read():
    contents = {
        "tensors": {"t": tensor("F64", [], 0, 8, param_id=(1 << 64) - 1), "u": tensor("U8", [0, 5], 0, 0)},
        "metadata": {"producer": "burn", "naïve": "βέλος"},
        "scalars": {"i": {"Int": -5}, "u": {"UInt": (1 << 64) - 1}, "f": {"Float": 0.1}, "b": {"Bool": True}},
    }
    found = Burnpack.from_bytes(pack(contents, struct.pack("<d", 2.5)))
    assert found.tensors["t"].param_id == (1 << 64) - 1
    assert found.tensors["t"].shape == ()
    assert found.tensors["u"].param_id is None
    assert found.tensors["u"].shape == (0, 5)
    assert found.metadata == {"producer": "burn", "naïve": "βέλος"}
    assert found.scalars == {"i": -5, "u": (1 << 64) - 1, "f": 0.1, "b": True}
    assert found.scalars["b"] is True


def test_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(FormatError, match="'weight'"):
        Burnpack.from_bytes(one("U8", [1], b"x")).raw("weight")


def test_a_path_without_extension_is_tried_with_bpk(tmp_path):
    (tmp_path / "model.bpk").write_bytes(one("U8", [1], b"x"))
    assert bytes(Burnpack.from_file(tmp_path / "model").raw("t")) == b"x"
    assert Burnpack.from_file(tmp_path / "model").origin == str(tmp_path / "model.bpk")


def test_a_folder_with_a_dot_is_no_extension(tmp_path):
    (tmp_path / "v1.0").mkdir()
    (tmp_path / "v1.0" / "model.bpk").write_bytes(one("U8", [1], b"x"))
    assert Burnpack.from_file(tmp_path / "v1.0" / "model").origin == str(tmp_path / "v1.0" / "model.bpk")
    with pytest.raises(OSError):
        Burnpack.from_file(tmp_path / "v1.0" / "model.x")


def test_a_file_of_that_very_name_comes_first(tmp_path):
    (tmp_path / "model.bpk").write_bytes(one("U8", [1], b"x"))
    (tmp_path / "model").write_bytes(one("U8", [1], b"y"))
    assert bytes(Burnpack.from_file(tmp_path / "model").raw("t")) == b"y"


def test_a_path_with_another_extension_is_not_tried_with_bpk(tmp_path):
    (tmp_path / "model.bin.bpk").write_bytes(one("U8", [1], b"x"))
    with pytest.raises(FileNotFoundError, match=r"model\.bin"):
        Burnpack.from_file(tmp_path / "model.bin")


def test_a_missing_file_is_named_as_it_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing'"):
        Burnpack.from_file(tmp_path / "missing")


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / "empty.bpk").write_bytes(b"")
    with pytest.raises(FormatError, match=r"empty.bpk: 0"):
        Burnpack.from_file(tmp_path / "empty.bpk")


# 2**64 - 1 = 3 * 5 * 17 * 257 * 641 * 65537 * 6700417
@pytest.mark.parametrize(
    "shape", [[(1 << 64) - 1], [3, 5, 17, 257, 641, 65537, 6700417], [(1 << 32) - 1, (1 << 32) + 1]]
)
def test_a_product_of_64_bits_does_not_overflow(shape):
    with pytest.raises(FormatError, match="takes 18446744073709551615"):
        Burnpack.from_bytes(one("U8", shape, b""))
    assert Burnpack.from_bytes(one("U8", [*shape, 0], b"")).tensors["t"].shape == (*shape, 0)


@pytest.mark.parametrize(
    "shape", [[1 << 32, 1 << 32], [1 << 63, 2], [(1 << 64) - 1, 2], [1 << 32, 1 << 32, 0], [2] * 64]
)
def test_a_product_of_65_bits_overflows(shape):
    with pytest.raises(FormatError, match="overflows"):
        Burnpack.from_bytes(one("U8", shape, b""))
    assert Burnpack.from_bytes(one("U8", [0, *shape[:63]], b"")).tensors["t"].shape == (0, *shape[:63])


def test_a_dimension_of_65_bits_is_refused():
    for n in (1 << 64, -1):
        with pytest.raises(FormatError, match="dimension"):
            Burnpack.from_bytes(one("U8", [n], b""))
