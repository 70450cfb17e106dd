"""Burnpacks assembled byte by byte from the description of the format, without the library's writer."""

from __future__ import annotations

import struct
from typing import Any

import cbor2


def pack(
    contents: Any, data: bytes = b"", *, magic: int = 0x4255524E, version: int = 1, length: int | None = None
) -> bytes:
    """A burnpack of `contents` (encoded, or an object that cbor2 encodes) followed by `data`."""
    encoded = contents if isinstance(contents, bytes) else cbor2.dumps(contents)
    head = struct.pack("<IHI", magic, version, len(encoded) if length is None else length) + encoded
    return head + bytes(-len(head) % 256) + data


def tensor(dtype: Any, shape: list[int], start: int, end: int, **more: Any) -> dict[str, Any]:
    """A descriptor, as the metadata holds it."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end], **more}


def one(dtype: Any, shape: list[int], data: bytes, **more: Any) -> bytes:
    """A burnpack of one tensor called "t"."""
    return pack({"tensors": {"t": tensor(dtype, shape, 0, len(data), **more)}}, data)


FLOATS = struct.pack("<6f", 0.0, 1.5, -2.0, 3.25, 1e-3, -1e6)


def nested(depth: int) -> bytes:
    """The metadata of a burnpack whose ignored key "x" makes the whole nest `depth` deep."""
    return b"\xa2" + cbor2.dumps("tensors") + b"\xa0" + cbor2.dumps("x") + b"\x81" * (depth - 2) + b"\x80"


def malformed() -> dict[str, bytes]:
    """name -> bytes that every reader must refuse."""
    good = one("F32", [2, 3], FLOATS)
    text = cbor2.dumps
    empty: dict[str, Any] = {"tensors": {}}

    def descriptor(**changes: Any) -> bytes:
        entry = tensor("F32", [2, 3], 0, 24)
        entry.update(changes)
        return pack({"tensors": {"t": {k: v for k, v in entry.items() if v is not ...}}}, FLOATS)

    def narrow(value: str, *, name: str = "t", dtype: Any = "U8") -> bytes:
        contents = {"tensors": {"t": tensor(dtype, [2], 0, 2)}, "metadata": {"emberlet.dtype." + name: value}}
        return pack(contents, b"\1\2")

    return {
        "empty": b"",
        "shorter_than_header": good[:9],
        "header_only": good[:10],
        "truncated_in_metadata": good[:40],
        "truncated_in_padding": good[:255],
        "truncated_in_data": good[:-1],
        "magic": pack(empty, magic=0x4255524D),
        "magic_big_endian": struct.pack(">I", 0x4255524E) + good[4:],
        "version_2": pack(empty, version=2),
        "version_0": pack(empty, version=0),
        "length_past_end": pack(empty, length=1 << 20),
        "length_past_limit": pack(empty, length=0xFFFFFFFF),
        "length_too_short": pack(empty, length=len(text(empty)) - 1),
        "length_too_long": pack(empty, length=len(text(empty)) + 1),
        "length_zero": pack(empty, length=0),
        "too_deep": pack(nested(129)),
        "far_too_deep": pack(nested(100000)),
        "cbor_array": pack([1, 2]),
        "cbor_number": pack(3),
        "cbor_reserved": pack(b"\x1c"),
        "cbor_simple": pack(b"\xa1" + text("tensors") + b"\xf0"),
        "cbor_break": pack(b"\xff"),
        "cbor_break_in_definite": pack(b"\xa1" + text("tensors") + b"\xff"),
        "cbor_break_after_key": pack(b"\xbf" + text("tensors") + b"\xff"),
        "cbor_unclosed_map": pack(b"\xbf" + text("tensors") + b"\xa0"),
        "cbor_huge_map": pack(b"\xbb" + b"\xff" * 8),
        "cbor_huge_array": pack(b"\xa1" + text("tensors") + b"\x9b" + b"\x7f" * 8),
        "cbor_huge_text": pack(b"\xa1\x7b" + b"\xff" * 8 + b"tensors\xa0"),
        "cbor_text_not_utf8": pack(b"\xa1\x62\xc3\x28\xa0"),
        "cbor_text_surrogate": pack(b"\xa1\x63\xed\xa0\x80\xa0"),
        "cbor_text_overlong": pack(b"\xa1\x62\xc1\x81\xa0"),
        "cbor_text_too_large": pack(b"\xa1\x64\xf5\x80\x80\x80\xa0"),
        "cbor_chunk_of_another_kind": pack(b"\xa1\x7f\x41a\xff\xa0"),
        "cbor_chunk_unclosed": pack(b"\xa1\x7f\x61a"),
        "cbor_chunk_too_long": pack(b"\xa1\x7f\x7b" + b"\xff" * 8),
        "cbor_key_number": pack(b"\xa1\x01\xa0"),
        "cbor_key_map": pack(b"\xa1\xa0\xa0"),
        "cbor_key_twice": pack(b"\xa2" + (text("tensors") + b"\xa0") * 2),
        "name_twice": pack(
            b"\xa1" + text("tensors") + b"\xa2" + (text("t") + text(tensor("F32", [], 0, 4))) * 2, FLOATS
        ),
        "cbor_two_values": pack(text(empty) + b"\xf6"),
        "no_tensors": pack({}),
        "tensors_array": pack({"tensors": []}),
        "descriptor_array": pack({"tensors": {"t": [1]}}),
        "no_dtype": descriptor(dtype=...),
        "no_shape": descriptor(shape=...),
        "no_offsets": descriptor(data_offsets=...),
        "dtype_unknown": descriptor(dtype="F33"),
        "dtype_number": descriptor(dtype=7),
        "dtype_map": descriptor(dtype={"F32": None}),
        "dtype_bool_variant": descriptor(dtype={"Bool": "U16"}),
        "dtype_two_keys": descriptor(dtype={"Bool": "U8", "QFloat": {}}),
        "shape_text": descriptor(shape="2x3"),
        "shape_negative": descriptor(shape=[-2, -3]),
        "shape_float": descriptor(shape=[2.0, 3.0]),
        "shape_nan": descriptor(shape=[float("nan"), 3]),
        "shape_bool": descriptor(shape=[True, 6]),
        "shape_product": descriptor(shape=[2, 4]),
        "shape_overflow": descriptor(shape=[1 << 63, 4, 0]),
        "shape_65_bits": descriptor(shape=[1 << 64, 0]),
        "shape_rank": descriptor(shape=[1] * 65 + [6]),
        "offsets_backwards": descriptor(data_offsets=[24, 0]),
        "offsets_three": descriptor(data_offsets=[0, 12, 24]),
        "offsets_negative": descriptor(data_offsets=[-24, 0]),
        "offsets_float": descriptor(data_offsets=[0.0, 24.0]),
        "offsets_past_end": descriptor(data_offsets=[8, 32]),
        "offsets_far_past_end": descriptor(data_offsets=[(1 << 64) - 25, (1 << 64) - 1]),
        "offsets_empty_past_end": descriptor(shape=[0], data_offsets=[4096, 4096]),
        "tensor_too_large": descriptor(shape=[3 << 30], data_offsets=[0, 12 << 30]),
        "param_id_negative": descriptor(param_id=-1),
        "param_id_text": descriptor(param_id="1"),
        "bool_u32_length": one({"Bool": "U32"}, [4], bytes(4)),
        "metadata_array": pack({"tensors": {}, "metadata": []}),
        "metadata_number": pack({"tensors": {}, "metadata": {"a": 1}}),
        "scalars_plain": pack({"tensors": {}, "scalars": {"a": 1}}),
        "scalars_kind": pack({"tensors": {}, "scalars": {"a": {"Text": "x"}}}),
        "scalars_two": pack({"tensors": {}, "scalars": {"a": {"Int": 1, "UInt": 1}}}),
        "scalars_int_is_float": pack({"tensors": {}, "scalars": {"a": {"Int": 1.0}}}),
        "scalars_int_is_bool": pack({"tensors": {}, "scalars": {"a": {"Int": True}}}),
        "scalars_int_too_large": pack({"tensors": {}, "scalars": {"a": {"Int": 1 << 63}}}),
        "scalars_uint_negative": pack({"tensors": {}, "scalars": {"a": {"UInt": -1}}}),
        "scalars_float_is_int": pack({"tensors": {}, "scalars": {"a": {"Float": 1}}}),
        "scalars_bool_is_int": pack({"tensors": {}, "scalars": {"a": {"Bool": 1}}}),
        "narrow_without_tensor": narrow("int4 3", name="other"),
        "narrow_of_f32": narrow("int4 3", dtype="I8"),
        "narrow_dtype": narrow("int3 3"),
        "narrow_wide_dtype": narrow("float32 3"),
        "narrow_string": narrow("string 3"),
        "narrow_shape": narrow("int4 x"),
        "narrow_negative": narrow("int4 -3"),
        "narrow_long": narrow("int4 " + "9" * 5000),
        "narrow_length": narrow("int4 5"),
    }


def unreadable() -> dict[str, bytes]:
    """name -> bytes of a file that opens and whose quantized tensor "t" is refused when asked for."""

    def scheme(**changes: Any) -> bytes:
        found = {"value": "Q8S", "param": "F32", "store": "Native", "level": "Tensor", "mode": "Symmetric"}
        found.update(changes)
        return one({"QFloat": found}, [4], bytes(8))

    return {
        "quantized_value": scheme(value="Q9S"),
        "quantized_param": scheme(param="F31"),
        "quantized_store": scheme(store="Loose"),
        "quantized_store_axis": scheme(store={"PackedU32": 1}),
        "quantized_native_4_bit_float": scheme(value="E2M1"),
        "quantized_level": scheme(level="Row"),
        "quantized_mode": scheme(mode="Codebook"),
        "quantized_block": scheme(level={"Block": {"storage": [2, 1], "len": 3}}),
        "quantized_block_number": scheme(level={"Block": [300]}),
        "quantized_scales_missing": scheme(level={"Block": [2]}),
        "quantized_not_a_map": one({"QFloat": "Q8S"}, [4], bytes(8)),
        "quantized_too_long": one(
            {"QFloat": {"value": "Q8S", "store": "Native", "tensor": "F32", "block": None}}, [4], bytes(12)
        ),
    }


def allowed() -> dict[str, bytes]:
    """name -> bytes, unusual and valid, in which the tensor "t" is FLOATS in the shape (2, 3)."""
    entry = tensor("F32", [2, 3], 0, 24)
    text = cbor2.dumps
    long_form = b"\xbb" + (1).to_bytes(8, "big") + b"\x78\x07tensors\xb9\x00\x01\x79\x00\x01t" + text(entry)
    indefinite = (
        b"\xbf" + text("tensors") + b"\xbf\x7f\x60\x61t\xff"
        + b"\xbf" + text("dtype") + b"\x7f\x61F\x6232\xff"
        + text("shape") + b"\x9f\x02\x1b" + (3).to_bytes(8, "big") + b"\xff"
        + text("data_offsets") + b"\x82\x18\x00\x18\x18" + b"\xff" * 3
    )  # fmt: skip
    behind = {"t": tensor("F32", [2, 3], 256, 280), "a": tensor("U8", [1], 0, 1)}
    return {
        "plain": pack({"tensors": {"t": entry}}, FLOATS),
        "long_form_lengths": pack(long_form, FLOATS),
        "indefinite_lengths": pack(indefinite, FLOATS),
        "tagged": pack(b"\xd9\xd9\xf7" + text({"tensors": {"t": entry}}), FLOATS),
        "unknown_keys": pack({"later": [1.5, None, b"x"], "tensors": {"t": {**entry, "more": {}}}}, FLOATS),
        "null_maps": pack({"tensors": {"t": entry}, "metadata": None, "scalars": None}, FLOATS),
        "empty_maps": pack({"tensors": {"t": entry}, "metadata": {}, "scalars": {}}, FLOATS),
        "bytes_follow": pack({"tensors": {"t": entry}}, FLOATS + b"more"),
        "flex32": pack({"tensors": {"t": {**entry, "dtype": "Flex32"}}}, FLOATS),
        "unaligned": pack({"tensors": {"t": tensor("F32", [2, 3], 1, 25)}}, b"?" + FLOATS),
        "shared": pack({"tensors": {"t": entry, "s": entry}}, FLOATS),
        "any_order": pack({"tensors": behind}, b"a" * 256 + FLOATS),
        "deep": pack(b"\xa2" + text("tensors") + text({"t": entry}) + text("x") + b"\x81" * 126 + b"\x80", FLOATS),
    }
