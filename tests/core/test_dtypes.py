"""Casts, narrow dtypes and bytes against NumPy and ml_dtypes; the dtype functions of the standard."""

from __future__ import annotations

import emberlet
import ml_dtypes
import numpy as np
import onnx
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.dtypes import narrow
from emberlet.errors import DTypeError, FormatError
from support.backends import INTEGERS, numpy_dtype, same, tensor
from support.rows import every

FLOAT_STORAGE = ["float16", "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
                 "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]  # fmt: skip
WITHOUT_NAN = ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
SMALL_INTEGERS = ["int4", "uint4", "int2", "uint2"]
EVERY = [d.name for d in dtypes.ALL if d.kind != "string"]


@pytest.mark.parametrize("name", FLOAT_STORAGE)
def test_every_code_decodes_as_in_ml_dtypes(name):
    dtype = dtypes.dtype(name)
    codes = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8)
    with np.errstate(invalid="ignore"):
        expected = codes.view(numpy_dtype(name)).astype(np.float64)
    found = np.array([narrow.decode(dtype, c) for c in codes.tolist()])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", FLOAT_STORAGE)
def test_rounding_is_that_of_ml_dtypes(name):
    dtype = dtypes.dtype(name)
    values = np.array([narrow.decode(dtype, c) for c in range(0, 1 << dtype.bits, 7 if dtype.bits == 16 else 1)])
    values = np.unique(np.abs(values[np.isfinite(values)])).astype(np.float32)  # ml_dtypes rounds by way of float32
    middle = values[1:] / 2 + values[:-1] / 2
    probe = np.concatenate(
        [values, middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))]
    )
    if name == "float8_e8m0fnu":  # ONNX's Cast rounds up, ml_dtypes to the nearest
        probe = probe[probe >= 2.0**-126]
        expected = 2.0 ** np.ceil(np.log2(probe.astype(np.float64)))
    else:
        probe = np.concatenate([probe, -probe])
        expected = probe.astype(numpy_dtype(name)).astype(np.float64)
    found = np.array([narrow.decode(dtype, narrow.encode(dtype, v)) for v in probe.tolist()])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", FLOAT_STORAGE[2:6] + FLOAT_STORAGE[7:])
def test_every_float16_rounds_to_an_even_code_or_saturates(backend, name):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[~np.isnan(halves)]
    info = ml_dtypes.finfo(numpy_dtype(name))
    with np.errstate(over="ignore"):
        expected = np.clip(halves.astype(np.float32), info.min, info.max).astype(numpy_dtype(name)).astype(np.float32)
    same(tensor(halves).astype(name).astype("float32"), expected)


@pytest.mark.parametrize("name", WITHOUT_NAN)
def test_nan_becomes_a_zero_where_the_dtype_has_none(backend, name):
    x = np.array([np.nan, -np.nan], np.float32)
    found = np.array(emberlet.asarray(x).astype(name).tolist())
    np.testing.assert_array_equal(found, [0.0, 0.0])
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x.astype(numpy_dtype(name)).astype(np.float32)))


@every("name", FLOAT_STORAGE)
def test_casts_saturate_or_overflow(backend, name):
    x = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, 0.0, 1.0], np.float32)
    kept = emberlet.asarray(x).astype(name).astype("float32").tolist()
    loose = F.cast(emberlet.asarray(x), name, saturate=False).astype("float32").tolist()
    if name in ("float16", "bfloat16"):
        with np.errstate(over="ignore"):
            expected = x.astype(numpy_dtype(name)).astype(np.float32)
        np.testing.assert_array_equal(kept, expected)
        np.testing.assert_array_equal(loose, expected)
    elif name != "float8_e8m0fnu":
        largest = float(ml_dtypes.finfo(numpy_dtype(name)).max)
        assert kept[:4] == [largest, -largest, largest, -largest]
        overflow = np.inf if name == "float8_e5m2" else largest if name in WITHOUT_NAN else np.nan
        np.testing.assert_array_equal(np.abs(loose[:4]), [overflow] * 4)
        assert kept[5:] == [0.0, 1.0]
        if name not in WITHOUT_NAN:
            assert np.isnan(kept[4])


@every("target", EVERY)
@pytest.mark.parametrize("source", ["float32", "int32", "uint8", "bool", "bfloat16", "int4"])
def test_backends_cast_alike(source, target):
    values = [0, 1] if source == "bool" else [0, 1, 3, 7] if source == "int4" else [0, 1, 2, 3, 5, 100, 127]
    if source in ("float32", "bfloat16"):
        values = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 6.0, 100.0]
        if not target.startswith("u") and target != "float8_e8m0fnu":
            values += [-1.5, -2.0]
    results = []
    for backend in ("python", "numpy"):
        x = emberlet.asarray(values, backend=backend).astype(source).astype(target)
        assert x.dtype.name == target
        results.append((x.tolist(), bytes(x.backend.to_bytes(x))))
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_saturate_to_integers(backend, dtype):
    info = np.iinfo(dtype)
    x = emberlet.asarray(
        [1e30, -1e30, float("inf"), float("-inf"), float("nan"), 1.9, -1.9 if info.min else 0.9], dtype="float64"
    )
    expected = [info.max, info.min, info.max, info.min, 0, 1, -1 if info.min else 0]
    assert x.astype(dtype).tolist() == expected


@every("target", INTEGERS)
@every("source", INTEGERS)
def test_integers_wrap_into_integers(backend, source, target):
    info = np.iinfo(source)
    a = np.array([info.min, info.max, 0, 1, 100, info.max // 2 + 1], source)
    same(tensor(a).astype(target), a.astype(target))


@pytest.mark.parametrize("name", SMALL_INTEGERS)
def test_small_integers_wrap_and_compute(backend, name):
    bits = dtypes.dtype(name).bits
    low = -(1 << (bits - 1)) if name.startswith("i") else 0
    x = emberlet.arange(-20, 20).astype(name)
    expected = [(v - low) % (1 << bits) + low for v in range(-20, 20)]
    assert x.tolist() == expected
    assert (x + x).tolist() == [(2 * v - low) % (1 << bits) + low for v in expected]
    assert emberlet.max(x).item() == max(expected)


@every("name", EVERY)
@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_bytes_come_back_as_they_went(backend, name, count):
    dtype = dtypes.dtype(name)
    data = bytes((37 * i + 11) % 256 for i in range(dtype.nbytes(count)))
    if dtype.is_bool:
        data = bytes(v & 1 for v in data)
    if count * dtype.bits % 8:
        data = data[:-1] + bytes([data[-1] & ((1 << count * dtype.bits % 8) - 1)])
    x = backend.from_bytes(data, dtype, (count,))
    assert bytes(backend.to_bytes(x)) == data
    again = backend.from_list(backend.to_list(x), dtype, (count,))
    np.testing.assert_array_equal(backend.to_list(again), backend.to_list(x))


def test_nibbles_lie_lowest_first(backend):
    assert backend.to_list(backend.from_bytes(b"\x21\x43", dtypes.uint4, (3,))) == [1, 2, 3]
    assert backend.to_list(backend.from_bytes(b"\x1f", dtypes.int4, (2,))) == [-1, 1]
    assert backend.to_list(backend.from_bytes(b"\xe4", dtypes.uint2, (4,))) == [0, 1, 2, 3]
    assert backend.to_list(backend.from_bytes(b"\x72", dtypes.float4_e2m1fn, (2,))) == [1.0, 6.0]


@pytest.mark.parametrize("name", WITHOUT_NAN)
def test_the_largest_value_is_shown_as_it_is(backend, name):
    largest = emberlet.finfo(name).max
    assert f"[{largest}, {-largest}]" in str(emberlet.asarray([largest, -largest], dtype=name))


@pytest.mark.skipif(not hasattr(onnx.TensorProto, "FLOAT6E2M3"), reason="onnx has 6-bit floats from 1.23 on")
@every("count", range(9))
def test_6_bit_elements_are_packed_as_in_onnx(backend, count):
    codes = np.array([1, 63, 32, 21, 42, 7, 56, 12], np.uint8)[:count]
    values = codes.view(ml_dtypes.float6_e2m3fn)
    x = tensor(values.astype(np.float32)).astype("float6_e2m3fn")
    assert bytes(backend.to_bytes(x)) == onnx.numpy_helper.from_array(values).raw_data
    same(x.astype("float32"), values.astype(np.float32))


def test_bytes_of_the_wrong_length_are_refused(backend):
    with pytest.raises(FormatError, match=r"float32.*\(3,\).*12 bytes, found 8"):
        backend.from_bytes(bytes(8), dtypes.float32, (3,))


def test_bytes_are_borrowed_not_copied(backend):
    memory = bytearray(np.arange(4, dtype=np.float32).tobytes())
    x = backend.from_bytes(memory, dtypes.float32, (4,))
    memory[0:4] = np.float32(9).tobytes()
    assert x.tolist() == [9, 1, 2, 3]


def test_bitcast(backend):
    same(
        F.bitcast(tensor(np.array([1.0, -2.0], np.float32)), "int32"), np.array([1.0, -2.0], np.float32).view(np.int32)
    )
    same(F.bitcast(tensor(np.array([255, 1], np.uint8)), "int8"), np.array([-1, 1], np.int8))
    assert F.bitcast(tensor(np.array([0x3F80], np.uint16)), "bfloat16").tolist() == [1.0]
    with pytest.raises(DTypeError, match=r"32.*become 64"):
        F.bitcast(emberlet.ones((2,)), "int64")


def test_dtype_questions(backend):
    assert emberlet.finfo("float32").max == float(np.finfo(np.float32).max)
    for name in ("float64", "float32", "float16"):
        ours, theirs = emberlet.finfo(name), np.finfo(name)
        assert (ours.bits, ours.eps, ours.max, ours.smallest_normal) == (
            theirs.bits, float(theirs.eps), float(theirs.max), float(theirs.smallest_normal))  # fmt: skip
    for name in FLOAT_STORAGE[1:6] + FLOAT_STORAGE[7:]:
        ours, other = emberlet.finfo(name), ml_dtypes.finfo(numpy_dtype(name))
        assert (ours.max, ours.eps, ours.smallest_normal) == (
            float(other.max), float(other.eps), float(other.smallest_normal))  # fmt: skip
    for name in INTEGERS:
        assert (emberlet.iinfo(name).min, emberlet.iinfo(name).max) == (np.iinfo(name).min, np.iinfo(name).max)
    assert emberlet.isdtype(emberlet.int8, "signed integer")
    assert emberlet.isdtype(emberlet.uint8, ("bool", "integral"))
    assert not emberlet.isdtype(emberlet.float32, "integral")
    assert emberlet.can_cast("int8", "int16")
    assert not emberlet.can_cast("float64", "float32")
    assert emberlet.result_type(emberlet.ones((1,), dtype="int8"), "float16", 1.0) is emberlet.float16
    with pytest.raises(DTypeError, match="'float99'"):
        emberlet.dtypes.dtype("float99")
    with pytest.raises(DTypeError):
        emberlet.finfo("int8")


def test_a_copy_of_a_dtype_is_the_dtype():
    import copy
    import pickle

    assert copy.deepcopy(emberlet.float32) is emberlet.float32
    assert pickle.loads(pickle.dumps(emberlet.int4)) is emberlet.int4
