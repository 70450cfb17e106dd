"""Protobuf's wire format, read into messages. https://protobuf.dev/programming-guides/encoding/

The rules are those of the protobuf library: unknown fields, and fields of another wire type than declared, are skipped;
if a field occurs twice, the last value wins, messages are merged and lists are extended; an unknown number of an
enumeration counts as unset; a text that is not UTF-8 stays bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from typing import Any, TypeVar

from .message import Field, Message, fields

M = TypeVar("M", bound=Message)
MAX_DEPTH = 100  # the depth of nested messages, the same as the protobuf library's limit
VARINT, FIXED64, BYTES, GROUP, END, FIXED32 = range(6)
SHORT = 5  # the most bytes of a field's number or length
SMALL = 64  # bytes: below it a copy costs less than a view
LEAST = 8  # bytes of a file for each message in it, beyond the first FREE
FREE = 1 << 16


class DecodeError(ValueError):
    """The bytes are not a protobuf message."""


class TooMany(DecodeError):
    """They hold more messages than a model does."""


def parse(kind: type[M], data: bytes) -> M:
    """Parse `data` as a message of a class. Its large byte fields are views of `data`. Raises DecodeError."""
    message = kind()
    try:
        _message(message, memoryview(data), data, 0, len(data), MAX_DEPTH, Allowance(data))
    except IndexError:
        raise DecodeError("it ends in the middle of a field") from None
    return message


class Allowance:
    """How many messages a file may still hold. An empty one takes two bytes there and some hundred in memory; those of
    models take seven or more on average, dozens in all but the smallest."""

    def __init__(self, data: bytes) -> None:
        self.most = self.left = FREE + len(data) // LEAST

    def take(self) -> None:
        """Raise TooMany if none is left."""
        self.left -= 1
        if self.left < 0:
            raise TooMany(f"it holds more than {self.most} messages, one for every {LEAST} bytes and {FREE} more")


def check(kind: type[Message], data: bytes) -> None:
    """Raise TooMany if `data` holds more messages than `parse` takes, before another reader makes objects of them.
    Bytes that are no message are left to that reader."""
    try:
        _count(kind, data, 0, len(data), MAX_DEPTH, Allowance(data))
    except TooMany:
        raise
    except DecodeError:
        return


def _count(kind: type[Message], data: bytes, at: int, end: int, depth: int, allowance: Allowance) -> None:
    allowance.take()
    known = _readers(kind)
    while at < end and depth >= 0:
        tag, at = _varint(data, at, end, SHORT)
        found = known.get(tag)
        if found is None or found[0].kind != "message":
            at = _skipped(data, at, end, tag, depth)
            continue
        size, at = _varint(data, at, end, SHORT)
        assert found[0].of is not None
        _count(found[0].of, data, at, min(at + size, end), depth - 1, allowance)
        at += size


def _message(  # noqa: C901
    message: Message, view: memoryview, data: bytes, at: int, end: int, depth: int, allowance: Allowance
) -> None:
    """Read the fields between two offsets into `message`."""
    if depth < 0:
        raise DecodeError(f"messages nest deeper than {MAX_DEPTH}")
    allowance.take()
    known = _readers(type(message))
    held = message.__dict__
    while at < end:
        tag = data[at]
        at += 1
        if tag > 127:
            tag, at = _varint(data, at - 1, end, SHORT)
            if tag >> 32:
                raise DecodeError("a field's number is too large")
        found = known.get(tag)
        if found is None:
            if not tag >> 3:
                raise DecodeError("a field has the number 0")
            at = _skipped(data, at, end, tag, depth)
            continue
        field, wire, read = found
        if wire == BYTES:
            size = data[at]
            at += 1
            if size > 127:
                size, at = _varint(data, at - 1, end, SHORT)
            stop = at + size
            if stop > end:
                raise DecodeError("a field extends beyond its message")
            if field.kind == "message":
                assert field.of is not None
                if field.repeated:
                    inner = field.of()
                    held.setdefault(field.name, []).append(inner)
                else:
                    inner = held.get(field.name)
                    if inner is None:
                        inner = _chosen(message, field.name, field.of())
                _message(inner, view, data, at, stop, depth - 1, allowance)
            elif field.repeated:
                into = held.setdefault(field.name, [])
                if read in (_text, _bytes):
                    into.append(read(view, at, stop))
                else:  # packed
                    held[field.name] = _joined(into, read(view, at, stop))
            else:
                _chosen(message, field.name, read(view, at, stop))
            at = stop
            continue
        if wire == VARINT:
            value, at = _varint(data, at, end)
            value = read(value)
            if value is None:  # a number that the enumeration does not have
                continue
        else:
            stop = at + (4 if wire == FIXED32 else 8)
            if stop > end:
                raise DecodeError("it ends in the middle of a number")
            value = read(view, at, stop)[0]
            at = stop
        if field.repeated:
            held.setdefault(field.name, []).append(value)
        else:
            _chosen(message, field.name, value)
    if at != end:
        raise DecodeError("a field extends beyond its message")


def _chosen(message: Message, name: str, value: Any) -> Any:
    """Set a field; of mutually exclusive fields the last one wins."""
    if name in message.ONEOF:
        for other in message.ONEOF:
            message.__dict__.pop(other, None)
    message.__dict__[name] = value
    return value


def _joined(into: Any, found: Any) -> Any:
    if not into:
        return found
    if not isinstance(into, list):
        into = into.tolist()
    into.extend(found)
    return into


def _varint(data: bytes, at: int, end: int, longest: int = 10) -> tuple[int, int]:
    """(an unsigned number, truncated to 64 bits; the offset behind it). longest: the most bytes it may have."""
    value = shift = 0
    for _ in range(longest):
        if at >= end:
            raise DecodeError("it ends in the middle of a number")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise DecodeError(f"a number takes more than {longest} bytes")


def _skipped(data: bytes, at: int, end: int, tag: int, depth: int) -> int:
    """The offset behind a field to be skipped."""
    number, wire = tag >> 3, tag & 7
    if wire == VARINT:
        return _varint(data, at, end)[1]
    if wire == BYTES:
        size, at = _varint(data, at, end, SHORT)
        at += size
    elif wire in (FIXED32, FIXED64):
        at += 4 if wire == FIXED32 else 8
    elif wire == GROUP:
        while True:
            inner, at = _varint(data, at, end, SHORT)
            if inner == (number << 3 | END):
                return at
            if depth < 1:
                raise DecodeError(f"groups nest deeper than {MAX_DEPTH}")
            at = _skipped(data, at, end, inner, depth - 1)
    else:
        raise DecodeError(
            f"a field has the unknown wire type {wire}" if wire != END else "a group ends without a start"
        )
    if at > end:
        raise DecodeError("a field extends beyond its message")
    return at


# -- values ------------------------------------------------------------------------------------------------------------


def _text(view: memoryview, at: int, stop: int) -> Any:
    data = bytes(view[at:stop])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _bytes(view: memoryview, at: int, stop: int) -> bytes:
    return bytes(view[at:stop])


def _view(view: memoryview, at: int, stop: int) -> Any:
    return view[at:stop] if stop - at > SMALL else bytes(view[at:stop])


def _numbers(code: str) -> Callable[[memoryview, int, int], Any]:
    def read(view: memoryview, at: int, stop: int) -> Any:
        numbers = array(code)
        if (stop - at) % numbers.itemsize:
            raise DecodeError("a list of numbers ends in the middle of one")
        numbers.frombytes(view[at:stop])
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers

    return read


def _packed(convert: Callable[[int], Any]) -> Callable[[memoryview, int, int], list[Any]]:
    def read(view: memoryview, at: int, stop: int) -> list[Any]:
        data = bytes(view[at:stop])
        out, at, stop = [], 0, len(data)
        while at < stop:
            byte = data[at]
            if byte < 128:
                at += 1
            else:
                byte, at = _varint(data, at, stop)
            value = convert(byte)
            if value is not None:
                out.append(value)
        return out

    return read


def _int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _uint64(value: int) -> int:
    return value


def _member(of: type[Any]) -> Callable[[int], Any]:
    def convert(value: int) -> Any:
        number = _int32(value)
        return of(number) if number in of._value2member_map_ else None

    return convert


Readers = dict[int, tuple[Field, int, Callable[..., Any]]]
_READERS: dict[type[Any], Readers] = {}


def _readers(kind: type[Message]) -> Readers:
    """{tag (a field's number and wire type): the function that reads it}, for all tags of a message."""
    if kind in _READERS:
        return _READERS[kind]
    out: Readers = {}
    scalars: dict[str, Callable[[int], Any]] = {"int64": _int64, "int32": _int32, "uint64": _uint64}
    for f in fields(kind):
        if f.kind in ("float", "double"):
            wire, code = (FIXED32, "f") if f.kind == "float" else (FIXED64, "d")
            out[f.number << 3 | wire] = (f, wire, _numbers(code))
            if f.repeated:
                out[f.number << 3 | BYTES] = (f, BYTES, _numbers(code))
        elif f.kind in scalars or f.kind == "enum":
            convert = scalars[f.kind] if f.of is None else _member(f.of)
            out[f.number << 3 | VARINT] = (f, VARINT, convert)
            if f.repeated:
                out[f.number << 3 | BYTES] = (f, BYTES, _packed(convert))
        else:
            read = {"string": _text, "bytes": _bytes, "view": _view}.get(f.kind, _bytes)
            out[f.number << 3 | BYTES] = (f, BYTES, read)
    _READERS[kind] = out  # complete only now, as other threads may read it
    return out
