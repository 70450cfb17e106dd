"""emberlet as an `onnx.backend.base.Backend`, so that ONNX's own test runner can drive it.

Devices: "CPU" (NumPy), "PYTHON" (no dependency), "WGPU", "WASM" (WebAssembly). Needs numpy beside onnx.
"""

from __future__ import annotations

from typing import Any

try:
    import numpy as np
    from onnx import ModelProto, NodeProto, defs, helper, numpy_helper
    from onnx.backend.base import Backend as OnnxBackend
    from onnx.backend.base import BackendRep
except ModuleNotFoundError:
    from emberlet.host.extras import require

    require("emberlet.codegen.onnx_backend", "onnx", "numpy")
    raise
from emberlet.backend import Backend, get_backend
from emberlet.dtypes import DType
from emberlet.errors import BackendError, ModelError
from emberlet.host.numpy_backend.compile import Compiled
from emberlet.host.numpy_backend.compile import compile as compile_on_numpy
from emberlet.host.sharing import arrays
from emberlet.host.sharing.arrays import to_array
from emberlet.tensor import Tensor

from .generation import load
from .reader import NEWEST_OPSET

__all__ = [
    "DEVICES", "EmberletBackend", "Prepared", "is_compatible", "prepare", "run_model", "run_node", "supports_device",
    "to_array", "to_tensor",
]  # fmt: skip
DEVICES = {"CPU": "numpy", "PYTHON": "python", "WGPU": "wgpu", "WASM": "wasm", "NATIVE": "native"}


def __dir__() -> list[str]:
    return __all__


class Prepared(BackendRep):
    """A generated model, called with NumPy arrays (lists of them for sequences, None for absent optionals).

    compiled: whether to compile it for the shapes of its inputs, on the devices "CPU" and "WGPU"; on the GPU one plan
    serves every size of the axes that the model names.
    """

    def __init__(self, model: Any, backend: Backend, compiled: bool = False) -> None:
        self.model = compile_on_numpy(model) if compiled and backend.name == "numpy" else model
        self.backend = backend
        self._planned = model.compile(backend=backend) if compiled and backend.name == "wgpu" else None

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in the model's order, as NumPy arrays (ml_dtypes' for the types NumPy lacks)."""
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        if isinstance(self.model, Compiled):
            found = self.model.arrays(given)
            if found is not None:
                return tuple(found)
        results = self._results([to_tensor(x, self.backend) for x in given])
        taken: list[Any] = []
        return tuple(_apart(to_array(r), taken) for r in (results if isinstance(results, tuple) else (results,)))

    def _results(self, given: list[Any]) -> Any:
        if self._planned is not None and all(isinstance(x, Tensor) and _has_words(x.dtype) for x in given):
            try:
                return self._planned(*given)
            except BackendError:
                pass  # 64-bit integers that a plan cannot take; any other error the model raises, too
        return self.model(*given)


def _apart(value: Any, taken: list[Any]) -> Any:
    """A result whose arrays are the caller's: writable, and sharing no memory with those in `taken`, of the results
    before it."""
    if isinstance(value, list):
        return [_apart(v, taken) for v in value]
    if isinstance(value, np.ndarray):
        if not value.flags.writeable or any(np.may_share_memory(value, t) for t in taken):
            value = value.copy()
        taken.append(value)
    return value


def _has_words(dtype: DType) -> bool:
    """Whether a plan can take elements of dtype."""
    return dtype.is_bool or (dtype.kind in ("int", "uint", "float") and dtype.bits >= (16 if dtype.is_float else 2))


class EmberletBackend(OnnxBackend):
    """prepare, run_model and supports_device of the ONNX backend interface."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device`, such as "CPU", names a backend that is available."""
        name = DEVICES.get(device.split(":")[0])
        if name is None:
            return False
        try:
            get_backend(name)
        except BackendError:
            return False
        return True

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` accepts the model."""
        try:
            cls._prepared(model, device, False)
        except ModelError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """The model, generated and loaded; on "CPU" and "WGPU" it is compiled for the shapes of its inputs.

        Raises ModelError for what is not supported, BackendError for the device.
        """
        return cls._prepared(model, device, True)

    @classmethod
    def _prepared(cls, model: ModelProto, device: str, compiled: bool) -> Prepared:
        kind, _, index = device.partition(":")
        if kind not in DEVICES:
            raise BackendError(f"there is no device {device!r}; there are {', '.join(DEVICES)}")
        backend = get_backend(DEVICES[kind] + (":" + index if index and index != "0" else ""))
        return Prepared(load(model, backend), backend, compiled)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """The outputs of a model for the given inputs, as a tuple of arrays."""
        return cls._prepared(model, device, False).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> Any:
        """One node, of kwargs["opset_version"] or the newest, typed by its inputs: arrays in the node's order."""
        names = [i for i in node.input if i]
        if len(names) != len(set(names)) or len(names) != len(inputs):
            raise ModelError(f"the node has the inputs {', '.join(names) or 'none'}, found {len(inputs)} values")
        types = [helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for v in inputs]
        infos = [
            helper.make_tensor_value_info(name, kind, np.shape(value))
            for name, kind, value in zip(names, types, inputs, strict=True)
        ]
        outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
        graph = helper.make_graph([node], "node", infos, outputs)
        opset = kwargs.get("opset_version", min(NEWEST_OPSET, defs.onnx_opset_version()))
        imports = [helper.make_opsetid("", opset)]
        if node.domain:
            imports.append(helper.make_opsetid(node.domain, kwargs.get("domain_version", 1)))
        return cls.run_model(helper.make_model(graph, opset_imports=imports), list(inputs), device)


prepare = EmberletBackend.prepare
run_model = EmberletBackend.run_model
supports_device = EmberletBackend.supports_device
is_compatible = EmberletBackend.is_compatible
run_node = EmberletBackend.run_node


def to_tensor(value: Any, backend: Backend | str) -> Any:
    """An array (a TensorProto, a list, a dict, None) as an argument for generated code."""
    if isinstance(value, list):
        return [to_tensor(v, backend) for v in value]
    if hasattr(value, "raw_data"):  # a TensorProto holds what NumPy alone cannot
        value = numpy_helper.to_array(value)
    return arrays.to_tensor(value, backend)
