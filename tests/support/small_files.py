"""Small weight files of every format with something of each kind in them, and what a store says that it read.

`FILES` maps a name to a function that gives (format, the bytes that tests change, the whole file with them).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import re
import struct
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np
from emberlet import functional as F
from emberlet import store
from emberlet.errors import EmberletError
from onnx import TensorProto, helper, numpy_helper

from .weight_files import NAMELESS, RECORD

FIXTURES = Path(__file__).parents[1] / "store" / "fixtures"
Changed = tuple[str, bytes, Callable[[bytes], bytes]]
"""(format, the bytes to change, the whole file with them)."""


def whole(data: bytes) -> bytes:
    return data


def begins(kind: str, data: bytes, count: int) -> Changed:
    """The first bytes of a file."""
    return kind, data[:count], lambda head: head + data[count:]


def contents(data: bytes) -> Changed:
    """The header and the table of contents of a burnpack."""
    return begins("burnpack", data, 10 + int.from_bytes(data[6:10], "little"))


def member(kind: str, data: bytes, ending: str) -> Changed:
    """A member of a zip archive, which is written anew around it, uncompressed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = next(n for n in members if n.endswith(ending))

    def rebuilt(changed: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for other, held in members.items():
                archive.writestr(zipfile.ZipInfo(other), changed if other == name else held)
        return file.getvalue()

    return kind, members[name], rebuilt


def arrays() -> dict[str, Any]:
    kinds = ("float32", "float16", "int8", "uint16", "bool", "bfloat16", "float8_e5m2", "float64", "int64", "int4")
    return {kind: F.astype(F.reshape(F.arange(6, backend="numpy"), (2, 3)), kind) for kind in kinds}


def burnpack(**quantized: Any) -> bytes:
    held = store.store_of({n: x for n, x in arrays().items() if n in ("float32", "bool", "int4")})
    if quantized:
        held = store.store_of({"w": F.reshape(F.arange(24, backend="numpy", dtype="float32") - 9, (4, 6))})
        held = held.quantize(**quantized)
    return store.dumps(held.view(dict(held), metadata={"by": "me"}, scalars={"n": -3, "f": 0.5, "on": True}))


def safetensors() -> bytes:
    held = store.store_of({n: x for n, x in arrays().items() if n in ("float32", "bool", "int8")})
    return store.dumps(held.view(dict(held), metadata={"by": "me"}), "safetensors")


def gguf() -> bytes:
    """A value of each type, arrays, plain tensors and blocks."""

    def text(words: str) -> bytes:
        return struct.pack("<Q", len(words)) + words.encode()

    numbers = {
        0: b"\7",
        1: b"\xf9",
        2: b"\1\2",
        3: b"\xff\xff",
        4: b"\1\0\0\0",
        5: b"\xfe\xff\xff\xff",
        6: struct.pack("<f", 0.5),
        7: b"\1",
        10: b"\1" + bytes(7),
        11: b"\xff" * 8,
        12: struct.pack("<d", 0.1),
    }
    pairs = [(f"k{k}", struct.pack("<I", k) + v) for k, v in numbers.items()]
    pairs += [
        ("t", struct.pack("<I", 8) + text("x")),
        ("general.alignment", struct.pack("<II", 4, 16)),
        ("a", struct.pack("<IIQ2h", 9, 3, 2, 1, -2)),
        ("aa", struct.pack("<IIQIQB", 9, 9, 1, 0, 1, 5)),
        ("at", struct.pack("<IIQ", 9, 8, 1) + text("y")),
    ]
    tensors = [("f", (2,), 0, 0), ("h", (2, 2), 1, 16), ("q", (32, 1), 8, 32), ("s", (), 26, 80), ("u", (2,), 99, 96)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(text(k) + v for k, v in pairs)
    for name, shape, kind, at in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, at)
    return head + bytes(-len(head) % 16) + bytes(range(100))


def onnx() -> bytes:
    """Initializers whose elements lie in raw_data, in each of the other fields, and in another file."""
    held = [numpy_helper.from_array(np.arange(3, dtype=np.float32), "raw")]
    held += [numpy_helper.from_array(np.array([[True], [False]]), "flags")]
    typed: tuple[tuple[str, int, list[Any]], ...] = (
        ("f", TensorProto.FLOAT, [1.5, -2.0]), ("d", TensorProto.DOUBLE, [0.5]), ("l", TensorProto.INT64, [1, -2]),
        ("u", TensorProto.UINT64, [7]), ("w", TensorProto.UINT32, [8]), ("i", TensorProto.INT32, [-5]),
        ("b", TensorProto.BOOL, [1, 0]),
    )  # fmt: skip
    for name, kind, values in typed:
        held.append(helper.make_tensor(name, kind, [len(values)], values))
    held.append(helper.make_tensor("q", TensorProto.INT4, [3], [1, -2, 3]))
    held.append(helper.make_tensor("h", TensorProto.FLOAT16, [1], [1.0]))
    texts: Any = [b"x"]
    held.append(helper.make_tensor("text", TensorProto.STRING, [1], texts))
    away = TensorProto(name="away", dims=[1], data_type=1, data_location="EXTERNAL")
    away.external_data.add(key="location", value="w.bin")
    held.append(away)
    model = helper.make_model(helper.make_graph([], "g", [], [], held), producer_name="p")
    model.metadata_props.add(key="k", value="v")
    return bytes(model.SerializeToString())


def record() -> dict[str, Any]:
    held = {"bytes": np.array([1, 2], np.float32).tobytes(), "shape": [2], "dtype": "F32"}
    old = {"value": [1.5, 2.0], "shape": {"dims": [2]}}
    item: dict[str, Any] = {
        "w": {"id": "0000000000007", "param": held}, "old": old, "i": {"value": [1, -2], "shape": [2]},
        "b": {"bytes": b"\1\0", "shape": [2], "dtype": {"Bool": "Native"}}, "n": [1, {"x": -1}], "f": 0.5, "on": True,
        "t": "text", "none": None,
    }  # fmt: skip
    return {"metadata": {"float": "f32", "int": "i32", "n": 1}, "item": item}


def plain(value: Any) -> Any:
    """As JSON writes it: bytes are numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, bytes)) else value


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)), b=np.array([True]))
    return file.getvalue()


def pickled(protocol: int) -> bytes:
    value = OrderedDict(a=[1, {2: "x", -3: b"yz"}], b=(1.5, None, (), {3}, 1 << 70), c=300, d=70000, e=[True, "é" * 3])
    value["again"] = value["a"]
    return pickle.dumps(value, protocol)


FILES: dict[str, Callable[[], Changed]] = {
    "burnpack": lambda: contents(burnpack()),
    "burnpack of blocks": lambda: contents(burnpack(bits=4, level=4, calibration="min-max")),
    "burnpack of one scale": lambda: contents(burnpack(bits=8, level="tensor", calibration="min-max")),
    "safetensors": lambda: ("safetensors", safetensors(), whole),
    "gguf": lambda: ("gguf", gguf(), whole),
    "onnx": lambda: ("onnx", onnx(), whole),
    "record": lambda: ("record", bytes(msgpack.packb(record())), whole),
    "record in JSON": lambda: ("record", json.dumps(plain(record())).encode(), whole),
    "record of the first kind": lambda: ("record", RECORD, whole),
    "record without names": lambda: ("record", NAMELESS, whole),
    "record of many types": lambda: begins(
        "record", gzip.decompress((FIXTURES / "bincode_old.bin.gz").read_bytes()), 160
    ),
    "npz": lambda: member("npz", npz(), "a.npy"),
    **{f"pickle {p}": lambda p=p: ("pytorch", pickled(p), whole) for p in (0, 2, 4)},  # type: ignore[misc]
    **{
        n: lambda n=n: member("pytorch", (FIXTURES / f"{n}.pt").read_bytes(), "data.pkl")  # type: ignore[misc]
        for n in ("views", "checkpoint")
    },
    "views of old": lambda: ("pytorch", (FIXTURES / "views_legacy.pt").read_bytes(), whole),
}  # fmt: skip


# -- what was read


def outcome(data: bytes, kind: str) -> str:
    """Everything in a file as a text, or why it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = store.open(data, format=kind, zero_copy=True)
        except EmberletError as error:
            return _stable(error)
        parts = [f"{found.format} {found.layout} {_said([found.metadata, found.scalars, found.extras])}"]
        for name, s in found.items():
            try:
                x = s.tensor("numpy") if s.size < 1 << 16 else None
                held = "large" if x is None else hashlib.sha256(bytes(x.backend.to_bytes(x))).hexdigest()[:8]
            except EmberletError as error:
                held = _stable(error)
            said = f"{s.dtype} {s.shape} {s.nbytes} {s.stored} {s.param_id}"
            parts.append(f"{name!a} {said} {held}")
    return "\n".join(parts)


def _stable(error: EmberletError) -> str:
    """The message without what Python's libraries say, which differs between releases."""
    said = re.sub(r"(is not JSON|gzip data are malformed|not a zip archive): .*", r"\1", str(error))
    return f"{type(error).__name__}: {ascii(said)[1:-1]}"


def _said(x: Any) -> str:
    if isinstance(x, dict):
        return "{" + ", ".join(f"{_said(k)}: {_said(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_said, x))) + "}"
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(map(_said, x)) + "]"
    if isinstance(x, (str, bytes, int, float, complex, memoryview, type(None))):
        return ascii(bytes(x)) if isinstance(x, memoryview) else ascii(x)
    return f"{type(x).__name__}({getattr(x, 'name', '')})"
