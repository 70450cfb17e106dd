"""The rarer contents of a burnpack: schemes of quantization, scalars, narrow dtypes, and CBOR as its own library reads
it."""

from __future__ import annotations

import random
import struct
from typing import Any

import cbor2
import pytest
from emberlet.burnpack import Burnpack, cbor
from emberlet.burnpack.quantized import scheme_of
from emberlet.errors import FormatError
from support.burnpacks import pack, tensor
from support.rows import every

SHAPE = (4, 8)


def new(**more: Any) -> dict[str, Any]:
    return {"value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": "F32", "block": None, **more}


def old(**more: Any) -> dict[str, Any]:
    return {"value": "Q8S", "store": "Native", "mode": "Symmetric", "param": "F32", "level": "Tensor", **more}


def block(*extents: int, **more: Any) -> dict[str, Any]:
    return {"dtype": "F16", "size": {"storage": [*extents, 0, 0], "len": len(extents)}, **more}


@pytest.mark.parametrize(
    ("scheme", "value", "scale", "second", "blocks", "axis", "unit"),
    [
        (new(), "int8", "float32", None, None, None, 1), (old(), "int8", "float32", None, None, None, 1),
        (new(value="Q4F"), "int8", "float32", None, None, None, 1),  # a byte for each
        (new(value="Q4S", store="U32"), "int4", "float32", None, None, 1, 8),
        (new(value="Q2S", store={"PackedU32": 0}), "int2", "float32", None, None, 1, 16),
        (new(value="Q8S", store={"PackedU32": 1}), "int8", "float32", None, None, 0, 4),
        (new(value="Q4S", store={"PackedNative": 0}), "int4", "float32", None, None, 1, 2),
        (new(value="E2M1", store={"PackedNative": 1}), "float4_e2m1fn", "float32", None, None, 0, 2),
        (new(value="Q8S", store={"PackedNative": 0}), "int8", "float32", None, None, 1, 1),
        (new(value="E4M3"), "float8_e4m3fn", "float32", None, None, None, 1),
        (new(tensor="BF16"), "int8", "bfloat16", None, None, None, 1),
        (old(param="UE8M0"), "int8", "float8_e8m0fnu", None, None, None, 1),
        (new(block=block(2, 4)), "int8", "float16", "float32", (2, 4), None, 1),
        (new(block=block(2, 4), tensor=None), "int8", "float16", None, (2, 4), None, 1),
        (new(block=block(2), tensor=None), "int8", "float16", None, (1, 2), None, 1),  # of the last axes
        (new(block=block(0, 4), tensor=None), "int8", "float16", None, (4, 4), None, 1),  # 0 is the whole axis
        (old(level={"Block": [2, 4]}), "int8", "float32", None, (2, 4), None, 1),
        (old(level={"Block": b"\x02\x04"}), "int8", "float32", None, (2, 4), None, 1),
        (old(level={"Block": [2, 4, 9]}), "int8", "float32", None, (2, 4), None, 1),
    ],
)  # fmt: skip
def test_a_scheme_of_either_generation(
    scheme: Any, value: str, scale: str, second: Any, blocks: Any, axis: Any, unit: int
) -> None:
    s = scheme_of(scheme, SHAPE, "w")
    assert (s.value.name, s.scale.name, s.tensor_scale and s.tensor_scale.name) == (value, scale, second)
    assert (s.block, s.packed_axis, s.unit) == (blocks, axis, unit)
    del scheme["mode"]
    assert scheme_of(scheme, SHAPE, "w").value is s.value


@every(
    ("scheme", "says"),
    [
        (new(mode="Affine"), "quantization mode 'Affine'"),
        (new(value="Q9"), "quantized value 'Q9' is none of E2M1, E4M3"),
        (new(value=8), "quantized value 8"), (new(tensor="F64"), "scale type 'F64'"),
        (new(tensor=None), "scale type None"),
        (old(param="F64"), "scale type 'F64'"), (old(level="Row"), "quantization level 'Row'"),
        (old(level={"Row": [1]}), "quantization level"),
        (old(level={"Block": [1], "x": 1}), "quantization level"),
        (new(block=3), "the block of its scheme is not a map"),
        (new(block=block(2, dtype="F64")), "scale type 'F64'"), (new(block=block(2), tensor="F64"), "scale type 'F64'"),
        (new(block={"dtype": "F32", "size": {"storage": [2], "len": 2}}), "is not a list of bytes"),
        (new(block={"dtype": "F32", "size": {"storage": [2], "len": -1}}), "is not a list of bytes"),
        (new(block={"dtype": "F32", "size": {"storage": 2, "len": 1}}), "is not a list of bytes"),
        (new(block={"dtype": "F32", "size": {"storage": [2], "len": "1"}}), "is not a list of bytes"),
        (old(level={"Block": [256]}), "is not a list of bytes"), (old(level={"Block": [-1]}), "is not a list of bytes"),
        (old(level={"Block": ["2"]}), "is not a list of bytes"), (old(level={"Block": "2"}), "is not a list of bytes"),
        (new(store="U8"), "stored as 'U8'"), (new(store={"PackedU8": 0}), "stored as"),
        (new(store={"PackedU32": 0, "x": 1}), "stored as"),
        (new(store={"PackedU32": 2}), "packed along axis 2 of 2"),
        (new(store={"PackedU32": -1}), "packed along axis -1"),
        (new(store={"PackedU32": "0"}), "packed along axis '0'"), (new(value="E2M1"), "floats of 4 bits"),
        (new(value="Q4S", store={"PackedU32": 1}), "4 values of axis 0 do not fill words of 8"),
    ],
)  # fmt: skip
def test_a_scheme_that_says_something_else_is_refused(scheme: Any, says: str) -> None:
    with pytest.raises(FormatError, match="^w: .*" + says):
        scheme_of(scheme, SHAPE, "w")


@pytest.mark.parametrize(
    ("found", "value"),
    [
        ({"Int": -(1 << 63)}, -(1 << 63)), ({"Int": (1 << 63) - 1}, (1 << 63) - 1), ({"UInt": 0}, 0),
        ({"UInt": (1 << 64) - 1}, (1 << 64) - 1),
        ({"Float": 0.5}, 0.5), ({"Bool": True}, True), ({"Bool": False}, False), ({"Int": 1 << 63}, None),
        ({"Int": -(1 << 63) - 1}, None),
        ({"UInt": -1}, None), ({"UInt": 1 << 64}, None), ({"Float": 1}, None), ({"Bool": 1}, None),
        ({"Int": True}, None), ({"Int": 0.5}, None),
        ({"UInt": True}, None), ({"Text": 1}, None), ({}, None), ({"Int": 1, "UInt": 1}, None), (3, None),
        ([1], None), (None, None),
    ],
)  # fmt: skip
def test_a_scalar_has_its_type_and_range(found: Any, value: Any) -> None:
    data = pack({"tensors": {}, "scalars": {"s": found}})
    if value is None:
        with pytest.raises(FormatError, match="scalar 's' is not one of"):
            Burnpack.from_bytes(data)
    else:
        assert Burnpack.from_bytes(data).scalars == {"s": value}
        assert type(Burnpack.from_bytes(data).scalars["s"]) is type(value)


@pytest.mark.parametrize(
    ("stored", "nbytes", "said", "says"),
    [
        ("U8", 2, "int4 3 1", None), ("U8", 2, "int4 4", None), ("U8", 1, "int4", None),
        ("U8", 1, "uint2 1 4", None), ("U8", 0, "int4 0 7", None),
        ("U8", 2, "int4 5", "do not hold"), ("U8", 2, "int4 2", "do not hold"),
        ("U8", 0, "int4 18446744073709551615 2", "do not hold"),
        ("I8", 2, "int4 4", "does not fit"), ("U8", 4, "float32 1", "does not fit"),
        ("U8", 4, "nothing 4", "does not fit"),
        ("U8", 4, "string 4", "does not fit"), ("U8", 2, "int4 x", "is no shape|is not a shape"),
        ("U8", 2, "int4  4", "is no shape|is not a shape"),
        ("U8", 2, "int4 -4", "is no shape|is not a shape"),
        ("U8", 2, "int4 18446744073709551616", "not an unsigned integer"),
        ("U8", 2, "int4 " + "9" * 30, "not an unsigned integer"),
    ],
)  # fmt: skip
def test_a_narrow_dtype_is_in_the_metadata(stored: str, nbytes: int, said: str, says: str | None) -> None:
    contents = {"tensors": {"t": tensor(stored, [nbytes], 0, nbytes)}, "metadata": {"emberlet.dtype.t": said}}
    data = pack(contents, bytes(nbytes))
    if says is None:
        entry = Burnpack.from_bytes(data).tensors["t"]
        name, *shape = said.split()
        assert (entry.dtype.name, entry.shape) == (name, tuple(map(int, shape)))
    else:
        with pytest.raises(FormatError, match=says):
            Burnpack.from_bytes(data)
    with pytest.raises(FormatError, match="does not fit"):
        Burnpack.from_bytes(pack({**contents, "metadata": {"emberlet.dtype.u": said}}, bytes(nbytes)))


def drawn(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(8 if depth else 6)
    if kind <= 1:
        n = rng.choice([0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63, 2**64 - 1])
        return n if kind == 0 else -1 - n
    if kind == 2:
        return rng.choice([None, True, False])
    if kind == 3:
        return rng.choice([0.5, -1.25, 1e300, 0.1, 3.0e38])
    if kind == 4:
        return "é" * rng.choice([0, 1, 11, 12, 130, 40_000])
    if kind == 5:
        return rng.randbytes(rng.choice([0, 1, 23, 24, 300]))
    many = rng.choice([0, 1, 23, 24, 30])
    if kind == 6:
        return [drawn(rng, depth - 1 if many < 3 else 0) for _ in range(many)]
    return {f"k{i}": drawn(rng, depth - 1 if many < 3 else 0) for i in range(many)}


@every("seed", range(10), share=2)
def test_cbor_is_read_as_by_its_library(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        value = drawn(rng, 3)
        for canonical in (False, True):  # floats in the fewest bytes
            data = cbor2.dumps(value, canonical=canonical)
            found = cbor.decode(b"head" + data, 4, "x")
            assert found == value
            assert type(found) is type(value)
            with pytest.raises(FormatError):
                cbor.decode(data[:-1], 0, "x")


@every(
    "code",
    [
        "9f0102ff", "9fff", "bf616101616202ff", "bfff", "7f61616162ff", "7fff", "5f41014102ff",
        "5fff", "f93c00", "f90000",
        "f98000", "f97c00", "f9fc00", "f90001", "f903ff", "f90400", "f97bff", "fa3fc00000", "fb3ff8000000000000",
        "d9d9f701", "c101",
        "1800", "190000", "1a00000000", "1b0000000000000000", "3800", "780161", "98020102", "b801616101", "f6",
    ],
)  # fmt: skip
def test_cbor_of_unusual_forms_is_read_as_by_its_library(code: str) -> None:
    data = bytes.fromhex(code)
    want = cbor2.loads(data)
    if data[0] >> 5 == 6:
        want = 1
    found = cbor.decode(data, 0, "x")
    assert found == want
    assert struct.pack(">d", found) == struct.pack(">d", want) if isinstance(want, float) else True


def test_a_half_of_every_exponent() -> None:
    for bits in range(0, 1 << 16, 37):
        data = b"\xf9" + bits.to_bytes(2, "big")
        (want,) = struct.unpack(">e", bits.to_bytes(2, "big"))
        found = cbor.decode(data, 0, "x")
        assert found == want or (found != found and want != want)
