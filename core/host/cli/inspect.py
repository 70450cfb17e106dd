"""emberlet inspect MODEL.onnx | WEIGHTS.bpk | MODEL.plan"""

from __future__ import annotations

import argparse
import json

from ...burnpack import MAGIC, Burnpack
from ...errors import EmberletError
from ...param.identity import ParamId
from ..schemes import in_words
from .plain import plain


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="an ONNX file, or a burnpack (weights or a plan)")
    parser.add_argument("--json", action="store_true", help="print the typed graph of an ONNX file as JSON")


def run(arguments: argparse.Namespace) -> int:
    with open(arguments.file, "rb") as file:
        magic = file.read(4)
    if arguments.json:
        if magic == MAGIC.to_bytes(4, "little"):
            raise EmberletError(f"{arguments.file} is a burnpack; --json prints the graph of an ONNX file")
        from emberlet.codegen.graph_json import as_json

        print(json.dumps(as_json(arguments.file), indent=2))
        return 0
    if magic == MAGIC.to_bytes(4, "little"):
        print(describe_burnpack(arguments.file))
        return 0
    from emberlet.codegen import inspect

    print(plain(inspect(arguments.file)), end="")
    return 0


def describe_burnpack(path: str) -> str:
    """A table of the tensors in a burnpack, its metadata and scalars."""
    pack = Burnpack.from_file(path)
    rows = [("tensor", "dtype", "shape", "bytes", "param id", "stored as")]
    total = 0
    for name in sorted(pack.tensors):
        entry = pack.tensors[name]
        total += entry.nbytes
        identity = "" if entry.param_id is None else str(ParamId(entry.param_id))
        stored = in_words(entry.stored["QFloat"]) if entry.is_quantized else ""
        rows.append((_word(name), str(entry.dtype), str(entry.shape), str(entry.nbytes), identity, _word(stored)))
    shown = [i for i in range(6) if i < 4 or any(row[i] for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in shown}
    lines = ["  ".join(row[i].ljust(widths[i]) for i in shown).rstrip() for row in rows]
    lines.append(f"{len(pack.tensors)} tensors, {total} bytes")
    lines += [f"metadata {_word(key)}: {_word(value)}" for key, value in sorted(pack.metadata.items())]
    lines += [f"scalar {_word(key)}: {value}" for key, value in sorted(pack.scalars.items())]
    return "\n".join(lines)


def _word(text: str) -> str:
    return plain(text).replace("\n", "\\n")
