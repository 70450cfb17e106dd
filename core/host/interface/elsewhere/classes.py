"""Classes that Burn's book shows and that are a tuple, a backend or a function here: for code carried over from it."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any, NamedTuple

from ....errors import ArgumentError

Shape: type[tuple[int, ...]] = tuple


class _Devices(type):
    NAME: str | None = None

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, import_module("emberlet.backend").Backend) and cls.NAME in (None, value.name)


class Device(metaclass=_Devices):
    """Burn's device: a backend is one here. `Device(index)` is the default backend on its device of that number; raises
    BackendError if that backend has one device only."""

    NAME: str | None = None

    def __new__(cls, index: int = 0) -> Any:
        get_backend = import_module("emberlet.backend").get_backend
        first = get_backend(cls.NAME)
        return get_backend(re.sub(r"(:\d+)?$", f":{index}", repr(first), count=1)) if index else first

    @classmethod
    def default(cls) -> Any:
        """The default backend, or this kind's. Raises BackendError where there is none."""
        return cls()


class WgpuDevice(Device):
    """The GPU."""

    NAME = "wgpu"


class NdArrayDevice(Device):
    """NumPy."""

    NAME = "numpy"


def __getattr__(name: str) -> Any:
    if name not in _BACKENDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    file, found = _BACKENDS[name]
    backend = getattr(import_module(file), found)
    backend.__class_getitem__ = classmethod(_typed)
    globals()[name] = backend
    return backend


def _typed(backend: Any, types: Any) -> Any:
    """`Wgpu[float, int]`, in Rust `Wgpu<f32, i32>`: the backend's class, since dtypes belong to tensors."""
    dtypes = import_module("emberlet.dtypes")
    allowed = ((float, dtypes.float32), (int, dtypes.int32, dtypes.int64))
    given = types if isinstance(types, tuple) else (types,)
    if len(given) > 2 or not all(any(t is k for k in known) for t, known in zip(given, allowed, strict=False)):
        found = ", ".join(getattr(t, "__name__", str(t)) for t in given)
        raise ArgumentError(
            f"{backend.__name__}[{found}]: write [float, int]; other dtypes are given to tensors, as in "
            "zeros(shape, dtype='float16')"
        )
    return backend


class TensorPrimitive:
    """A tensor as a backend's functions take it, which is as it is here. data: its value on the backend."""

    def __init__(self, tensor: Any) -> None:
        self._tensor, self.data = tensor, tensor.data

    Float = classmethod(lambda cls, tensor: cls(tensor))

    def tensor(self) -> Any:
        """The tensor."""
        return self._tensor


class ModuleVisitor:
    """What `module.visit` calls for every parameter: define visit_float, visit_int or visit_bool (id, tensor)."""

    def visit_float(self, id: Any, tensor: Any) -> None:
        """A parameter of floats; nothing by default."""

    def visit_int(self, id: Any, tensor: Any) -> None:
        """A parameter of integers; nothing by default."""

    def visit_bool(self, id: Any, tensor: Any) -> None:
        """A parameter of bools; nothing by default."""


class ModuleMapper:
    """What `module.map` calls for every parameter: define map_float, map_int or map_bool (id, tensor) -> tensor."""

    def map_float(self, id: Any, tensor: Any) -> Any:
        """A parameter of floats; as it is by default."""
        return tensor

    def map_int(self, id: Any, tensor: Any) -> Any:
        """A parameter of integers; as it is by default."""
        return tensor

    def map_bool(self, id: Any, tensor: Any) -> Any:
        """A parameter of bools; as it is by default."""
        return tensor


class QuantizationType:
    """The type of quantized values: QInt8."""

    QInt8 = 8


class QuantizationScheme:
    """How values are quantized: PerTensorAffine or PerTensorSymmetric of a type."""

    def __init__(self, mode: str, bits: int) -> None:
        self.mode, self.bits = mode, bits

    @classmethod
    def PerTensorAffine(cls, type: int) -> QuantizationScheme:
        """One scale and one zero point for a tensor."""
        return cls("affine", type)

    @classmethod
    def PerTensorSymmetric(cls, type: int) -> QuantizationScheme:
        """One scale for a tensor, around 0."""
        return cls("symmetric", type)


class MinMaxCalibration:
    """From the smallest to the largest value."""

    NAME = "min-max"


class Quantizer:
    """What `module.quantize_weights(quantizer)` does."""

    def __init__(self, calibration: Any, scheme: QuantizationScheme) -> None:
        if not isinstance(calibration, MinMaxCalibration) and calibration is not MinMaxCalibration:
            raise ArgumentError(f"Quantizer takes MinMaxCalibration() first, found {calibration!r}")
        if not isinstance(scheme, QuantizationScheme):
            raise ArgumentError(f"Quantizer takes a QuantizationScheme second, found {scheme!r}")
        self.calibration, self.scheme = calibration, scheme

    def quantize(self, module: Any) -> Any:
        """Quantize the weights of a module; returns it."""
        module.quantize_weights(self.scheme.bits, self.scheme.mode, "tensor", self.calibration.NAME)
        return module


class DataLoaderBuilder:
    """Makes a DataLoader. Each method returns the builder."""

    def __init__(self, batcher: Any = None) -> None:
        self._options: dict[str, Any] = {"batcher": batcher}

    def _with(self, **options: Any) -> DataLoaderBuilder:
        self._options.update(options)
        return self

    def batch_size(self, batch_size: int) -> DataLoaderBuilder:
        """How many items a batch has."""
        return self._with(batch_size=batch_size)

    def shuffle(self, seed: int) -> DataLoaderBuilder:
        """Another order for each epoch."""
        return self._with(shuffle=seed)

    def num_workers(self, num_workers: int) -> DataLoaderBuilder:
        """Threads that make batches ahead."""
        return self._with(workers=num_workers)

    def set_device(self, device: Any) -> DataLoaderBuilder:
        """Where batches are moved to."""
        return self._with(backend=device)

    def build(self, dataset: Any) -> Any:
        """The DataLoader. Raises ArgumentError."""
        return import_module("emberlet.data").DataLoader(dataset, **self._options)


class RecordType:
    """The formats in which `ModelGen` writes weights, other than burnpacks."""

    NamedMpk = "NamedMpkFileRecorder"
    NamedMpkGz = "NamedMpkGzFileRecorder"
    PrettyJson = "PrettyJsonFileRecorder"


class ModelGen:
    """What `codegen.generate` does, as Burn's build scripts write it. Each method returns the builder."""

    def __init__(self) -> None:
        self._inputs: list[Any] = []
        self._out: Any = None
        self._record_type: str | None = None
        self._options: dict[str, Any] = {}

    def input(self, path: str | os.PathLike[str]) -> ModelGen:
        """An ONNX file; several calls, several files."""
        self._inputs.append(path)
        return self

    def out_dir(self, path: str | os.PathLike[str]) -> ModelGen:
        """Where modules and weights are written."""
        self._out = path
        return self

    def half_precision(self, half: bool) -> ModelGen:
        """Store floats as float16."""
        self._options["half"] = half
        return self

    def embed_states(self, embed: bool) -> ModelGen:
        """Write the weights into the module."""
        self._options["embed"] = embed
        return self

    def record_type(self, record_type: str) -> ModelGen:
        """A RecordType in place of a burnpack, for models that run in Python on a computer: microcontrollers, browsers
        and the tools read burnpacks. Raises ArgumentError for another type."""
        if record_type not in vars(RecordType).values():
            raise ArgumentError(
                f"record_type({record_type!r}): give RecordType.NamedMpk, NamedMpkGz or PrettyJson; leave it out for a "
                "burnpack"
            )
        self._record_type = record_type
        return self

    def run_from_script(self) -> list[Any]:
        """Write; what `codegen.generate` returns for each file. Raises ArgumentError without files or folder, or for
        embedded weights with a record type, and what `generate` raises."""
        if not self._inputs or self._out is None:
            raise ArgumentError("ModelGen: give input(path) and out_dir(path) before run_from_script()")
        if self._record_type is None:
            generate = import_module("emberlet.codegen").generate
            return [generate(path, self._out, **self._options) for path in self._inputs]
        if self._options.get("embed"):
            raise ArgumentError("ModelGen: weights in the module are a burnpack; leave record_type or embed_states out")
        recorded = import_module("emberlet.codegen.recorded").generate
        return [recorded(path, self._out, self._record_type, **self._options) for path in self._inputs]

    run_from_cli = run_from_script


class SourceTemplate:
    """The text of a kernel with placeholders `{{ name }}`; `launch` of the wgpu backend takes its source and values."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.values: dict[str, Any] = {}

    def register(self, name: str, value: Any) -> SourceTemplate:
        """The value of a placeholder."""
        self.values[name] = value
        return self


def kernel_wgsl(path: str | os.PathLike[str]) -> SourceTemplate:
    """The kernel in a .wgsl file. Raises OSError."""
    with open(path, encoding="utf-8") as file:
        return SourceTemplate(file.read())


class CubeDim(NamedTuple):
    """The size of a workgroup: a value for the placeholders of a kernel."""

    x: int
    y: int = 1
    z: int = 1


class CubeCount:
    """How many workgroups a kernel runs: `groups` of `launch`."""

    @staticmethod
    def Static(x: int, y: int, z: int) -> tuple[int, int, int]:
        """x, y and z of them."""
        return x, y, z


_HERE = __name__
_DATA = ("emberlet.data", "StackBatcher")
_RECORDERS = (
    "BinBytesRecorder BinFileRecorder BinGzFileRecorder CompactRecorder DefaultFileRecorder DoublePrecisionSettings "
    "FullPrecisionSettings HalfPrecisionSettings JsonGzFileRecorder LoadArgs NamedMpkFileRecorder "
    "NamedMpkGzFileRecorder PrecisionSettings PrettyJsonFileRecorder PyTorchFileRecorder Recorder"
).split()
_NAMES = (
    "CubeCount CubeDim Device MinMaxCalibration ModuleMapper ModuleVisitor NdArrayDevice QuantizationScheme "
    "QuantizationType Quantizer Shape SourceTemplate TensorPrimitive WgpuDevice kernel_wgsl"
).split()
_BACKENDS = {
    "NdArray": ("emberlet.host.numpy_backend", "NumpyBackend"), "Wgpu": ("emberlet.wgpu_backend", "WgpuBackend"),
}  # fmt: skip
# package -> name -> (module, name there)
CLASSES: dict[str, dict[str, tuple[str, str]]] = {
    "emberlet": {
        "Autodiff": ("emberlet.autodiff", "Autodiff"), "AutodiffBackend": ("emberlet.autodiff", "Autodiff"),
        "NdArray": (_HERE, "NdArray"), "Wgpu": (_HERE, "Wgpu"),
        "Record": ("emberlet.module.record", "Record"),
        "Float": ("builtins", "float"), "Int": ("builtins", "int"), "Bool": ("builtins", "bool"),
        **{n: (_HERE, n) for n in _NAMES},
    },
    "emberlet.store": {n: ("emberlet.store.recorders", n) for n in _RECORDERS},
    "emberlet.data": {
        "Batcher": _DATA, "BatchDataLoader": ("emberlet.data", "DataLoader"),
        "MultiThreadDataLoader": ("emberlet.data", "DataLoader"), "DataLoaderBuilder": (_HERE, "DataLoaderBuilder"),
    },
}  # fmt: skip
