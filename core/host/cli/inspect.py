"""emberlet inspect FILE: an ONNX model's graph, or the contents of a weight file of any format."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from ... import store
from ...errors import EmberletError, FormatError
from ...param.identity import ParamId
from ...store import Store
from ...store.opening import UNKNOWN
from ..other_formats import described
from .plain import plain


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="an ONNX model, or weights: burnpack, safetensors, PyTorch, GGUF, .npz")
    parser.add_argument("--json", action="store_true", help="print the typed graph, or the table of tensors, as JSON")
    parser.add_argument("--key", help="the part of a PyTorch file to show, such as state_dict")
    parser.add_argument("--tree", action="store_true", help="show the modules of an ONNX model, with weights and FLOPs")
    parser.add_argument("--weights", action="store_true", help="show the initializers of an ONNX model as a table")


def run(arguments: argparse.Namespace) -> int:
    if arguments.tree and arguments.json:
        raise EmberletError("--tree prints text; leave --json or --tree out")
    opened = _weights(arguments.file, arguments.key, arguments.weights)
    if opened is not None:
        print(json.dumps(as_json(opened), indent=2) if arguments.json else describe(opened))
    elif arguments.tree:
        from emberlet.codegen.picture.text import as_text
        from emberlet.codegen.picture.tree import tree

        print(as_text(tree(arguments.file), unicode=_shows_lines()), end="")
    elif arguments.json:
        from emberlet.codegen.graph_json import as_json as graph_as_json

        print(json.dumps(graph_as_json(arguments.file), indent=2))
    else:
        from emberlet.codegen import inspect

        print(plain(inspect(arguments.file)), end="")
    return 0


def _shows_lines() -> bool:
    """Whether the terminal can show the characters that a tree is drawn with."""
    try:
        "├─→×…".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _weights(path: str, key: str | None, initializers: bool) -> Store | None:
    """The weight file, or None if the file is to be shown as an ONNX model's graph."""
    if initializers:
        return store.open(path, format="onnx")
    if not os.path.isdir(path):
        with open(path, "rb"):  # name a missing file as given
            pass
    if path.lower().endswith((".onnx", ".onnxtxt", ".textproto")):
        return None
    try:
        opened = store.open(path, key=key)
    except FormatError as error:
        if UNKNOWN in str(error) and _begins_as_model(path):
            return None
        found = described(path) if UNKNOWN in str(error) else None
        if found is not None:
            raise FormatError(f"{path} is {found}") from None
        raise
    return None if opened.format == "onnx" else opened


def _begins_as_model(path: str) -> bool:
    """Whether the first bytes are those of an ONNX model, whose first field is the version of its format."""
    with open(path, "rb") as file:
        return file.read(1) == b"\x08"


def describe(opened: Store) -> str:
    """A table of the tensors, then metadata, scalars and the rest."""
    rows = [("tensor", "dtype", "shape", "bytes", "param id", "stored as")]
    for name in sorted(opened):
        s = opened[name]
        identity = "" if s.param_id is None else str(ParamId(s.param_id))
        stored = "" if _plainly_stored(s) else s.stored
        rows.append((_word(name), str(s.dtype), str(s.shape), str(s.nbytes), identity, _word(stored)))
    shown = [i for i in range(6) if i < 4 or any(row[i] for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in shown}
    lines = ["  ".join(row[i].ljust(widths[i]) for i in shown).rstrip() for row in rows]
    lines.append(f"{len(opened)} tensors, {opened.nbytes} bytes")
    lines += [f"metadata {_word(key)}: {_word(_line(value))}" for key, value in sorted(opened.metadata.items())]
    lines += [f"scalar {_word(key)}: {value}" for key, value in sorted(opened.scalars.items())]
    lines += [f"extra {_word(key)}: {_word(_short(value))}" for key, value in sorted(opened.extras.items())]
    return "\n".join(lines)


def as_json(opened: Store) -> dict[str, Any]:
    """The same as plain values; identities as Burn writes them."""
    tensors = {}
    for name, s in opened.items():
        entry: dict[str, Any] = {"dtype": s.dtype.name, "shape": list(s.shape), "bytes": s.nbytes, "stored": s.stored}
        if s.param_id is not None:
            entry["param_id"] = str(ParamId(s.param_id))
        if s.original != name:
            entry["original"] = s.original
        tensors[name] = entry
    return {
        "format": opened.format, "layout": opened.layout, "tensors": tensors, "metadata": opened.metadata,
        "scalars": {k: v if v == v and abs(v) != float("inf") else str(v) for k, v in opened.scalars.items()},
        "extras": {k: _short(v) for k, v in opened.extras.items()},
    }  # fmt: skip


def _plainly_stored(s: store.Snapshot) -> bool:
    return not ("scales" in s.stored or "scheme" in s.stored or s.stored.startswith(("Q", "ggml")))


def _line(text: str) -> str:
    """A text, shortened to a line; --json shows all of it."""
    return text if len(text) <= 400 else f"{text[:400]}… ({len(text)} characters)"


def _short(value: Any) -> str:
    """A value in at most about 60 characters."""
    if isinstance(value, (list, tuple)):
        begin = ", ".join(_short(v) if isinstance(v, (str, int, float)) else type(v).__name__ for v in value[:4])
        return f"[{begin}{', …' if len(value) > 4 else ''}] ({len(value)})" if len(value) > 4 else f"[{begin}]"
    text = str(value) if isinstance(value, (str, int, float, bool)) or value is None else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _word(text: str) -> str:
    return plain(text).replace("\n", "\\n")
