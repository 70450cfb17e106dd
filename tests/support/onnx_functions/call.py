"""One node of ONNX as a call of emberlet's functions: its inputs, attributes and what it must return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import emberlet as el
import ml_dtypes
import numpy as np
import onnx
from emberlet import dtypes
from emberlet.backend import Backend
from emberlet.tensor import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Handler = Callable[["Call"], Any]

HANDLERS: dict[str, Handler] = {}
"""How to call emberlet for each operator; those of com.microsoft as "com.microsoft.Attention"."""


def handles(*operators: str) -> Callable[[Handler], Handler]:
    """Register a function of one Call for operators; it returns a tensor, or a sequence of them or None."""

    def register(handler: Handler) -> Handler:
        for operator in operators:
            HANDLERS[operator] = handler
        return handler

    return register


def key(node: onnx.NodeProto) -> str:
    """The operator's name, with its domain unless that is the standard's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


class Call:
    """A node, the arrays it is fed (None for an input left out), and the backend to compute on."""

    def __init__(self, node: onnx.NodeProto, arrays: Sequence[Array | None], backend: Backend, opset: int = 25) -> None:
        self.node = node
        self.arrays = list(arrays)
        self.backend = backend
        self.opset = opset
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}

    def array(self, i: int) -> Array | None:
        return self.arrays[i] if i < len(self.arrays) else None

    def tensor(self, i: int) -> Any:
        """Input i as a tensor; None where it is left out."""
        array = self.array(i)
        return None if array is None else to_tensor(array, self.backend)

    def tensors(self, start: int = 0) -> list[Any]:
        return [self.tensor(i) for i in range(start, len(self.arrays))]

    def value(self, i: int, default: Any = None) -> Any:
        """Input i as Python numbers: a scalar for one without axes or of one element, else nested lists."""
        array = self.array(i)
        if array is None or not array.size:
            return default
        return array.tolist() if array.size > 1 else array.reshape(-1)[0].item()

    def values(self, i: int) -> Any:
        """Input i as a list; None where it is left out or empty."""
        array = self.array(i)
        return None if array is None or not array.size else array.reshape(-1).tolist()

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute, text as str."""
        found = self.attributes.get(name, default)
        if isinstance(found, bytes):
            return found.decode()
        if isinstance(found, list) and found and isinstance(found[0], bytes):
            return [v.decode() for v in found]
        return found

    def pads(self, spatial: int, name: str = "pads") -> Any:
        """ONNX's pads as (low, high) pairs; 0 where there are none."""
        pads = self.get(name)
        return tuple(zip(pads[:spatial], pads[spatial:], strict=True)) if pads else 0

    def wants(self, i: int) -> bool:
        """Whether output i is asked for."""
        return i < len(self.node.output) and bool(self.node.output[i])


def to_tensor(array: Array, backend: Backend) -> Tensor:
    array = np.asarray(array)
    if array.dtype.kind in "OUS":
        return backend.from_list([str(v) for v in array.reshape(-1)], dtypes.string, array.shape)
    dtype = dtypes.dtype(array.dtype.name)
    if dtype.bits >= 8:
        return backend.from_bytes(np.ascontiguousarray(array).tobytes(), dtype, array.shape)
    return backend.from_list(array.astype(np.float32).reshape(-1).tolist(), dtype, array.shape)


def to_array(x: Tensor) -> Array:
    """The elements in the NumPy dtype of the same name, narrow ones in that of ml_dtypes."""
    flat = x.backend.to_list(x)
    if x.dtype is dtypes.string:
        return np.array(flat, object).reshape(x.shape)
    target = np.dtype(getattr(ml_dtypes, x.dtype.name, None) or x.dtype.name)
    if x.dtype.bits <= 8 and x.dtype.is_float:
        return np.array(flat, np.float32).astype(target).reshape(x.shape)
    return np.array(flat).astype(target).reshape(x.shape)


def run(call: Call) -> list[Array | None]:
    """The outputs of emberlet for a call."""
    out = HANDLERS[key(call.node)](call)
    if isinstance(out, Tensor):
        out = [out]
    return [None if x is None else to_array(x) for x in out]


def backend_of(name: str) -> Backend:
    return el.backend.get_backend(name)


def close(found: Array, expected: Array, rtol: float, atol: float, levels: int = 0) -> None:
    """Raise AssertionError unless shape, dtype and elements agree; integers may differ by `levels`."""
    assert found.shape == expected.shape, f"shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind in "OUS":
        assert found.reshape(-1).tolist() == [str(v) for v in expected.reshape(-1)]
        return
    assert found.dtype.name == expected.dtype.name, f"dtype {found.dtype}, expected {expected.dtype}"
    if "float" in expected.dtype.name:
        wide = np.float64
        if expected.dtype.itemsize == 2:
            rtol = max(rtol, 2 * float(ml_dtypes.finfo(expected.dtype).eps))  # two units in the last place
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)
    else:
        np.testing.assert_allclose(found.astype(np.int64), expected.astype(np.int64), rtol=0, atol=levels)
