"""Reads types and constant tensors from protobuf, and checks sizes and locations before it reads any data."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from emberlet import dtypes
from emberlet.dtypes import DType
from emberlet.dtypes.narrow import pack_codes
from emberlet.errors import ModelError
from emberlet.host.onnx_types import DTYPES

from ..ir import sizes
from ..ir.problem import Problem, quoted
from ..ir.types import MAX_RANK, AbsentType, Dim, MapType, OptionalType, SequenceType, TensorType, Type, refine
from ..ir.value import Buffer, Inline, Source, Stored, Text, Value
from ..protobuf import GraphProto, TensorProto, TypeProto, ValueInfoProto
from ..protobuf.messages import DataLocation, DataType

SHARED = 16  # tensors may hold this many times the bytes of a file of external data: some share them
FREE = 1 << 28  # and this many at any rate
MAX_DENSE = 1 << 28  # the most bytes of all sparse tensors of a model once dense


def dtype_of(code: int) -> DType:
    """The DType for a TensorProto.DataType. Raises Problem for the complex ones and unknown numbers."""
    if code not in DTYPES:
        name = DataType(code).name if code in DataType._value2member_map_ else code
        raise Problem(f"element type {name} is not supported")
    return DTYPES[code]


class Values:
    """Reads types and tensors; external data are in `folder`, if the model has one."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.dense_bytes = 0
        self.claimed: dict[Path, int] = {}  # the bytes that tensors have in each file of external data
        self.sizes: dict[str, int] = {}  # sizes of dimensions that frozen inputs have fixed

    def declared(self, info: ValueInfoProto, given: Type | None = None) -> Type:
        if not info.HasField("type") or info.type.WhichOneof("value") is None:
            if given is None:
                raise Problem(f"{info.name!r} has no type")
            return given
        if info.type.WhichOneof("value") == "tensor_type" and not info.type.tensor_type.elem_type and given is not None:
            return given
        declared = self.type(info.type)
        return declared if given is None else refine(given, declared)

    def dim(self, proto: Any) -> Dim:
        d = dim(proto)
        return self.sizes.get(d, d) if isinstance(d, str) else d

    def type(self, proto: TypeProto) -> Type:
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            t = proto.tensor_type
            if not t.HasField("shape"):
                return TensorType(dtype_of(t.elem_type))
            if len(t.shape.dim) > MAX_RANK:
                raise Problem(f"a tensor has {len(t.shape.dim)} dimensions; at most {MAX_RANK} are supported")
            return TensorType(dtype_of(t.elem_type), tuple(self.dim(d) for d in t.shape.dim))
        if kind == "sequence_type":
            return SequenceType(self.type(proto.sequence_type.elem_type))
        if kind == "optional_type":
            return OptionalType(self.type(proto.optional_type.elem_type))
        if kind == "map_type":
            value = self.type(proto.map_type.value_type)
            if not isinstance(value, TensorType):
                raise Problem("a map whose values are not tensors is not supported")
            return MapType(dtype_of(proto.map_type.key_type), value.dtype)
        if kind is None:
            return AbsentType()
        raise Problem(f"values of kind {kind} are not supported")

    def initializers(self, proto: GraphProto, problems: list[str]) -> dict[str, Value]:
        """The constants of a graph; those that cannot be read are added to `problems`."""
        out: dict[str, Value] = {}
        for t in proto.initializer:
            try:
                out[t.name] = self.value(t)
            except Problem as problem:
                problems.append(f"initializer {quoted(t.name)}: {problem}")
        for s in proto.sparse_initializer:
            try:
                out[s.values.name] = self.dense(s)
            except Problem as problem:
                problems.append(f"sparse initializer {quoted(s.values.name)}: {problem}")
        return out

    def value(self, t: TensorProto) -> Value:
        """A TensorProto as a Value; its size is checked now, its bytes are read when needed."""
        dtype = dtype_of(t.data_type)
        shape = tuple(int(d) for d in t.dims)
        if any(d < 0 for d in shape) or len(shape) > MAX_RANK:
            raise Problem(f"the shape {shape} is impossible")
        size = prod(shape)
        if t.HasField("segment"):
            raise Problem("a tensor in segments is not supported")
        if t.data_location == DataLocation.EXTERNAL:
            return Value(dtype, shape, self.external(t, dtype.nbytes(size)))
        if dtype is dtypes.string:
            if len(t.string_data) != size:
                raise Problem(f"holds {len(t.string_data)} strings, its shape {shape} needs {size}")
            return Value(dtype, shape, Text(tuple(utf8(s) for s in t.string_data)))
        expected = dtype.nbytes(size)
        if t.HasField("raw_data"):
            if len(t.raw_data) != expected:
                raise Problem(f"holds {len(t.raw_data)} bytes, its shape {shape} of {dtype} needs {expected}")
            return Value(dtype, shape, Stored(lambda: t.raw_data, (id(t),)) if size > 64 else Inline(bytes(t.raw_data)))
        found = len(_typed_field(t, dtype)) * max(8, dtype.bits) // 8
        if dtype.bits == 6:  # one element per entry, as for 8 bits and more
            expected = size
        if found != expected:
            raise Problem(f"holds {found} bytes, its shape {shape} of {dtype} needs {expected}")
        if size > 64:
            return Value(dtype, shape, Stored(lambda: _typed_data(t, dtype), (id(t),)))
        return Value(dtype, shape, Inline(_typed_data(t, dtype)))

    def external(self, t: TensorProto, expected: int) -> Source:
        entries = {e.key: e.value for e in t.external_data}
        location = entries.get("location", "")
        if self.folder is None:
            raise Problem(f"its data lies in the file {location!r}; give the model's path, not its bytes")
        parts = re.split(r"[/\\]", location)
        if (
            not location
            or os.path.isabs(location)
            or ".." in parts
            or "\0" in location
            or re.match(r"^[A-Za-z]:", location)
        ):
            raise Problem(f"its data lies at {location!r}, which is not a path inside the model's folder")
        root = self.folder.resolve()
        try:
            path = (root / location).resolve()
            if not path.is_relative_to(root):
                raise Problem(f"its data lies at {location!r}, which leads out of the model's folder")
            if not path.is_file():
                raise Problem(f"its data file {location!r} is missing")
            available = path.stat().st_size
        except (OSError, RuntimeError, ValueError) as error:  # circular links, a name too long, no permission
            raise Problem(f"its data file {quoted(location)} cannot be read: {error}") from None
        try:
            offset = int(entries.get("offset", "0"))
            length = int(entries.get("length", str(expected)))
        except ValueError:
            raise Problem("its external offset or length is not a number") from None
        if length != expected or offset < 0 or offset + length > available:
            raise Problem(f"bytes {offset} to {offset + length} of {location!r} are not the {expected} its shape needs")

        self.claimed[path] = claimed = self.claimed.get(path, 0) + length
        if claimed > max(SHARED * available, FREE):
            raise Problem(f"tensors share the bytes of {quoted(location)}: they hold over {SHARED} times what it does")

        def load() -> Buffer:
            with open(path, "rb") as f:
                f.seek(offset)
                data = f.read(length)
            if len(data) != length:
                missing = length - len(data)
                raise ModelError(f"{path}: was truncated after the model was opened; {missing} bytes are missing")
            return data

        return Stored(load, (str(path), offset, length))

    def dense(self, s: Any) -> Value:
        """A SparseTensorProto as a dense Value, whose bytes are made when needed."""
        values, indices = self.value(s.values), self.value(s.indices).ints()
        shape = tuple(int(d) for d in s.dims)
        if values.dtype.bits < 8 or values.dtype is dtypes.string:
            raise Problem(f"a sparse tensor of {values.dtype} is not supported")
        if any(d < 0 for d in shape) or len(shape) > MAX_RANK:
            raise Problem(f"the shape {shape[:8]} of a sparse tensor is impossible")
        width, count, rank, size = values.dtype.bits // 8, values.size, len(shape), prod(shape)
        self.dense_bytes += size * width
        if self.dense_bytes > MAX_DENSE:
            raise Problem(
                f"a sparse tensor of shape {shape} is too large to be made dense: "
                f"all of them may come to {MAX_DENSE} bytes"
            )
        strides = [prod(shape[k + 1 :]) for k in range(rank)]
        if len(indices) == count:
            flat = list(indices)
        elif len(indices) == count * rank:
            flat = [sum(indices[k * rank + j] * strides[j] for j in range(rank)) for k in range(count)]
        else:
            raise Problem(f"a sparse tensor has {count} values and {len(indices)} indices")
        outside = next((at for at in flat if not 0 <= at < size), None)
        if outside is not None:
            raise Problem(f"a sparse tensor has the index {outside}, outside its shape {shape}")

        def load() -> Buffer:
            data, raw = bytearray(size * width), bytes(values.raw())
            for k, at in enumerate(flat):
                data[at * width : (at + 1) * width] = raw[k * width : (k + 1) * width]
            return data

        if size <= 64:
            return Value(values.dtype, shape, Inline(bytes(load())))
        return Value(values.dtype, shape, Stored(load, ("dense", id(s))))


def dim(proto: Any) -> Dim:
    kind = proto.WhichOneof("value")
    if kind == "dim_value":
        return int(proto.dim_value) if proto.dim_value >= 0 else None
    if kind == "dim_param" and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_ .+*/()-]{0,39}", proto.dim_param):
        return sizes.ordered(str(proto.dim_param))
    return None


def utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Problem(f"the string {data[:40]!r} is not UTF-8") from None


def _typed_field(t: TensorProto, dtype: DType) -> Sequence[Any]:
    """The field that holds the elements of a tensor without raw data."""
    if dtype is dtypes.float32:
        return t.float_data
    if dtype is dtypes.float64:
        return t.double_data
    if dtype is dtypes.int64:
        return t.int64_data
    if dtype in (dtypes.uint64, dtypes.uint32):
        return t.uint64_data
    return t.int32_data  # also the bits of 16-bit floats, of packed narrow elements, and of single 6-bit floats


def _typed_data(t: TensorProto, dtype: DType) -> bytes:
    """The elements of a typed field of a tensor, as packed little-endian bytes."""
    data = _typed_field(t, dtype)
    code = {"float32": "f", "float64": "d", "int64": "q", "uint64": "Q", "uint32": "I"}.get(dtype.name)
    if code is not None:
        return array(code, data).tobytes()
    if dtype.bits == 6:
        return bytes(pack_codes(data, 6))
    width = max(1, dtype.bits // 8)
    mask = (1 << (8 * width)) - 1
    return b"".join((v & mask).to_bytes(width, "little") for v in data)
