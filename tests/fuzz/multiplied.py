"""Files that repeat and share: a recipe of a few bytes becomes a file of up to a hundred kilobytes.

A recipe is RECIPE, a kind and numbers. Kind 0 repeats a piece of the bytes behind it; kind 1 gives the numbers to a
function that builds a file in which a part occurs thousands of times, names the same bytes again, or is nested. So an
input that fails is a small file too, and the fuzzer varies the numbers.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Iterator

RECIPE = b"\xfe\xed"
LARGEST = 1 << 17  # bytes of a file


class Numbers:
    """The numbers of a recipe; zeros follow the last."""

    def __init__(self, data: bytes) -> None:
        self._data: Iterator[int] = iter(data)

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return next(self._data, 0) % n

    def count(self, most: int = 1 << 15) -> int:
        """How often something occurs: often a power of two."""
        return min(most, 1 << self.below(16)) - self.below(2)


Build = Callable[[Numbers], bytes]


def is_recipe(data: bytes) -> bool:
    return data[:2] == RECIPE


def recipe(data: bytes, r: random.Random, can_build: bool) -> bytes:
    """A recipe, for a file like this one or for a built one."""
    if can_build and (r.random() < 0.5 or len(data) < 8):
        return RECIPE + b"\1" + r.randbytes(r.randrange(1, 24))
    head = struct.pack("<HBB", r.randrange(max(1, len(data))), r.randrange(1, 64), r.randrange(17))
    return RECIPE + b"\0" + head + data


def made(data: bytes, build: Build | None) -> bytes:
    """The file that a recipe makes; any other input as it is."""
    if not is_recipe(data):
        return data
    if data[2:3] == b"\1" and build is not None:
        return build(Numbers(data[3:]))[:LARGEST]
    if len(data) < 8:
        return data
    at, size, power = struct.unpack("<HBB", data[3:7])
    data = data[7:]
    piece = data[at : at + size]
    return data[:at] + piece * min(1 << power % 17, LARGEST // max(1, size)) + data[at + size :]


# -- protobuf ----------------------------------------------------------------------------------------------------------


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def times(data: bytes, n: Numbers) -> bytes:
    return data * min(n.count(), LARGEST // max(1, len(data)))


def onnx(n: Numbers) -> bytes:
    """A model one of whose lists repeats an empty or a small message."""
    name = b"\x0a\x01x" if n.below(2) else b""
    tensor = b"\x10\x01\x08" + bytes([n.below(4)]) + field(8, b"w") + (b"\x70\x01" + external(n) if n.below(2) else b"")
    value = field(1, b"x") + field(2, field(1, b"\x08\x01" + field(2, times(field(1, b"\x08\x02"), n))))
    attribute = field(1, b"a") + bytes((0xA0, 1, n.below(15))) + times(field(5 + n.below(11), tensor * n.below(2)), n)
    node = field(4, (b"Add", b"Identity", b"Concat", b"If", b"Loop", b"f")[n.below(6)]) + times(field(1, b"x"), n)
    node += field(2, b"y") + times(field(5, attribute if n.below(2) else b""), n)
    parts = [b"", node, name, tensor, value, field(3, b"a\0b")]
    graph = b"".join(times(field(k, parts[n.below(6)]), n) for k in (1, 1, 5, 11, 12, 13, 15)[: 1 + n.below(7)])
    function = field(1, b"f") + times(field(7, field(4, b"f") + field(2, b"y")), n) + field(10, b"d")
    return b"\x08\x0a" + field(8, b"\x10\x15") + field(7, graph) + times(field(25, function * n.below(2)), n)


def external(n: Numbers) -> bytes:
    """Where the data of a tensor lie."""
    entry = field(1, b"location") + field(2, b"x")
    return field(13, entry) + times(field(13, field(1, b"offset") + field(2, b"0")), n)


# -- other formats -----------------------------------------------------------------------------------------------------


def weights(formats: list[str]) -> Build:
    """Builds weight files, each behind the number of its format."""

    def build(n: Numbers) -> bytes:
        kind = ("gguf", "safetensors", "npz", "pytorch", "record", "onnx")[n.below(6)]
        return bytes([formats.index(kind)]) + globals()["_" + kind](n)

    return build


def _gguf(n: Numbers) -> bytes:
    def text(words: bytes) -> bytes:
        return struct.pack("<Q", len(words)) + words

    count, pairs, size = n.count(4096), n.count(512), n.count(1 << 14)
    array = struct.pack("<IIQ", 9, n.below(13), n.count()) + bytes(n.count(4096))
    head = b"GGUF" + struct.pack("<IQQ", 3, count, pairs)
    head += b"".join(text(b"k%d" % i) + (array if n.below(2) else struct.pack("<II", 4, 0)) for i in range(pairs))
    head += b"".join(text(b"t%d" % i) + struct.pack("<IQIQ", 1, size, 24, 0) for i in range(count))
    return head + bytes(-len(head) % 32) + bytes(size)


def _safetensors(n: Numbers) -> bytes:
    shape = [n.below(3)] * n.below(70)
    entries = {f"t{i}": {"dtype": "U8", "shape": shape, "data_offsets": [0, 0]} for i in range(n.count(1024))}
    text = json.dumps(entries).encode() if n.below(2) else b'{"a":' * n.count() + b"[" * n.count()
    return struct.pack("<Q", len(text)) + text


def _npz(n: Numbers) -> bytes:
    head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }\n" % (size := n.count() * n.count(64))
    member = b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(size)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(n.count(64)):
            archive.writestr(f"{i}.npy", member)
    return file.getvalue()


def _pytorch(n: Numbers) -> bytes:
    """A pickle of lists in lists, or of one list that occurs again and again, twice in each of many levels."""
    if n.below(2):
        return b"\x80\x02" + b"]" * n.count() + b"a" * n.count() + b"."
    levels = b"".join(b"](h%ch%ce\x94" % (i, i) for i in range(n.below(200)))
    return b"\x80\x04]\x94" + levels + times(b"h\0", n) + b"."


def _record(n: Numbers) -> bytes:
    pack = (b"\x81\xa4item", b"\x91", b"\xdd" + struct.pack(">I", n.count()), b"\xdf\xff\xff\xff\xff")[n.below(4)]
    return times(pack, n) + times(b"\xc0", n)


def _onnx(n: Numbers) -> bytes:
    return onnx(n)


def plan(n: Numbers) -> bytes:
    """A saved plan whose lists are long, or nested; a training step of many values; or sizes of sizes."""
    kind = n.below(4)
    if kind < 2:
        return (_step, _sizes)[kind](n)
    parts = [["storage", 4], [0, [1, 1, 1], [0]], ["x", "float32", [1] * n.below(80), 0], [], {}, 1]
    found = {
        key: [parts[n.below(6)]] * n.count(4096) for key in ("inputs", "outputs", "buffers", "constants", "kernels")
    }
    return json.dumps({"version": 1 + n.below(12), **found, "steps": {"gpu": [parts[1]] * n.count(4096)}}).encode()


def _step(n: Numbers) -> bytes:
    """A plan with a training step of many values and counts, whose numbers are nested."""
    count, held = n.count(256), n.count(256)
    numbers: list[object] = ["lr"]
    for _ in range(n.below(64)):
        numbers = [["*", numbers[0], numbers[0] if n.below(8) == 7 else 2]]
    entry = {
        "version": 1, "draws": n.below(3), "parameters": [["w"] * (1 + n.below(9))] * count, "states": ["s"] * held,
        "carried": [[i, i] for i in range(n.count(512))], "numbers": numbers * n.count(64),
        "counts": [["t" if n.below(4) else "lr", 1, numbers[0], ["t"] * n.below(9)]] * n.count(64), "result": "tuple",
    }  # fmt: skip
    every = 1 + count + held
    ports = [["x", "float32", [1], 0 if n.below(9) == 8 else i] for i in range(every)]
    found = {"inputs": ports, "outputs": ports, "buffers": [["output", 256]] * every, "constants": [], "kernels": []}
    return json.dumps({"version": 2, **found, "steps": {"gpu": []}, "step": entry}).encode()


def _sizes(n: Numbers) -> bytes:
    """A plan with open sizes, each of which depends on the one before."""
    what, factor, times, twice, divisor = ("//", "max")[n.below(2)], n.below(64), n.below(9), n.below(2), n.below(64)
    count = n.count(2048)
    atoms: list[object] = [0]
    for i in range(count):
        atoms.append([what, [[factor, *[i] * times], *[[factor, i, 0]] * twice], divisor])
    last = [[1 + n.below(3), count]]
    found = {
        "sizes": {"symbols": [["n", 1, 16]], "atoms": atoms, "block": [last] * n.count(64), "guards": []},
        "inputs": [["x", "float32", [last, last], 0]] * n.below(3), "outputs": [], "buffers": [["external", last]],
        "constants": [], "kernels": [], "steps": {"gpu": []},
    }  # fmt: skip
    return json.dumps({"version": 4, **found}).encode()
