"""Small weight files of every format, for tests to damage, and a function that reads a whole file."""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from emberlet import store

# {"item": {"w": {"bytes": 8 bytes, "shape": [2], "dtype": "F32"}, "n": [1, {"x": -1}]}} as MessagePack
RECORD = (
    b"\x81\xa4item\x82\xa1w\x83\xa5bytes\xc4\x08" + bytes(8)
    + b"\xa5shape\x91\x02\xa5dtype\xa3F32\xa1n\x92\x01\x81\xa1x\xff"
)  # fmt: skip
# The same recorder's bincode: a parameter of two floats, a constant, one of none
NAMELESS = b"\x03f32\x03i32\x03Bin\x060.18.0\x04Full" + b"".join(
    b"\r040000000400" + digit + count + bytes(ord(count)) + b"\1" + bytes([ord(count) // 4]) + b"\1\0"
    for digit, count in ((b"0", b"\x08"), (b"2", b"\0"))
)
WHOLE = ("views", "checkpoint", "new_dtypes", "whole_module", "torchao")
FIXTURES = Path(__file__).parents[1] / "store" / "fixtures"


def seeds() -> dict[str, list[tuple[str | None, bytes]]]:
    """format -> (the format to pass, or None if the bytes identify it; file)."""
    arrays: dict[str, Any] = {
        "a.w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.array([7]),
    }
    small = store.store_of(arrays)
    small = small.view(small, metadata={"by": "me"})
    archives: list[tuple[str | None, bytes]] = []
    for write in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        write(file, fortran=np.asfortranarray(np.ones((2, 3))), **arrays)
        archives.append((None, file.getvalue()))
    torch: list[tuple[str | None, bytes]] = []
    torch += [(None, (FIXTURES / f"{n}.pt").read_bytes()) for n in WHOLE]
    torch += [("pytorch", (FIXTURES / f"{n}_legacy.pt").read_bytes()) for n in ("views", "checkpoint")]
    torch += [("pytorch", pickle.dumps({"a": [1, {2: "x"}], "b": (1.5, None, {3})}, p)) for p in (0, 2, 4)]
    return {
        "burnpack": [("burnpack", store.dumps(small))],
        "safetensors": [("safetensors", store.dumps(small, "safetensors"))],
        "pytorch": torch,
        "gguf": [("gguf", gguf())],
        "npz": archives,
        "onnx": [("onnx", onnx())],
        "record": [("record", data) for data in (RECORD, gzip.compress(RECORD), NAMELESS)],
    }


def gguf() -> bytes:
    """Two values and three tensors: F32, Q8_0, and one of a type that is not read."""
    import struct

    def text(words: str) -> bytes:
        return struct.pack("<Q", len(words)) + words.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 3, 2)
    head += text("general.name") + struct.pack("<I", 8) + text("x")
    head += text("n") + struct.pack("<IIQ2i", 9, 5, 2, 1, 2)
    head += text("f") + struct.pack("<IQIQ", 1, 2, 0, 0)
    head += text("q") + struct.pack("<IQQIQ", 2, 32, 1, 8, 32)
    head += text("u") + struct.pack("<IQIQ", 1, 2, 99, 96)
    return head + bytes(-len(head) % 32) + bytes(160)


def onnx() -> bytes:
    """A model of two initializers, one with raw data."""
    from onnx import TensorProto, helper, numpy_helper

    raw = numpy_helper.from_array(np.arange(3, dtype=np.float32), "raw")
    typed = helper.make_tensor("typed", TensorProto.INT64, [2], [1, -2])
    graph = helper.make_graph([], "g", [], [], initializer=[raw, typed])
    return bytes(helper.make_model(graph, producer_name="p").SerializeToString())


def read_whole(data: bytes, format: str | None) -> None:
    """Open the file and read every tensor in it that is not large."""
    opened = store.open(data, format=format, zero_copy=True)
    for snapshot in list(opened.values())[:50]:
        if snapshot.size > 1 << 20:
            continue
        tensor = snapshot.tensor("numpy")
        assert tensor.shape == snapshot.shape
        assert tensor.dtype is snapshot.dtype
    repr(opened)
