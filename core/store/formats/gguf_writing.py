"""Writing GGUF, llama.cpp's format: floats, integers and a file's own blocks as they are, weights of 4 and 8 bits as
its blocks Q4_0, Q4_1, Q8_0 and MXFP4. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"""

from __future__ import annotations

import operator
import struct
from typing import IO

from ... import dtypes
from ...errors import DTypeError, FormatError
from ...functional.movement.joining import concat
from ...tensor import Tensor
from ..snapshot import Packed, Snapshot
from ..stored import Store
from .gguf import PLAIN
from .gguf_blocks import BLOCKS

NUMBERS = {dtype: number for number, dtype in PLAIN.items()}
TYPES = {block.name: number for number, block in BLOCKS.items()}
ALIGNMENT = 32
MOST_AXES = 4  # of ggml's tensors
MOST_NAME = 63  # bytes of a tensor's name: ggml's GGML_MAX_NAME without the zero that ends it
VERSION = 2  # of ggml's blocks, GGML_QNT_VERSION
OWN = ("general.alignment", "general.quantization_version")  # what is said of this file, not of its source
FORMS = "quantize_weights(8, level=32), (4, level=32) or (4, 'affine', 32), each with scale_dtype='float16'"


def dump(store: Store, file: IO[bytes], metadata: dict[str, str]) -> int:
    """Write the store as one GGUF file; returns the bytes written. Raises DTypeError for what GGUF has no type for,
    FormatError for weights in Burn's layout and names that are too long."""
    if store.layout == "burn":
        raise FormatError(
            "a GGUF file holds dense weights as PyTorch does, and these lie as Burn's: write it with model.save_into"
        )
    values: dict[str, str | bool | int | float] = {"general.architecture": "emberlet", **metadata, **store.scalars}
    head = [_text(key) + _value(key, value) for key, value in values.items() if key not in OWN]
    kinds = {name: _kind(name, s) for name, s in store.items()}
    if any(kind in BLOCKS for kind in kinds.values()):
        head.append(_text(OWN[1]) + struct.pack("<II", 4, VERSION))
    head.insert(0, b"GGUF" + struct.pack("<IQQ", 3, len(store), len(head)))
    at = 0
    for name, s in store.items():
        head.append(_text(name) + struct.pack(f"<I{len(s.shape)}Q", len(s.shape), *s.shape[::-1]))
        head.append(struct.pack("<IQ", kinds[name], at))
        at += _nbytes(s, kinds[name]) + -_nbytes(s, kinds[name]) % ALIGNMENT
    whole = b"".join(head)
    written = file.write(whole + bytes(-len(whole) % ALIGNMENT))
    for name, s in store.items():
        if s.blocks is not None:
            raw = s.blocks[1]()
        else:
            raw = _blocks(name, s.packed) if kinds[name] in BLOCKS and s.packed else s.raw()
        if len(raw) != _nbytes(s, kinds[name]):
            raise FormatError(f"tensor {name!r} gave {len(raw)} bytes where {_nbytes(s, kinds[name])} were announced")
        written += file.write(raw) + file.write(bytes(-len(raw) % ALIGNMENT))
        del raw
    return written


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(key: str, value: str | bool | int | float) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, float):
        return struct.pack("<Id", 12, value)
    try:
        whole = operator.index(value)
        return struct.pack("<Iq", 11, whole) if whole < 1 << 63 else struct.pack("<IQ", 10, whole)
    except (TypeError, struct.error):
        raise DTypeError(
            f"the value {key!r} is {str(value)[:40]}; those of GGUF are texts, bools, floats and integers of 64 bits"
        ) from None


def _kind(name: str, s: Snapshot) -> int:
    """ggml's number of a tensor's type."""
    if len(name.encode()) > MOST_NAME:
        raise FormatError(
            f"the name {name!r} has {len(name.encode())} bytes; GGUF has {MOST_NAME} at most: shorten it with rename="
        )
    if len(s.shape) > MOST_AXES:
        raise DTypeError(f"tensor {name!r} has {len(s.shape)} axes; those of GGUF have at most {MOST_AXES}")
    if s.blocks is not None:
        return TYPES[s.blocks[0]]
    p = s.packed if len(s.shape) == 2 else None
    if p is None:
        if s.dtype not in NUMBERS:
            raise DTypeError(f"tensor {name!r} is {s.dtype}, which GGUF has no type for")
        return NUMBERS[s.dtype]
    kind = {(4, False, 8): "Q4_0", (4, True, 0): "Q4_1"}.get((p.bits, p.affine, p.zero), "Q8_0" if p.bits == 8 else "")
    if p.axis != 0 or p.size != 32 or s.shape[1] % 32 or not kind or (p.affine and p.bits == 8):
        raise DTypeError(
            f"tensor {name!r} of {s.shape}, {p.bits} bits{' affine' if p.affine else ''} in blocks of {p.size}: GGUF "
            f"has no such blocks; it holds {FORMS}, of rows that blocks of 32 fill"
        )
    return TYPES[kind]


def _nbytes(s: Snapshot, kind: int) -> int:
    block = BLOCKS.get(kind)
    return int(s.dtype.nbytes(s.size)) if block is None else s.size // block.weights_each * block.nbytes


def _blocks(name: str, packed: Packed) -> memoryview:
    """The bytes of a weight's blocks."""
    levels, scale, least = packed.read()
    backend = levels.backend
    levels = levels.reshape((-1, 32))
    half = scale.reshape((-1, 1)).astype(dtypes.float16)
    if bool((half.astype(dtypes.float32) != scale.reshape((-1, 1))).any()):
        raise DTypeError(
            f"tensor {name!r}: its scales are no numbers of float16, as those of GGUF are; it holds {FORMS}"
        )
    parts = [_bytes(half)]
    if least is not None:
        half = least.reshape((-1, 1)).astype(dtypes.float16)
        if not bool(half.isfinite().all()):
            raise DTypeError(
                f"tensor {name!r}: the minimum of a block of Q4_1 is float16, at most 65504, and does not hold "
                f"{float(abs(least).max().item()):.6g}; write a burnpack or safetensors"
            )
        parts.append(_bytes(-half))
    if packed.bits == 8:
        parts.append(_bytes((levels.astype(dtypes.int16) - packed.zero).astype(dtypes.int8)))
    else:
        parts.append(levels[:, :16] | (levels[:, 16:] << 4))
    return memoryview(backend.to_bytes(concat(parts, 1)))


def _bytes(x: Tensor) -> Tensor:
    """(n, k) elements as their bytes, uint8 (n, k * width)."""
    backend = x.backend
    found: Tensor = backend.from_bytes(backend.to_bytes(x), dtypes.uint8, (x.shape[0], x.shape[1] * x.dtype.itemsize))
    return found
