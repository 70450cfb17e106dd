"""Opening a weight file of any format, which is detected by its first bytes, not its name."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..burnpack.limits import Limits
from ..errors import FormatError
from ..host.files import read_regular
from .formats.archives import open_zip
from .formats.bincode import is_bincode
from .reading import Bytes, Origin, check_sharing, contents, json_of
from .stored import Store

# format -> the module of core/store/formats that reads it
FORMATS = {
    "burnpack": "burnpack",
    "safetensors": "safetensors",
    "pytorch": "pytorch",
    "gguf": "gguf",
    "npz": "npz",
    "onnx": "onnx",
    "record": "records",
}
ENDINGS = {
    ".bpk": "burnpack",
    ".safetensors": "safetensors",
    ".pt": "pytorch",
    ".pth": "pytorch",
    ".gguf": "gguf",
    ".npz": "npz",
    ".onnx": "onnx",
}
INDEX = "model.safetensors.index.json"
UNKNOWN = "its first bytes match no weight format"


def open(
    source: Origin,
    *,
    format: str | None = None,
    zero_copy: bool = False,
    limits: Limits | None = None,
    key: str | None = None,
    blocks: bool = False,
) -> Store:
    """Open a weight file: a path, a folder that holds a model in shards, or bytes.

    format: one of `emberlet.store.opening.FORMATS` if the bytes do not identify it; zero_copy: map the file (tensors
    share its pages, and it must not be truncated) or share the given bytes; limits: larger Limits for a trusted file;
    key: the part of a PyTorch file to read, such as "state_dict" or "model.encoder"; blocks: keep GGUF's quantized
    blocks as uint8 instead of dequantizing them.

    Raises OSError, FormatError if it is in none of these formats.
    """
    path = None if isinstance(source, (bytes, bytearray, memoryview)) else _found(os.fspath(source))
    if path is not None:
        source = path
    data, where = contents(source, zero_copy, limits)
    kind = format or _kind(data, path or "", where)
    if kind not in FORMATS:
        raise FormatError(f"{where}: unknown format {kind!r}; known are {', '.join(FORMATS)}")
    reader = importlib.import_module(f"{__package__}.formats.{FORMATS[kind]}")
    store: Store = reader.read(data, where, path=path, limits=limits or Limits(), key=key, blocks=blocks)
    if any(".quant_state." in name for name in store):
        from .formats.bitsandbytes import joined

        store = joined(store)
    if any(s.dtype.is_float and s.dtype.bits == 8 for s in store.values()):
        from .formats import scaled_floats

        store = scaled_floats.joined(store)
    if kind in ("burnpack", "pytorch", "gguf"):  # whose tensors may lie anywhere
        check_sharing(where, store.nbytes, len(data))
    return store


def config_from_file(source: Origin, key: str | None = None) -> Any:
    """The contents of a PyTorch file other than tensors, as dicts, lists, numbers and texts; key: the part to read.

    Raises OSError, FormatError, LoadError if there is no such part.
    """
    from .formats.pytorch import config

    data, where = contents(source, False)
    return config(data, where, key)


def files_of(source: str) -> list[str]:
    """The files that `open` reads for a path: for shards, their index and each of them. Raises OSError."""
    path = _found(source)
    if not os.path.basename(path).lower().endswith(".safetensors.index.json"):
        return [path]
    try:
        names = {str(name) for name in json_of(read_regular(path).decode())["weight_map"].values()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [path]  # `open` says what is wrong with it
    return [path, *(os.path.join(os.path.dirname(path), name) for name in sorted(names))]


def _found(path: str) -> str:
    """The path of the file to open: the index in a folder; `.bpk` is added if the name has no extension."""
    if os.path.isdir(path):
        for name in (INDEX, "model.safetensors", "pytorch_model.bin", "model.bpk"):
            if os.path.isfile(os.path.join(path, name)):
                return os.path.join(path, name)
    if not os.path.splitext(path)[1] and not os.path.exists(path) and os.path.exists(path + ".bpk"):
        return path + ".bpk"
    return path


def _kind(data: Bytes, path: str, where: str) -> str:
    """The format, from the first bytes or else the extension."""
    head = bytes(data[0 : min(len(data), 512)])
    name = os.path.basename(path).lower()
    if head[:4] == b"NRUB":
        return "burnpack"
    if name.endswith(".safetensors.index.json"):
        return "safetensors"
    if len(head) > 8 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= len(data) - 8:
        return "safetensors"
    if name.endswith((".mpk", ".mpk.gz", ".json.gz")) or (name.endswith(".json") and b'"metadata"' in head):
        return "record"
    if is_bincode(head) or name.endswith(".bin.gz"):
        return "record"
    if head[:4] == b"GGUF":
        return "gguf"
    if head[:2] == b"PK":
        members = open_zip(data, where).namelist()
        return "pytorch" if any(m.endswith("data.pkl") for m in members) or name.endswith((".pt", ".pth")) else "npz"
    if head[257:262] == b"ustar" or (head[:1] == b"\x80" and head[1:2] in b"\2\3\4\5"):
        return "pytorch"
    for ending, kind in ENDINGS.items():
        if name.endswith(ending):
            return kind
    raise FormatError(f"{where}: {UNKNOWN}; known are {', '.join(FORMATS)}")
