"""Files whose names inside are no names: escape sequences of terminals, halves of surrogate pairs, bytes that are no
text, one name twice, sizes that are not so."""

from __future__ import annotations

import io
import json
import struct
import zipfile

import numpy as np
import pyarrow as pa
from emberlet.host.burnpack_writer import dumps
from onnx import TensorProto, helper
from pyarrow import parquet

ESCAPES = "\x1b[31mred\x1b]0;title\x07\u202e\x9b2J\r\x7f"
HALF = "\\ud800"  # of a surrogate pair, as JSON writes it


def hostile_names() -> dict[str, bytes]:
    """name of a file -> its bytes"""
    files = {**_models(), **_headers(), **_archives()}
    files["escapes.csv"] = (ESCAPES.replace("\r", "") + ",image\n1,2\n").encode()
    files["half.csv"] = b"a\xed\xa0\x80,image\n1,\xff\n"
    rows = io.BytesIO()
    parquet.write_table(pa.table({ESCAPES: [1], "b": [2]}), rows)
    return files | {"escapes.parquet": rows.getvalue()}


def _models() -> dict[str, bytes]:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["QQQQQQ", "WWWWWW"], ["ZZZZZZ"], name="NNNNNN")], "GGGGGG",
        [value("QQQQQQ", TensorProto.FLOAT, [1, 2])], [value("ZZZZZZ", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor("WWWWWW", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0])], doc_string="DDDDDD",
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9).SerializeToString()
    files = {}
    for kind, start in (
        ("escapes", b"\x1b[31m"),
        ("half", b"\xed\xa0\x80\xed\xb0"),
        ("bytes", b"\xff\xfe\xc0\xaf\x80"),
    ):
        data = model
        for name in (b"QQQQQQ", b"WWWWWW", b"ZZZZZZ", b"NNNNNN", b"GGGGGG", b"DDDDDD"):
            data = data.replace(name, start + name[:1])
        files[f"{kind}.onnx"] = data
    plan = f'{{"version":1,"inputs":[["{HALF}","float32",[1],0]],"outputs":[],"kernels":[["{HALF}"]]}}'
    section = bytes([8]) + b"emberlet" + json.dumps({"version": 1, "inputs": [[ESCAPES] * 2 + [[1], 0, 4]]}).encode()
    begin = b"\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x08\x01\x00\x0a\x04\x01\x02\x00\x0b"
    return files | {
        "half.plan": dumps({}, {"emberlet.plan": plan, "model": "m"}),
        "escapes.bpk": dumps({}, {"x\x1b[2J": "y\x1b]0;t\x07", "model": ESCAPES}),
        "escapes.wasm": begin + bytes([0, len(section) & 127 | 128, len(section) >> 7]) + section,
    }


def _headers() -> dict[str, bytes]:
    def safetensors(header: str, count: int) -> bytes:
        return struct.pack("<Q", len(header.encode())) + header.encode() + bytes(8 * count)

    def entry(begin: int) -> str:
        return f'{{"dtype":"F32","shape":[2],"data_offsets":[{begin},{begin + 8}]}}'

    def text(words: bytes) -> bytes:
        return struct.pack("<Q", len(words)) + words

    gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + text(b"k\x1b[2J\xff") + struct.pack("<I", 8)
    gguf += text(b"v\x1b[2J\xed\xa0\x80") + text(b"t\x1b[2J\xff") + struct.pack("<IQIQ", 1, 2, 0, 0)
    index = f'{{"weight_map":{{"a{HALF}":"x\\u001b[2J.safetensors","b":"{HALF}"}}}}'
    half = f'{{"metadata":{{"float":"F","int":"I"}},"item":{{"{HALF}":{{"id":"i","param":{{"bytes":[0]}}}}}}}}'
    return {
        "escapes.safetensors": safetensors(f"{{{json.dumps(ESCAPES)}:{entry(0)}}}", 1),
        "half.safetensors": safetensors(f'{{"a{HALF}":{entry(0)}}}', 1),
        "twice.safetensors": safetensors(f'{{"a":{entry(0)},"a":{entry(8)}}}', 2),
        "twice_the_same.safetensors": safetensors(f'{{"a":{entry(0)},"a":{entry(0)}}}', 1),
        "twice_inside.safetensors": safetensors(f'{{"a":{{"dtype":"F32",{entry(0)[1:]}}}', 1),
        "model.safetensors.index.json": index.encode(),
        "half.json": half.encode(),
        "escapes.gguf": gguf + bytes(-len(gguf) % 32) + bytes(8),
    }


def _archives() -> dict[str, bytes]:
    array = io.BytesIO()
    np.save(array, np.zeros(100, np.float32))

    def archive(names: list[str]) -> bytearray:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
            for name in names:
                out.writestr(name, array.getvalue())
        return bytearray(file.getvalue())

    files = {"escapes.npz": bytes(archive([ESCAPES + ".npy", "ok.npy"]))}
    # what the directory says of the size of a member, or of its compressed size; and what the member's own head says
    changes = [
        *((b"PK\1\2", 24, size) for size in (10, 10**9, 0, 2**32 - 1)), (b"PK\1\2", 20, 5), (b"PK\1\2", 20, 10**8),
        (b"PK\3\4", 22, 10**9),
    ]  # fmt: skip
    for number, (mark, at, size) in enumerate(changes):
        data = archive(["w.npy"])
        begin = data.index(mark) + at
        data[begin : begin + 4] = struct.pack("<I", size)
        files[f"size{number}.npz"] = files[f"size{number}.pt"] = bytes(data)
    return files
