"""Files of every kind that emberlet reads, each with code in it that a careless reader would run."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
from emberlet.host.burnpack_writer import dumps
from onnx import TensorProto, helper
from pyarrow import parquet

from .hostile_columns import Touch, hostile_arrow, hostile_parquet


def hostile_files(folder: Path, trap: Path) -> list[Path]:
    """Write them into a folder. Whatever code of theirs runs makes the file `trap`."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {**_pickles(trap), **_arrays(trap), **_models(trap), **_texts(trap), **_pictures(trap)}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(128, np.float32)), 64)
    honest = pa.table({"image": rows})
    for number, table in enumerate(hostile_parquet(honest, trap).values()):
        parquet.write_table(table, folder / f"columns{number}.parquet")
    for number, table in enumerate(hostile_arrow(honest, trap).values()):
        for ending, writer in ((".arrow", pa.ipc.new_file), (".arrows", pa.ipc.new_stream)):
            with pa.OSFile(str(folder / f"columns{number}{ending}"), "wb") as file, writer(file, table.schema) as out:
                out.write_table(table)
    return sorted(folder.iterdir())


def code_of(trap: Path) -> str:
    return f"__import__('os').system('touch {trap}')"


def _pickles(trap: Path) -> dict[str, bytes]:
    """Pickles alone, and in each of PyTorch's formats."""
    evil = [pickle.dumps(Touch(trap), protocol) for protocol in (0, 2, 5)]
    state = pickle.dumps({"weight": Touch(trap)}, 2)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", state)
        archive.writestr("archive/version", "3")
    tarred = io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w", format=tarfile.USTAR_FORMAT) as archive_of_tar:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            info = tarfile.TarInfo(name)
            info.size = len(state)
            archive_of_tar.addfile(info, io.BytesIO(state))
    magic = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    named = {f"pickle{n}.pkl": data for n, data in enumerate(evil)} | {f"pickle{n}.bin": d for n, d in enumerate(evil)}
    return {**named, "evil.pt": zipped.getvalue(), "older.pt": magic + state, "oldest.pth": tarred.getvalue(),
            "plain.pth": evil[1]}  # fmt: skip


def _arrays(trap: Path) -> dict[str, bytes]:
    objects = np.array([Touch(trap)], object)
    alone, several = io.BytesIO(), io.BytesIO()
    np.save(alone, objects, allow_pickle=True)
    more: Any = {code_of(trap).replace("/", "_"): np.zeros(3)}
    np.savez(several, image=objects, **more)
    header = f"{{'descr': {code_of(trap)}, 'fortran_order': False, 'shape': (1,)}}".encode().ljust(117) + b"\n"
    spoken = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8)
    return {"objects.npy": alone.getvalue(), "objects.npz": several.getvalue(), "header.npy": spoken}


def _models(trap: Path) -> dict[str, bytes]:
    """Models whose names, texts and operators are code; a plan, a module and a .tflite file with such names."""
    code = code_of(trap)
    line = f'"""\n{code}\n"""'
    image, text = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 64]) for n in (code, line))
    weight = helper.make_tensor(f'w"\n{code}\n"', TensorProto.FLOAT, [64, 64], np.zeros(4096, np.float32).tolist())
    node = helper.make_node("MatMul", [code, weight.name], [line], name=line, doc_string=line)
    graph = helper.make_graph([node], line, [image], [text], [weight], doc_string=line)
    named = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name=line, ir_version=8)
    named.metadata_props.add(key=line, value=line)
    called = helper.make_node("PyOp", [code], [line], domain="ai.onnx.contrib", code=code)
    other = helper.make_graph([called], "g", [image], [text])
    operator = helper.make_model(other, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    outside = onnx.ModelProto()
    outside.CopyFrom(named)
    outside.graph.initializer[0].ClearField("float_data")
    outside.graph.initializer[0].data_location = TensorProto.EXTERNAL
    outside.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")
    plan = {
        "version": 1,
        "inputs": [[code, "float32", [1], 0]],
        "outputs": [[line, code, [1], 0]],
        "kernels": [[code] * 4],
    }
    pack = dumps({}, {"emberlet.plan": json.dumps(plan), "model": line, "emberlet.layout": code})
    section = bytes([8]) + b"emberlet" + json.dumps({"version": 1, "inputs": [[code, code, [1], 0, 4]]}).encode()
    begin = b"\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x08\x01\x00\x0a\x04\x01\x02\x00\x0b"
    return {"names.onnx": named.SerializeToString(), "operator.onnx": operator.SerializeToString(),
            "outside.onnx": outside.SerializeToString(), "evil.plan": pack, "evil.bpk": pack,
            "evil.wasm": begin + bytes([0, len(section) & 127 | 128, len(section) >> 7]) + section,
            "evil.tflite": struct.pack("<I", 28) + b"TFL3" + line.encode() * 20}  # fmt: skip


def _texts(trap: Path) -> dict[str, bytes]:
    code = code_of(trap)
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    table = json.dumps({code: entry, "__metadata__": {"x": code, "format": code}}).encode()
    metadata = struct.pack("<Q", 1) + struct.pack("<Q", 4) + b"name" + struct.pack("<IQ", 8, len(code)) + code.encode()
    gguf = b"GGUF" + struct.pack("<IQ", 3, 0) + metadata
    record = {"metadata": {"float": code, "int": code}, "item": {code: {"id": code, "param": {"bytes": [1]}}}}
    index = {"weight_map": {code: "../../../../etc/passwd", "w": f"$({code})"}}
    return {"evil.safetensors": struct.pack("<Q", len(table)) + table + bytes(4), "evil.gguf": gguf,
            "evil.json": json.dumps(record).encode(), "model.safetensors.index.json": json.dumps(index).encode(),
            "evil.csv": f"image\n={code}\n".encode(), "evil.h5": b"\x89HDF\r\n\x1a\n" + code.encode() * 9,
            "evil.mpk": b"\x82\xa8metadata" + code.encode(), "evil.cbor": b"\xd8\x25\x78\x20" + code.encode(),
            "evil.yaml": f"!!python/object/apply:os.system ['touch {trap}']".encode()}  # fmt: skip


def _pictures(trap: Path) -> dict[str, bytes]:
    """A picture that Pillow hands to Ghostscript, and others that are programs, under the names of honest ones."""
    eps = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n(%pipe%touch {trap}) (w) file\n%%EOF\n".encode()
    return {"eps.png": eps, "eps.jpg": eps, "drawing.png": b'<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
            "mvg.gif": f"push graphic-context\nfill 'url(https://x/\"|touch {trap}\")'\n".encode()}  # fmt: skip
