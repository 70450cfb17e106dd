"""Changes of bytes, for inputs that no coverage guides."""

from __future__ import annotations

import random
from collections.abc import Sequence

TELLING = (0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1 << 15, (1 << 16) - 1, (1 << 31) - 1,
           1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip


def changed(data: bytes, others: Sequence[bytes], largest: int, r: random.Random) -> bytes:
    """The bytes with one to four changes, never as they were. others: inputs from which parts are taken."""
    found = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 2, 3, 4))):
        r.choice(_CHANGES)(found, others, r)
    if len(found) > largest:
        del found[largest:]
    if found == data:
        _flip(found, others, r)
    return bytes(found)


def _flip(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    if data:
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
    else:
        data.append(r.randrange(256))


def _byte(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    if data:
        data[r.randrange(len(data))] = r.randrange(256)


def _number(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    """A number of 1 to 8 bytes becomes one that is often an edge, or a little more or less."""
    size = r.choice((1, 2, 4, 8))
    if len(data) < size:
        return
    at, order = r.randrange(len(data) - size + 1), r.choice(("little", "little", "big"))
    old = int.from_bytes(data[at : at + size], order)  # type: ignore[arg-type]
    new = r.choice(TELLING) if r.random() < 0.5 else old + r.randrange(-9, 10)
    data[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, order)  # type: ignore[arg-type]


def _digits(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    """A number in decimal digits becomes another."""
    places = [i for i in range(len(data)) if 48 <= data[i] < 58] if len(data) <= 4096 else []
    if places:
        at = r.choice(places)
        data[at : at + 1] = str(r.choice(TELLING)).encode() if r.random() < 0.5 else b"%d" % r.randrange(10)


def _remove(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    at, size = _range(data, r)
    del data[at : at + size]


def _insert(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    at = r.randrange(len(data) + 1)
    data[at:at] = r.randbytes(r.randrange(1, 9))


def _repeat(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    at, size = _range(data, r)
    data[at:at] = data[at : at + size] * r.choice((1, 1, 2, 7))


def _move(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    """A part is copied over another."""
    at, size = _range(data, r)
    to = r.randrange(len(data) + 1)
    data[to : to + size] = data[at : at + size]


def _take(data: bytearray, others: Sequence[bytes], r: random.Random) -> None:
    """A part of another input takes the place of one, or is put before it."""
    other = r.choice(others)
    at, size = _range(other, r)
    to, rest = _range(data, r)
    data[to : to + (rest if r.random() < 0.7 else 0)] = other[at : at + size]


def _range(data: bytes | bytearray, r: random.Random) -> tuple[int, int]:
    """(where a part begins, its size); mostly a short one."""
    if not data:
        return 0, 0
    at = r.randrange(len(data))
    return at, r.randrange(1, min(len(data) - at, r.choice((4, 16, 64, 4096))) + 1)


_CHANGES = (_flip, _byte, _byte, _number, _number, _digits, _remove, _insert, _repeat, _move, _take)
