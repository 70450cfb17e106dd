"""Tensors in a PyTorch pickle: storages, views of them, and the functions that rebuild them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ... import dtypes
from ...dtypes import DType
from ...errors import FormatError
from ...shapes import strides as row_major
from ..reading import Bytes
from .pickles import Known, Unknown

STORAGES = {
    "DoubleStorage": dtypes.float64, "FloatStorage": dtypes.float32, "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16, "LongStorage": dtypes.int64, "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16, "CharStorage": dtypes.int8, "ByteStorage": dtypes.uint8, "BoolStorage": dtypes.bool,
    "UntypedStorage": dtypes.uint8, "QInt8Storage": dtypes.int8, "QUInt8Storage": dtypes.uint8,
    "QInt32Storage": dtypes.int32,
}  # fmt: skip
DTYPES = {
    "float64": dtypes.float64, "double": dtypes.float64, "float32": dtypes.float32, "float": dtypes.float32,
    "float16": dtypes.float16, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "int64": dtypes.int64,
    "long": dtypes.int64, "int32": dtypes.int32, "int": dtypes.int32, "int16": dtypes.int16, "short": dtypes.int16,
    "int8": dtypes.int8, "uint8": dtypes.uint8, "uint16": dtypes.uint16, "uint32": dtypes.uint32,
    "uint64": dtypes.uint64, "bool": dtypes.bool, "float8_e4m3fn": dtypes.float8_e4m3fn,
    "float8_e5m2": dtypes.float8_e5m2, "float8_e4m3fnuz": dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": dtypes.float8_e5m2fnuz, "float8_e8m0fnu": dtypes.float8_e8m0fnu,
}  # fmt: skip
QUANTIZERS = ("per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric")
LARGEST = 3.4e38  # of a scale: float32
WRAPPER = "torch._utils._rebuild_wrapper_subclass"
MAX_RANK = 64
EXPANDED = 16 << 20  # bytes by which a view may exceed sixteen times its storage


class Storage:
    """A contiguous run of elements in the file, looked up by its key; a view begins `offset` elements into its root
    storage."""

    __slots__ = ("count", "dtype", "key", "offset")

    def __init__(self, dtype: DType, key: str, count: int, offset: int = 0) -> None:
        self.dtype = dtype
        self.key = key
        self.count = count
        self.offset = offset


class TensorView:
    """A tensor: a view of a storage. offset and strides count elements; scales: of a quantized tensor its scale, zero
    point and axis, numbers or for each index along the axis, or, with None as axis, for each block; else None."""

    __slots__ = ("dtype", "offset", "scales", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DType | None = None,
    ) -> None:
        self.storage = storage
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = storage.dtype
        self.scales: tuple[Any, Any, int | None] | None = None

    def span(self) -> tuple[int, int]:
        """(first, last + 1) element of the storage that it covers."""
        if 0 in self.shape:
            return self.offset, self.offset
        return self.offset, self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + 1

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements are contiguous and in order."""
        expected = row_major(self.shape)
        return 0 in self.shape or all(
            n == 1 or s == u for n, s, u in zip(self.shape, self.strides, expected, strict=True)
        )


def _integers(value: Any, what: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)) or len(value) > MAX_RANK:
        raise FormatError(f"a tensor's {what} is not a tuple of at most {MAX_RANK} integers")
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in value):
        raise FormatError(f"a tensor's {what} is not of unsigned integers")
    return tuple(value)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> Any:
    storage = storage_of(storage) or storage
    if isinstance(storage, Unknown):  # of complex numbers, say
        return Unknown(storage.name, (storage,))
    if not isinstance(storage, Storage) or type(offset) is not int or not 0 <= offset < 1 << 63:
        raise FormatError("a tensor is made from something other than a storage")
    shape, strides = _integers(shape, "shape"), _integers(strides, "strides")
    if len(shape) != len(strides):
        raise FormatError(f"a tensor has {len(shape)} axes and {len(strides)} strides")
    view = TensorView(storage, offset, shape, strides)
    count = prod(shape)
    if count >= 1 << 63:
        raise FormatError(f"the product of a tensor's shape {shape} overflows")
    first, end = view.span()
    if end > storage.count and first != end:
        raise FormatError(
            f"a tensor of shape {shape} ends at element {end} of a storage of {storage.count}"
        )  # fmt: skip
    if count * view.dtype.itemsize > EXPANDED + 16 * storage.count * view.dtype.itemsize:
        raise FormatError(f"a tensor of shape {shape} is a view of only {storage.count} elements")
    return view


def _tensor_v3(
    storage: Any, offset: Any, shape: Any, strides: Any, _grad: Any, _hooks: Any, dtype: Any, *_: Any
) -> Any:
    """A tensor of a dtype without its own storage type: `offset` and strides count its elements."""
    if isinstance(storage, Storage) and isinstance(dtype, DType):
        count = storage.count * storage.dtype.itemsize // dtype.itemsize
        storage = Storage(dtype, storage.key, count, storage.offset * storage.dtype.itemsize // dtype.itemsize)
        return _tensor(storage, offset, shape, strides)
    return Unknown("torch.Tensor", ())


def _quantized(storage: Any, offset: Any, shape: Any, strides: Any, params: Any, *_: Any) -> Any:
    """A tensor of integers with scales: (scheme, scale, zero point), or (scheme, scales, zero points, axis)."""
    view = _tensor(storage, offset, shape, strides)
    if not isinstance(view, TensorView) or not isinstance(params, tuple) or not params or params[0] not in QUANTIZERS:
        return Unknown("torch.Tensor", ())
    if "tensor" in params[0]:
        known = len(params) == 3 and type(params[1]) is float and type(params[2]) is int
        if not known or not abs(params[2]) < 1 << 31 or not abs(params[1]) < LARGEST:
            raise FormatError("a quantized tensor has no scale and zero point")
        view.scales = params[1], params[2], 0
        return view
    axis = params[3] if len(params) == 4 else None
    if type(axis) is not int or not 0 <= axis < len(view.shape):
        raise FormatError("a quantized tensor has no axis of its scales")
    plain = all(isinstance(one, TensorView) and one.scales is None for one in params[1:3])
    if not plain or any(one.shape != (view.shape[axis],) for one in params[1:3]):
        raise FormatError(f"a quantized tensor of {view.shape} has no scale and zero point along axis {axis}")
    view.scales = params[1], params[2], axis
    return view


def _blocks(state: dict[Any, Any]) -> Any:
    """torchao's Int8Tensor, IntxUnpackedToInt8Tensor and Float8Tensor: one number for each weight, with a scale and a
    zero point for each block. https://github.com/pytorch/ao"""
    view, scale, zero = (state.get(name) for name in ("qdata", "scale", "zero_point"))
    parts = [one for one in (view, scale, zero) if one is not None]
    plain = len(parts) > 1 and all(isinstance(one, TensorView) and one.scales is None for one in parts)
    if not plain or view is None or scale is None or state.get("act_pre_scale") is not None:
        return Unknown("torch.Tensor", ())
    for one in parts[1:]:
        whole = len(one.shape) in (0, len(view.shape)) and 0 not in one.shape
        if not whole or any(n % blocks for n, blocks in zip(view.shape, one.shape)):
            raise FormatError(f"a quantized tensor of {view.shape} has scales or zero points of {one.shape}")
    view.scales = scale, zero or 0, None
    return view


def _size(values: Any = ()) -> Any:
    return tuple(values) if isinstance(values, (tuple, list)) else ()


def _list(values: Any = ()) -> Any:
    if not isinstance(values, (list, tuple)):
        raise FormatError("a list is made from something other than a list or a tuple")
    return list(values)


def _set(values: Any = ()) -> Any:
    simple = (str, int, float, bool, bytes, type(None))
    return [v for v in values if isinstance(v, simple)] if isinstance(values, (list, tuple, set)) else []


def _ordered(pairs: Any = ()) -> Any:
    """An OrderedDict, which older pickles make from a list of pairs."""
    made = {}
    for pair in pairs if isinstance(pairs, (list, tuple)) else ():
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], (str, int)):
            raise FormatError("an OrderedDict is made from something other than pairs")
        made[pair[0]] = pair[1]
    return made


def _encode(text: Any = "", encoding: Any = "latin1") -> Any:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise FormatError("bytes have an unknown encoding")
    try:
        return text.encode(encoding)
    except UnicodeError:
        raise FormatError("bytes do not match their encoding") from None


def _of_type(function: Any, _type: Any, args: Any, state: Any = None, *_: Any) -> Any:
    """A tensor of a subclass, as a plain tensor, or a quantized one of torchao's."""
    if isinstance(function, Known) and function.name == WRAPPER and isinstance(state, dict):
        return _blocks(state)
    if isinstance(function, Known) and isinstance(args, tuple):
        return function.call(*args)
    return Unknown("torch.Tensor", ())


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_qtensor": _quantized,
    "torch._utils._rebuild_parameter": lambda data, *_: data,
    "torch._utils._rebuild_parameter_with_state": lambda data, *_: data,
    "torch._tensor._rebuild_from_type_v2": _of_type,
    WRAPPER: lambda *_: Unknown("torch.Tensor", ()),
    "torch.nn.parameter.Parameter": lambda data=None, *_: data,
    "torch.nn.parameter.Buffer": lambda data=None, *_: data,
    "torch.Size": _size,
    "torch.device": lambda *args: ":".join(str(a) for a in args if isinstance(a, (str, int))),
    "collections.OrderedDict": _ordered,
    "collections.defaultdict": lambda *_: {},
    "builtins.list": _list,
    "builtins.set": _set,
    "__builtin__.set": _set,
    "builtins.frozenset": _set,
    "_codecs.encode": _encode,
}
KNOWN = {name: Known(name, function) for name, function in _FUNCTIONS.items()}


def storage_of(found: Any) -> Any:
    """The Storage of a persistent id: ("storage", type, key, device, elements) and, in old files, a view of it.

    Unknown if it is of another type, None if it is not such an id. Raises FormatError for a view past its storage.
    """
    if not isinstance(found, tuple) or len(found) < 5 or found[0] != "storage":
        return None
    kind, key, count = found[1], found[2], found[4]
    if isinstance(kind, Unknown):
        return Unknown(kind.name, ())
    if not isinstance(kind, StorageType) or not isinstance(key, str) or type(count) is not int:
        return None
    if not 0 <= count < 1 << 62:
        return None
    view = found[5] if len(found) > 5 else None
    if isinstance(view, tuple) and len(view) == 3 and type(view[1]) is int and type(view[2]) is int:
        if not 0 <= view[1] <= view[1] + view[2] <= count:
            raise FormatError("a view of a storage ends past it")
        return Storage(kind.dtype, key, view[2], view[1])
    return Storage(kind.dtype, key, count)


class StorageType:
    """`torch.FloatStorage` and the like."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


def find(module: str, name: str) -> Any:
    """The object for a name in a pickle, or None."""
    if module in ("torch", "torch.cuda", "torch.storage") and name in STORAGES:
        return StorageType(STORAGES[name])
    if module == "torch" and name in DTYPES:
        return DTYPES[name]
    if module == "torch" and name in QUANTIZERS:
        return name
    return KNOWN.get(f"{module}.{name}")


def elements(view: TensorView, data: Bytes, start: int, swap: bool) -> memoryview:
    """The elements of a view, row-major and little-endian; its storage begins at byte `start` of `data`."""
    width = view.dtype.itemsize
    first, end = view.span()
    raw = data[start + first * width : start + end * width]
    if len(raw) != (end - first) * width:
        raise FormatError("a tensor's bytes are cut off")
    if swap and width > 1:
        turned = bytearray(len(raw))
        for i in range(width):
            turned[i::width] = raw[width - 1 - i :: width]
        raw = memoryview(turned)
    if view.is_contiguous:
        return raw
    return memoryview(_gathered(raw, view.shape, view.strides, width))


def _gathered(raw: memoryview, shape: tuple[int, ...], strides: tuple[int, ...], width: int) -> bytes | bytearray:
    """The elements of a strided view, in order."""
    try:
        import numpy as np
    except ImportError:
        out = bytearray()
        _append(out, raw, 0, shape, strides, width)
        return out
    flat = np.frombuffer(raw, np.dtype(f"V{width}"))
    view = np.lib.stride_tricks.as_strided(flat, shape, [s * width for s in strides], writeable=False)
    return view.tobytes()


def _append(
    out: bytearray, raw: memoryview, at: int, shape: tuple[int, ...], strides: tuple[int, ...], width: int
) -> None:
    if not shape:
        out += raw[at * width : (at + 1) * width]
    elif len(shape) == 1 and strides[0] == 1:
        out += raw[at * width : (at + shape[0]) * width]
    else:
        for i in range(shape[0]):
            _append(out, raw, at + i * strides[0], shape[1:], strides[1:], width)
