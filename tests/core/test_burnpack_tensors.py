"""The tensors of a burnpack on each backend: in place, converted, dequantized by both generations' schemes."""

import struct

import ml_dtypes
import numpy as np
import pytest
from emberlet import dtypes
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
from support.burnpacks import FLOATS, one, pack, tensor
from support.rows import every

BACKENDS = ["numpy", "python"]


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def read(data, backend, name="t"):
    return Burnpack.from_bytes(data).tensor(name, backend)


@pytest.mark.parametrize(
    ("stored", "array"),
    [
        ("F64", np.array([[1.5, -2.0]])),
        ("F32", np.array([[1.5, -2.0]], np.float32)),
        ("Flex32", np.array([[1.5, -2.0]], np.float32)),
        ("F16", np.array([[1.5, -2.0]], np.float16)),
        ("BF16", np.array([[1.5, -2.0]], ml_dtypes.bfloat16)),
        ("I64", np.array([[-(2**63), 2**63 - 1]])),
        ("I8", np.array([[-128, 127]], np.int8)),
        ("U64", np.array([[0, 2**64 - 1]], np.uint64)),
        ("U16", np.array([[0, 65535]], np.uint16)),
    ],
)
def test_plain_tensors_have_the_values_of_their_bytes(backend, stored, array):
    x = read(one(stored, [1, 2], array.tobytes()), backend)
    assert x.shape == (1, 2)
    assert x.tolist() == array.astype(np.float64 if stored[0] in "FB" else array.dtype).tolist()


@pytest.mark.parametrize("stored", ["Bool", {"Bool": "Native"}, {"Bool": "U8"}])
def test_any_byte_but_zero_is_true(backend, stored):
    x = read(one(stored, [3], b"\0\1\xff"), backend)
    assert x.dtype is dtypes.bool
    assert x.tolist() == [False, True, True]


def test_booleans_may_take_four_bytes(backend):
    assert read(one({"Bool": "U32"}, [2], struct.pack("<2I", 0, 1 << 31)), backend).tolist() == [False, True]


def test_narrow_dtypes_come_back(backend):
    contents = {"tensors": {"t": tensor("U8", [2], 0, 2)}, "metadata": {"emberlet.dtype.t": "int4 3 1"}}
    x = read(pack(contents, b"\xf1\x07"), backend)
    assert x.dtype is dtypes.int4
    assert x.tolist() == [[1], [-1], [7]]


def test_scalars_and_empty_tensors(backend):
    assert read(one("F32", [], struct.pack("<f", 2.5)), backend).tolist() == 2.5
    assert read(one("F32", [0, 3], b""), backend).shape == (0, 3)


def test_unaligned_tensors_are_read(backend):
    data = pack({"tensors": {"t": tensor("F32", [2, 3], 3, 27)}}, b"???" + FLOATS)
    assert read(data, backend).tolist() == read(one("F32", [2, 3], FLOATS), backend).tolist()


def test_numpy_uses_the_bytes_in_place():
    data = bytearray(one("F32", [2, 3], FLOATS))
    x = read(data, "numpy")
    data[256:260] = struct.pack("<f", 9.0)
    assert x.tolist()[0][0] == 9.0


def test_a_mapped_file_outlives_its_burnpack(tmp_path, backend):
    (tmp_path / "m.bpk").write_bytes(one("F32", [2, 3], FLOATS))
    x = Burnpack.from_file(tmp_path / "m").tensor("t", backend)
    assert x.tolist()[1] == pytest.approx([3.25, 1e-3, -1e6])


# -- quantized --------------------------------------------------------------------------------------------------------

VALUES = {
    "Q8S": np.array([[-128, 127, 5, 0], [1, -2, 3, 64]]),
    "Q4F": np.array([[-8, 7, 1, 0], [1, -2, 3, -4]]),
    "Q2S": np.array([[-2, 1, 0, -1], [1, 1, -2, 0]]),
    "E4M3": np.array([[0.5, -448.0, 2.0, 0.0], [1.0, 3.5, -0.25, 8.0]]),
    "E5M2": np.array([[0.5, -57344.0, 2.0, 0.0], [1.0, 3.5, -0.25, 8.0]]),
    "E2M1": np.array([[0.5, -6.0, 2.0, 0.0], [1.0, 3.0, -1.5, 4.0]]),
}
BITS = {"Q8S": 8, "Q4F": 4, "Q2S": 2, "E4M3": 8, "E5M2": 8, "E2M1": 4}
FLOAT = {"E4M3": ml_dtypes.float8_e4m3fn, "E5M2": ml_dtypes.float8_e5m2, "E2M1": ml_dtypes.float4_e2m1fn}
SCALE = {
    "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "UE8M0": ml_dtypes.float8_e8m0fnu,
    "UE4M3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


def codes(kind, values):
    """The bit patterns of values, as unsigned numbers."""
    if kind in FLOAT:
        return values.astype(FLOAT[kind]).view(np.uint8).astype(np.uint32)
    return values.astype(np.int64).astype(np.uint32) & ((1 << BITS[kind]) - 1)


def packed(kind, values, word=32):
    """Values of one row after the other in words, the first in the lowest bits, the last word filled with zeros."""
    flat = codes(kind, values).reshape(-1)
    each = word // BITS[kind]
    flat = np.pad(flat, (0, -len(flat) % each)).reshape(-1, each).astype(np.uint64)
    words = (flat << (np.arange(each, dtype=np.uint64) * BITS[kind])).sum(1, dtype=np.uint64)
    return words.astype(f"<u{word // 8}").tobytes()


def old(value, store, param="F32", level="Tensor"):
    return {"QFloat": {"value": value, "param": param, "store": store, "level": level, "mode": "Symmetric"}}


def new(value, store, tensor="F32", block=None):
    return {"QFloat": {"value": value, "store": store, "mode": "Symmetric", "tensor": tensor, "block": block}}


SCALAR = np.float32(0.25)


@pytest.mark.parametrize("make", [old, new])
@every(
    ("kind", "store"),
    [(kind, {"PackedU32": 0}) for kind in VALUES] + [(kind, "Native") for kind in VALUES if BITS[kind] == 8],
)
def test_one_scale_for_the_tensor(backend, make, kind, store):
    data = packed(kind, VALUES[kind], 8 if store == "Native" else 32) + SCALAR.tobytes()
    x = read(one(make(kind, store), [2, 4], data), backend)
    assert x.dtype is dtypes.float32
    assert x.tolist() == (VALUES[kind] * 0.25).tolist()


def test_the_oldest_name_of_packed_words(backend):
    data = packed("Q8S", VALUES["Q8S"]) + SCALAR.tobytes()
    assert read(one(old("Q8S", "U32"), [2, 4], data), backend).tolist() == (VALUES["Q8S"] * 0.25).tolist()


def test_natively_packed_pairs(backend):
    data = packed("E2M1", VALUES["E2M1"], 8) + SCALAR.tobytes()
    x = read(one(new("E2M1", {"PackedNative": 0}), [2, 4], data), backend)
    assert x.tolist() == (VALUES["E2M1"] * 0.25).tolist()


@pytest.mark.parametrize("padding", [b"", b"\0"])
def test_the_scale_may_be_aligned_to_four(backend, padding):
    values = np.array([1, -2, 3])
    data = values.astype(np.int8).tobytes() + padding + SCALAR.tobytes()
    assert read(one(old("Q8S", "Native"), [3], data), backend).tolist() == [0.25, -0.5, 0.75]


@pytest.mark.parametrize("scale", SCALE)
@pytest.mark.parametrize("make", ["old", "new"])
def test_a_scale_for_each_block_in_every_type(backend, scale, make):
    scales = np.array([[0.5, 2.0], [4.0, 0.25]])
    data = packed("Q8S", VALUES["Q8S"], 8) + scales.astype(SCALE[scale]).tobytes()
    size = {"storage": [2, 1, 1, 1, 1], "len": 1}
    if make == "old":
        scheme = old("Q8S", "Native", scale, {"Block": size})
    else:
        scheme = new("Q8S", "Native", None, {"size": size, "dtype": scale})
    x = read(one(scheme, [2, 4], data), backend)
    assert x.tolist() == (VALUES["Q8S"] * np.repeat(scales, 2, axis=1)).tolist()


def test_two_levels_of_scales(backend):
    scales = np.array([[0.5, 2.0], [4.0, 0.25]])
    data = packed("Q8S", VALUES["Q8S"], 8) + scales.astype(ml_dtypes.float8_e4m3fn).tobytes() + np.float32(3).tobytes()
    scheme = new("Q8S", "Native", "F32", {"size": [2], "dtype": "UE4M3"})
    x = read(one(scheme, [2, 4], data), backend)
    assert x.tolist() == (VALUES["Q8S"] * np.repeat(scales, 2, axis=1) * 3).tolist()


def test_blocks_of_two_axes_that_do_not_divide_the_shape(backend):
    values = np.arange(15).reshape(3, 5) - 7
    scales = np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    data = values.astype(np.int8).tobytes() + scales.tobytes()
    x = read(one(new("Q8S", "Native", None, {"size": [2, 2], "dtype": "F32"}), [3, 5], data), backend)
    spread = np.repeat(np.repeat(scales, 2, 0), 2, 1)[:3, :5]
    assert x.tolist() == (values * spread).tolist()


def test_a_block_may_span_a_whole_axis(backend):
    scales = np.array([[1.0], [3.0]], np.float32)
    data = packed("Q8S", VALUES["Q8S"], 8) + scales.tobytes()
    x = read(one(new("Q8S", "Native", None, {"size": [1, 0], "dtype": "F32"}), [2, 4], data), backend)
    assert x.tolist() == (VALUES["Q8S"] * scales).tolist()


def test_values_may_be_packed_along_another_axis(backend):
    values = np.random.default_rng(0).integers(-8, 8, (8, 3))
    words = np.zeros(3, np.uint32)
    for i in range(8):
        words |= codes("Q4F", values[i]) << np.uint32(4 * i)
    data = words.astype("<u4").tobytes() + SCALAR.tobytes()
    x = read(one(old("Q4F", {"PackedU32": 1}), [8, 3], data), backend)
    assert x.tolist() == (values * 0.25).tolist()


def test_an_axis_that_does_not_fill_its_words_is_refused():
    with pytest.raises(FormatError, match=r"7.*axis 0.*8"):
        Burnpack.from_bytes(one(old("Q4F", {"PackedU32": 1}), [7, 3], bytes(16))).tensor("t")


def test_quantized_scalars_and_empty_tensors(backend):
    assert read(one(old("Q8S", "Native"), [], b"\2" + SCALAR.tobytes()), backend).tolist() == 0.5
    assert read(one(old("Q8S", "Native"), [0, 2], SCALAR.tobytes()), backend).shape == (0, 2)


def test_quantized_tensors_are_named_so():
    entry = Burnpack.from_bytes(one(old("Q8S", "Native"), [1], b"\2" + SCALAR.tobytes())).tensors["t"]
    assert entry.is_quantized
    assert entry.dtype is dtypes.float32


def test_micropython_dequantizes_the_same(micropython_port, tmp_path):
    scales = np.array([[0.5, 2.0], [4.0, 0.25]], np.float16)
    size = {"storage": [2, 1, 1, 1, 1], "len": 1}
    data = packed("Q4F", VALUES["Q4F"]) + scales.tobytes()
    (tmp_path / "q.bpk").write_bytes(one(old("Q4F", {"PackedU32": 0}, "F16", {"Block": size}), [2, 4], data))
    script = (
        "import sys\nfrom emberlet.burnpack import Burnpack\n"
        "print(Burnpack.from_file(sys.argv[1]).tensor('t').tolist())"
    )
    said = micropython_port.run(script, [tmp_path / "q.bpk"], files=[tmp_path]).check().stdout
    assert said == f"{(VALUES['Q4F'] * np.repeat(scales, 2, axis=1)).tolist()}\n"
