"""OrtValue, OrtDevice and IOBinding: tensors and their devices. All tensors are in host memory."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from .metadata import DTYPES, NAMES

CODES = {name: code for code, name in NAMES.items()}


def dtype_named(name: str) -> Any:
    """NumPy's dtype for onnxruntime's names "float", "double", "bfloat16", …."""
    name = DTYPES.get(name, name)
    if name == "string":
        return np.dtype(object)
    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def type_of(array: Any) -> str:
    """onnxruntime's name of an array's element type."""
    if array.dtype.kind in "OUST":
        return "string"
    name = str(array.dtype.name)
    return next((ours for ours, numpy in DTYPES.items() if numpy == name), name)


class OrtDevice:
    """A device's name ("cpu") and number."""

    def __init__(self, device_type: str = "cpu", device_id: int = 0) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        """The device of this name."""
        return OrtDevice(ort_device_name, device_id)

    def device_type(self) -> str:
        """Its name."""
        return self._type

    def device_id(self) -> int:
        """Its number."""
        return self._id


class OrtValue:
    """A tensor, a list of tensors or nothing, as an input or output of a session."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """An OrtValue that shares the memory of a contiguous array; any other array is copied."""
        return OrtValue(np.asarray(numpy_obj, order="C"))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Any, element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """An OrtValue for results. element_type: a dtype of NumPy, or the number of ONNX's."""
        dtype = dtype_named(NAMES[element_type]) if isinstance(element_type, int) else np.dtype(element_type)
        return OrtValue(np.zeros(tuple(shape), dtype))

    def numpy(self) -> Any:
        """A copy of the elements. Raises RuntimeError if it is not a tensor."""
        if not self.is_tensor():
            raise RuntimeError("Only OrtValues that are Tensors are convertible to NumPy.")
        return self._value.copy()

    def update_inplace(self, np_arr: Any) -> None:
        """Copy an array's elements. Raises RuntimeError if their number or dtype differs."""
        array = np.asarray(np_arr)
        if array.dtype != self._value.dtype or array.size != self._value.size:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        self._value[...] = array.reshape(self._value.shape)

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._value.shape)

    def data_type(self) -> str:
        """Such as "tensor(float)"."""
        if self.is_tensor_sequence():
            inner = OrtValue(self._value[0]).data_type() if self._value else "tensor(float)"
            return f"seq({inner})"
        return f"tensor({type_of(self._value)})"

    def element_type(self) -> int:
        """The number of ONNX's TensorProto.DataType."""
        return CODES[type_of(self._value)]

    def device_name(self) -> str:
        """ "cpu"."""
        return "cpu"

    def has_value(self) -> bool:
        """Whether it holds anything."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        """False: there are none."""
        return False

    def data_ptr(self) -> int:
        """The address of its memory."""
        return int(self._value.ctypes.data)

    def tensor_size_in_bytes(self) -> int:
        """The size of its elements in bytes."""
        return int(self._value.nbytes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._value, dtype)

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._value.__dlpack__(*arguments, **keywords)

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()


class IOBinding:
    """Inputs and outputs bound once for several calls of `run_with_iobinding`."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Bind an array."""
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Any, buffer_ptr: int
    ) -> None:
        """Bind the memory at an address, which must stay valid; it is read at each run."""
        dtype = dtype_named(NAMES[element_type]) if isinstance(element_type, int) else np.dtype(element_type)
        memory = (ctypes.c_char * (prod(shape) * dtype.itemsize)).from_address(buffer_ptr)
        self._inputs[name] = np.frombuffer(memory, dtype).reshape(tuple(shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an OrtValue."""
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Any = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Request an output; with an address and a shape, the result is written there."""
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        dtype = dtype_named(NAMES[element_type]) if isinstance(element_type, int) else np.dtype(element_type)
        memory = (ctypes.c_char * (prod(shape) * dtype.itemsize)).from_address(buffer_ptr)
        self._outputs[name] = OrtValue(np.frombuffer(memory, dtype).reshape(tuple(shape)))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Request an output, to be written into an OrtValue."""
        self._outputs[name] = ortvalue

    def get_outputs(self) -> list[OrtValue]:
        """The results of the last run, in the order of binding."""
        return self._results

    def copy_outputs_to_cpu(self) -> list[Any]:
        """The results of the last run, as arrays."""
        return [r.numpy() if r.is_tensor() else r._value for r in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs and the results."""
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for."""
