"""Opening a burnpack takes at most 40 times the memory of its metadata, plus 64 KB.

An empty map is one byte in the file and 64 bytes in memory, so the decoder counts what it makes and refuses the rest.
"""

import contextlib
import itertools
import random
import struct
import tracemalloc
from collections.abc import Iterator

import pytest
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
from support.burnpacks import pack, tensor

SIZE = 8000  # of a file's metadata, roughly: 40 times that outweighs the slack
SLACK = 65536 + 2000  # the decoder's, and the objects around it

ATOMS = """00 26 29 190100 3818 1a00010000 f4 f93c00 fa3f800000 60 6161 626162 62c480 63e282ac 64f09f9880
    40 4161 426162 7f6161ff 7f60ff 5fff""".split()
CONTAINERS = "80 a0 8180 8100 a16000 a162616226 9fff bfff".split()


def head(major: int, n: int) -> bytes:
    return bytes([major << 5 | n]) if n < 24 else bytes([major << 5 | 26]) + struct.pack(">I", n)


def text(found: str) -> bytes:
    return head(3, len(found.encode())) + found.encode()


def keys() -> Iterator[bytes]:
    """Distinct strings, beginning with the shortest that Python does not intern."""
    for n in (1, 2, 3):
        for letters in itertools.product(map(chr, [*range(256, 400), *range(32, 127)]), repeat=n):
            yield text("".join(letters))


def array(piece: bytes, count: int) -> bytes:
    return head(4, count) + piece * count


def keyed(piece: bytes, count: int) -> bytes:
    return head(5, count) + b"".join(k + piece for k in itertools.islice(keys(), count))


def drawn(r: random.Random, depth: int = 0) -> bytes:
    """A random CBOR value, made of kinds that take much memory."""
    if depth == 5 or r.random() < 0.3:
        return bytes.fromhex(r.choice(ATOMS))
    n = r.choice([0, 0, 1, 1, 1, 2, 5, 6, 11, 30])
    values = [drawn(r, depth + 1) for _ in range(n)]
    if r.random() < 0.5:
        return head(4, n) + b"".join(values)
    return head(5, n) + b"".join(k + v for k, v in zip(keys(), values, strict=False))


def files() -> dict[str, bytes]:
    """name -> metadata in which one costly value stands thousands of times: in an array, under keys, as a scalar."""
    r = random.Random(16)
    pieces = {p: bytes.fromhex(p) for p in (*CONTAINERS, *r.sample(ATOMS, 5), "26")}
    pieces.update({f"drawn {i}": drawn(r) for i in range(12)})
    found = {}
    for i, (name, piece) in enumerate(pieces.items()):
        if i % 3 == 2:
            found[f"keyed {name}"] = text("x") + keyed(piece, SIZE // (4 + len(piece)))
        else:
            found[f"array of {name}"] = text("x") + array(piece, SIZE // len(piece))
    found["texts"] = text("metadata") + keyed(text("ab"), SIZE // 7)
    found["scalars"] = text("scalars") + keyed(head(5, 1) + text("Int") + b"\x05", SIZE // 10)
    found["nested"] = text("x") + array(b"\x81" * 120 + b"\x80", SIZE // 121)
    shape = text("shape") + b"\x98\x40" + bytes(64)
    for name, axes in (("tensors", text("shape") + b"\x81\x00"), ("ranks", shape)):
        entry = head(5, 3) + axes + text("dtype") + text("U8") + text("data_offsets") + b"\x82\x00\x00"
        found[name] = keyed(entry, SIZE // len(entry))
    return {
        name: b"\xa1" + text("tensors") + x if name in ("tensors", "ranks") else b"\xa2" + text("tensors") + b"\xa0" + x
        for name, x in found.items()
    }


FILES = files()


def peak(contents: bytes) -> int:
    """The most bytes that opening takes."""
    data = pack(contents)
    tracemalloc.start()
    try:
        with contextlib.suppress(FormatError):
            Burnpack.from_bytes(data)
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most


def test_metadata_takes_at_most_40_times_its_bytes():
    for contents in FILES.values():  # loads what is imported only then
        with contextlib.suppress(FormatError):
            Burnpack.from_bytes(pack(contents))
    worst = {name: (peak(contents) - SLACK) / len(contents) for name, contents in FILES.items()}
    assert max(worst.values()) <= 40, sorted(worst.items(), key=lambda item: -item[1])[:5]


SCRIPT = """
import gc, sys
from emberlet.burnpack import Burnpack
from emberlet.errors import FormatError
gc.threshold(8192)  # or what is thrown away spreads the rest over the whole heap
for name in sys.argv[2:]:
    try:
        Burnpack.from_file(sys.argv[1] + "/" + name)
    except FormatError as error:
        str(error)
"""


def test_on_micropython_a_heap_of_40_times_the_metadata_is_enough(micropython_port, tmp_path):
    names = []
    for i, contents in enumerate(FILES.values()):
        (tmp_path / str(i)).write_bytes(pack(contents))
        names.append(str(i))
    largest = max((tmp_path / name).stat().st_size for name in names)
    heap = 40 * largest + 65536 + 300_000  # and the library itself, compiled from source
    micropython_port.run(SCRIPT, [tmp_path, *names], heap=f"{heap // 1024}K", files=[tmp_path]).check()


def test_hundreds_of_tensors_and_scalars_with_short_names_are_within_the_limit():
    names = [a + b for a, b in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=2)]
    tensors = {n: tensor("U8", [], 0, 1) for n in names}
    found = Burnpack.from_bytes(pack({"tensors": tensors, "scalars": {n: {"Int": 5} for n in names}}, b"x"))
    assert len(found.tensors) == len(found.scalars) == 676


def test_the_refusal_says_so():
    with pytest.raises(FormatError, match=r"byte \d+: .*more than 40 times their bytes in memory"):
        Burnpack.from_bytes(pack(b"\xa2" + text("tensors") + b"\xa0" + text("x") + array(b"\xa0", 20_000)))
