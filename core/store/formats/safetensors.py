"""safetensors: read, also from several files with an index, and written. https://github.com/huggingface/safetensors

A file is the length of a header (u64), the header (JSON: name -> dtype, shape, data_offsets; "__metadata__": text ->
text), and the tensors, which fill the rest without gaps.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import IO, Any

from ... import dtypes
from ...burnpack import MAX_RANK
from ...burnpack.limits import Limits
from ...errors import DTypeError, FormatError
from ...module.layouts import KEY, LAYOUTS
from ..reading import Bytes, contents, json_of
from ..snapshot import Snapshot, bools
from ..stored import Store

# The dtype names in a header, in the order of the reference implementation, which writes tensors in reverse order.
DTYPES = {
    "BOOL": dtypes.bool, "F4": dtypes.float4_e2m1fn, "F6_E2M3": dtypes.float6_e2m3fn, "F6_E3M2": dtypes.float6_e3m2fn,
    "U8": dtypes.uint8, "I8": dtypes.int8, "F8_E5M2": dtypes.float8_e5m2, "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E8M0": dtypes.float8_e8m0fnu, "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "I16": dtypes.int16, "U16": dtypes.uint16, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "I32": dtypes.int32,
    "U32": dtypes.uint32, "F32": dtypes.float32, "F64": dtypes.float64, "I64": dtypes.int64, "U64": dtypes.uint64,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
INDEX_END = ".index.json"
MAX_SHARDS = 10_000


def read(data: Bytes, where: str, *, path: str | None = None, limits: Limits, **_: object) -> Store:
    """The file in `data`, or the shards if it is an index. Raises FormatError, OSError for a shard."""
    if path is not None and path.endswith(INDEX_END):
        return _sharded(data, where, limits, zero_copy=isinstance(data, memoryview))
    if len(data) < 8:
        raise FormatError(f"{where}: {len(data)} bytes are fewer than the 8 of the header's length")
    length = int.from_bytes(data[0:8], "little")
    if length > limits.metadata:
        raise FormatError(f"{where}: {length} bytes of header are more than the limit of {limits.metadata}")
    if 8 + length > len(data):
        raise FormatError(f"{where} is truncated: its header ends at byte {8 + length}, the file at {len(data)}")
    header = parse(bytes(data[8 : 8 + length]), where)
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise FormatError(f"{where}: __metadata__ is not a map of texts")
    if len(header) > limits.tensors:
        raise FormatError(f"{where}: {len(header)} tensors are more than the limit of {limits.tensors}")
    begin, found, spans = 8 + length, {}, []
    for name, entry in header.items():
        label = f"{where}: tensor {name!r}"
        dtype, shape, start, end = _entry(entry, label, limits)
        spans.append((start, end))
        raw, is_bool = partial(_raw, data, begin + start, begin + end), dtype is dtypes.bool
        found[name] = Snapshot(
            name, dtype, shape, raw=None if is_bool else raw, make=partial(bools, raw, shape) if is_bool else None,
            stored=entry["dtype"], nbytes=end - start,
        )  # fmt: skip
    at = 0
    for start, end in sorted(spans):
        if start != at:
            what = "overlap" if start < at else "leave a gap"
            raise FormatError(f"{where}: its tensors {what} at byte {begin + min(start, at)}")
        at = end
    if begin + at != len(data):
        raise FormatError(f"{where}: its tensors end at byte {begin + at}, the file at {len(data)}")
    return Store(
        found, format="safetensors", origin=where, metadata=metadata, layout=_layout(metadata)
    )  # fmt: skip


def _raw(data: Bytes, start: int, end: int) -> memoryview:
    return data[start:end]


def _layout(metadata: dict[str, str]) -> str | None:
    if metadata.get(KEY) in LAYOUTS:
        return metadata[KEY]
    return "pytorch" if metadata.get("format") == "pt" else None


def parse(text: bytes, where: str) -> dict[str, Any]:
    """A JSON object without duplicate keys. Raises FormatError."""
    try:
        found = json_of(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: its header is not JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{where}: its header is not a JSON object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} occurs twice")
    return found


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _entry(entry: Any, label: str, limits: Limits) -> tuple[dtypes.DType, tuple[int, ...], int, int]:
    if not isinstance(entry, dict):
        raise FormatError(f"{label}: its entry is not a map")
    name, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    dtype = DTYPES.get(name) if isinstance(name, str) else None
    if dtype is None:
        raise FormatError(f"{label}: dtype {str(name)[:40]!r} is none of {', '.join(DTYPES)}")
    shape, offsets = _unsigned(shape, "shape", label), _unsigned(offsets, "data_offsets", label)
    if len(shape) > MAX_RANK or len(offsets) != 2:
        raise FormatError(f"{label}: {len(shape)} dimensions and {len(offsets)} offsets; there are at most 64, and 2")
    start, end = offsets
    count = 1
    for n in shape:
        count *= n
        if count >= 1 << 64:
            raise FormatError(f"{label}: the product of its shape {shape} overflows")
    if end - start != dtype.nbytes(count) or (count * dtype.bits) % 8:
        raise FormatError(f"{label}: {end - start} bytes where shape {shape} of {name} takes {dtype.nbytes(count)}")
    if end - start > limits.tensor:
        raise FormatError(f"{label}: {end - start} bytes are more than the limit of {limits.tensor}")
    return dtype, tuple(shape), start, end


def _unsigned(value: Any, what: str, label: str) -> list[int]:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 1 << 64 for n in value):
        raise FormatError(f"{label}: its {what} is not a list of unsigned integers")
    return value


def _sharded(data: Bytes, where: str, limits: Limits, zero_copy: bool) -> Store:
    """The tensors of several files, by the index that maps tensors to files."""
    if len(data) > limits.metadata:
        raise FormatError(f"{where}: {len(data)} bytes of index are more than the limit of {limits.metadata}")
    index = parse(bytes(data[0 : len(data)]), where)
    files = index.get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(v, str) for v in files.values()):
        raise FormatError(f"{where}: its weight_map is not a map of texts")
    names = sorted(set(files.values()))
    if len(names) > MAX_SHARDS:
        raise FormatError(f"{where}: {len(names)} files are more than the limit of {MAX_SHARDS}")
    folder, shards, metadata, layout = os.path.dirname(where), {}, {}, None
    for name in names:
        if os.path.basename(name) != name or name in ("", ".", "..") or "\\" in name or "\0" in name:
            raise FormatError(f"{where}: names the file {name!r}, which is not in its folder")
        shard = os.path.join(folder, name)
        shards[name] = read(*contents(shard, zero_copy, limits), limits=limits)
        metadata.update(shards[name].metadata)
        layout = layout or shards[name].layout
    found = {}
    for key, name in files.items():
        if key not in shards[name]:
            raise FormatError(f"{where}: {name} holds no tensor {key!r}, although the index lists it there")
        found[key] = shards[name][key]
    told = index.get("metadata")
    metadata.update({k: str(v) for k, v in told.items() if isinstance(v, (str, int))} if isinstance(told, dict) else {})
    return Store(found, format="safetensors", origin=where, metadata=metadata, layout=layout)


def header_of(store: Store, metadata: dict[str, str]) -> tuple[bytes, list[str]]:
    """(the header with its length, the names in the order of their bytes).

    Raises DTypeError for a dtype that the format does not have.
    """
    for name, s in store.items():
        if s.dtype not in NAMES or s.size * s.dtype.bits % 8:
            raise DTypeError(f"tensor {name!r}: safetensors cannot hold {s.dtype} of shape {s.shape}; a burnpack can")
    rank = {dtype: i for i, dtype in enumerate(reversed(DTYPES.values()))}
    order = sorted(store, key=lambda n: (rank[store[n].dtype], n))
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    at = 0
    for name in order:
        s = store[name]
        size = int(s.dtype.nbytes(s.size))
        entries[name] = {"dtype": NAMES[s.dtype], "shape": list(s.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, order


def dump(store: Store, file: IO[bytes], metadata: dict[str, str]) -> int:
    """Write the store as one safetensors file; returns the bytes written. Raises DTypeError, FormatError."""
    if "__metadata__" in store:
        raise FormatError("safetensors has no tensor called '__metadata__'; rename it")
    if store.layout:
        metadata[KEY] = store.layout
        if store.layout == "pytorch":
            metadata["format"] = "pt"
    head, order = header_of(store, metadata)
    written = file.write(head)
    for name in order:
        s = store[name]
        raw = s.raw()
        if len(raw) != s.dtype.nbytes(s.size):
            raise FormatError(
                f"tensor {name!r} gave {len(raw)} bytes where {s.dtype} of {s.shape} takes a different number"
            )
        written += file.write(raw)
        del raw
    return written
