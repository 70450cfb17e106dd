"""The header of GGUF by its specification: properties of every type, nested arrays, tensors, and what is refused."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest
from emberlet import store
from emberlet.errors import FormatError
from support.rows import every

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
ENDS = {
    "B": (0, 255), "b": (-128, 127), "H": (0, 65535), "h": (-32768, 32767), "I": (0, 2**32 - 1),
    "i": (-(2**31), 2**31 - 1),
    "f": (0.5, -1.5), "?": (False, True), "Q": (0, 2**64 - 1), "q": (-(2**63), 2**63 - 1), "d": (0.1, -1e300),
}  # fmt: skip


def text(words: str) -> bytes:
    return struct.pack("<Q", len(words.encode())) + words.encode()


def file(properties: dict[str, bytes], tensors: Any = (), version: int = 3, data: bytes = b"") -> bytes:
    """properties: name -> its type and value, as bytes; tensors: (name, shape in GGUF's order, type, offset)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(properties))
    head += b"".join(text(name) + value for name, value in properties.items())
    for name, shape, kind, offset in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
    return head + bytes(-len(head) % 32) + data


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_every_type(kind: int) -> None:
    code = NUMBERS[kind]
    for value in ENDS[code]:
        opened = store.open(file({"n": struct.pack(f"<I{code}", kind, value)}))
        assert opened.scalars == {"n": value}
        assert type(opened.scalars["n"]) is type(value)
    many = [ENDS[code][i % 2] for i in range(5)]
    opened = store.open(file({"a": struct.pack(f"<IIQ5{code}", 9, kind, 5, *many)}))
    assert opened.extras == {"a": many}
    assert (opened.scalars, opened.metadata) == ({}, {})


def drawn(rng: random.Random, depth: int) -> tuple[int, bytes, Any]:
    """(type, its bytes, the value)"""
    kind = rng.choice([4, 8] if depth == 0 else [4, 8, 9])
    if kind == 4:
        value: Any = rng.randrange(1000)
        return kind, struct.pack("<I", value), value
    if kind == 8:
        value = rng.choice(["", "é", "word"])
        return kind, text(value), value
    inner, _, _ = drawn(rng, depth - 1)
    parts = []
    while len(parts) < rng.randrange(4):
        one = drawn(rng, depth - 1)
        if one[0] == inner:
            parts.append(one)
    return kind, struct.pack("<IQ", inner, len(parts)) + b"".join(p[1] for p in parts), [p[2] for p in parts]


@every("seed", range(20), share=3)
def test_texts_and_arrays_of_arrays(seed: int) -> None:
    rng = random.Random(seed)
    held = {f"k{i}": drawn(rng, 3) for i in range(6)}
    opened = store.open(file({name: struct.pack("<I", kind) + data for name, (kind, data, _) in held.items()}))
    values = {name: value for name, (_, _, value) in held.items()}
    assert {**opened.metadata, **opened.scalars, **opened.extras} == values
    assert all(isinstance(v, str) for v in opened.metadata.values())
    assert all(isinstance(v, list) for v in opened.extras.values())


@pytest.mark.parametrize(("depth", "fits"), [(1, True), (4, True), (5, False)])
def test_arrays_nest_four_levels_deep(depth: int, fits: bool) -> None:
    value = struct.pack("<IQ", 9, 1) * (depth - 1) + struct.pack("<IQI", 4, 1, 7)
    data = file({"a": struct.pack("<I", 9) + value})
    if fits:
        want: Any = [7]
        for _ in range(depth - 1):
            want = [want]
        assert store.open(data).extras == {"a": want}
    else:
        with pytest.raises(FormatError, match="nested deeper than 4"):
            store.open(data)


def test_tensors_have_their_axes_reversed_and_lie_after_the_header() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(5, dtype=np.int8)
    data = a.tobytes() + bytes(8) + b.tobytes()
    for version in (2, 3):
        opened = store.open(file({}, [("a", (2, 3), 0, 0), ("b", (5,), 24, 32)], version, data))
        assert np.asarray(opened["a"]).tolist() == a.tolist()
        assert np.asarray(opened["b"]).tolist() == b.tolist()
    opened = store.open(file({}, [("s", (), 0, 0)], data=b"\0\0\x80?"))
    assert (opened["s"].shape, opened.tensor("s").tolist()) == ((), 1.0)
    opened = store.open(file({}, [("w", (1,) * 8, 0, 0)], data=bytes(4)))
    assert opened["w"].shape == (1,) * 8


@pytest.mark.parametrize("align", [1, 2, 8, 64, 4096, 1 << 20])
def test_the_tensors_begin_at_a_multiple_of_the_alignment(align: int) -> None:
    head = file({"general.alignment": struct.pack("<II", 4, align)}, [("w", (2,), 0, 0)])
    values = np.arange(2, dtype=np.float32)
    size = (4 + 20) + (8 + 17 + 4 + 4) + (8 + 1 + 4 + 8 + 4 + 8)  # of the header without its padding
    begin = (size + align - 1) // align * align
    opened = store.open(head[:size] + bytes(begin - size) + values.tobytes())
    assert np.asarray(opened["w"]).tolist() == [0, 1]


ONE = [("w", (2,), 0, 0)]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (file({}, ONE, data=bytes(7)), "tensor 'w': ends at byte"), (file({}, ONE, 1, bytes(8)), "GGUF version 1"),
        (file({}, ONE, 4, bytes(8)), "GGUF version 4"),
        (file({}, [*ONE, *ONE], data=bytes(8)), "two tensors are called 'w'"),
        (file({}, [("w", (1,) * 9, 0, 0)], data=bytes(4)), "tensor 'w' has 9 axes; at most 8"),
        (file({"a": struct.pack("<I", 13)}), "the unknown type 13"),
        (file({"a": struct.pack("<IIQQ", 9, 13, 1, 0)}), "unknown type 13"),
        (file({"general.alignment": struct.pack("<II", 4, 0)}), "its alignment is 0"),
        (file({"general.alignment": struct.pack("<II", 4, (1 << 20) + 1)}), "its alignment is 1048577"),
        (file({"general.alignment": struct.pack("<I", 8) + text("32")}), "its alignment is 32"),
        (file({"general.alignment": struct.pack("<I?", 7, True)}), "its alignment is True"),
        (file({}, [("w", (), 2, 0)], data=bytes(18)), "rows of 1 are no blocks of 32|rows of 1 "),
        (file({}, [("w", (33,), 2, 0)], data=bytes(36)), "rows of 33 "),
        (file({}, [("w", (32, 2), 2, 0)], data=bytes(35)), "ends at byte"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"\xff" + struct.pack("<II", 4, 1),
         "is not UTF-8"),
        (b"GGUX" + bytes(20), "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "at most 100000"),
        (file({"k": struct.pack("<IIQ", 9, 8, 1 << 50)}), "goes past its header"),
        (file({}, [("t", (1 << 40, 1 << 40), 0, 0)]), "overflows"),
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        store.open(data, format="gguf")


def test_every_cut_of_a_header_is_refused() -> None:
    data = file(
        {"a": struct.pack("<I", 8) + text("word"), "b": struct.pack("<IIQ2H", 9, 2, 2, 1, 2)}, ONE, data=bytes(8)
    )
    store.open(data)
    for end in range(4, len(data)):
        with pytest.raises(FormatError):
            store.open(data[:end], format="gguf")


def test_as_many_properties_as_the_limit_says() -> None:
    data = file({f"k{i}": struct.pack("<II", 4, i) for i in range(3)}, ONE, data=bytes(8))
    store.open(data, limits=store.Limits(tensors=3))
    with pytest.raises(FormatError, match="1 tensors and 3 values; at most 2"):
        store.open(data, limits=store.Limits(tensors=2))


def test_quantized_rows_are_blocks() -> None:
    raw = np.zeros((3, 2, 18), np.uint8)
    raw[..., :2] = np.float16([2]).view(np.uint8)
    raw[..., 2:] = 0x98  # the levels 8 and 9, of which 8 is zero
    opened = store.open(file({}, [("w", (64, 3), 2, 0)], data=raw.tobytes()))
    assert opened["w"].shape == (3, 64)
    found = np.asarray(opened["w"])
    assert found[:, :16].tolist() == [[0.0] * 16] * 3
    assert found[:, 16:32].tolist() == [[2.0] * 16] * 3
    kept = store.open(file({}, [("w", (64, 3), 2, 0)], data=raw.tobytes()), blocks=True)["w"]
    assert (kept.shape, kept.stored, kept.nbytes) == ((3, 36), "Q4_0", 108)
    assert opened["w"].nbytes == 108
