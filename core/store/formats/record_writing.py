"""Writing records as Burn's named recorders do: MessagePack or JSON; records.py reads them.

https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

import json
import struct
from typing import Any

from ...errors import DTypeError, FormatError
from ...param.identity import ParamId
from ..stored import Store
from .records import leaves

# precision -> what Burn writes of its settings: name, float and int
SETTINGS = {
    "double": ("DoublePrecisionSettings", "f64", "i64"),
    "full": ("FullPrecisionSettings", "f32", "i32"),
    "half": ("HalfPrecisionSettings", "half::binary16::f16", "i16"),
}
VERSION = "0.18.0"


def tree(store: Store, precision: str, recorder: str) -> dict[str, Any]:
    """The file as dicts, lists, numbers, texts and bytes. Raises DTypeError for a tensor of a dtype that Burn lacks,
    FormatError for names that would not be read again."""
    settings, floats, ints = SETTINGS[precision]
    metadata = {
        "float": floats, "int": ints, "format": f"burn_core::record::file::{recorder}<burn_core::record::settings::"
        f"{settings}>", "version": VERSION, "settings": settings,
    }  # fmt: skip
    item: dict[str, Any] = {}
    for name, s in store.precision(precision).items():
        if s.dtype.burn is None:
            raise DTypeError(f"{name}: Burn's records hold no {s.dtype}; write a burnpack or safetensors")
        *path, last = name.split(".")
        level = item
        for part in path:
            level = level.setdefault(part, {})
        data = s.tensor().to_data()
        held = {"bytes": bytes(data.bytes), "shape": list(s.shape), "dtype": s.dtype.burn}
        level[last] = held if s.param_id is None else {"id": str(ParamId(s.param_id)), "param": held}
    lost = set(store) - {name for name, value in leaves(item, "the record", 0) if isinstance(value, dict)}
    if lost:
        raise FormatError(
            f"a record has no place for {', '.join(map(repr, sorted(lost)[:5]))}: no name may begin with another's and "
            "a dot, and parts called bytes, shape and dtype are taken for a tensor; rename them"
        )
    return {"metadata": metadata, "item": _lists(item)}


def _lists(value: Any) -> Any:
    """`value`, in which the parts 0, 1, … of a list are one."""
    if not isinstance(value, dict):
        return value
    parts = {key: _lists(child) for key, child in value.items()}
    if parts and set(parts) == {str(i) for i in range(len(parts))}:
        return [parts[str(i)] for i in range(len(parts))]
    return parts


def as_json(value: Any, indent: int | None = None) -> bytes:
    """JSON, in which bytes are lists of numbers."""
    return json.dumps(value, default=list, indent=indent).encode()


def as_message_pack(value: Any) -> bytes:
    """MessagePack of dicts, lists, texts, bytes and unsigned integers."""
    out = bytearray()
    _pack(value, out)
    return bytes(out)


# kind -> (the largest count in one byte and that byte, then the bytes before counts of 1, 2, 4 and 8 bytes)
_COUNTS = {
    int: (127, 0x00, (0xCC, 0xCD, 0xCE, 0xCF)),
    str: (31, 0xA0, (0xD9, 0xDA, 0xDB)),
    bytes: (-1, 0x00, (0xC4, 0xC5, 0xC6)),
    list: (15, 0x90, (None, 0xDC, 0xDD)),
    dict: (15, 0x80, (None, 0xDE, 0xDF)),
}


def _pack(value: Any, out: bytearray) -> None:
    kind = type(value)
    body = value.encode() if kind is str else value
    _count(kind, value if kind is int else len(body), out)
    if kind in (str, bytes):
        out += body
    elif kind is list:
        for child in value:
            _pack(child, out)
    elif kind is dict:
        for key, child in value.items():
            _pack(key, out)
            _pack(child, out)


def _count(kind: type, n: int, out: bytearray) -> None:
    most, byte, wider = _COUNTS[kind]
    if n <= most:
        out.append(byte | n)
        return
    for code, op in zip("BHIQ", wider, strict=False):
        if op is not None and n < 1 << (8 * struct.calcsize(code)):
            out += struct.pack(">B" + code, op, n)
            return
    raise OverflowError(f"a {kind.__name__} of {n} is too long for MessagePack")
