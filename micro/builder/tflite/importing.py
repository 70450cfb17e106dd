"""Converts the operators of a .tflite file to layers, through the typed IR of ONNX models.

Every operator becomes one or a few ONNX nodes on real numbers; the grids of quantized tensors are recorded separately.
TensorFlow Lite and the device both store images as (height, width, channels), so the transpositions around a
convolution cost nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from emberlet import dtypes
from emberlet.codegen.ir.argument import ABSENT, Argument, Constant
from emberlet.codegen.ir.problem import MALFORMED, Problem, explained
from emberlet.codegen.ir.types import TensorType, UnknownType
from emberlet.codegen.ir.value import Inline, Value
from emberlet.codegen.ops import REGISTRY
from emberlet.codegen.ops.attributes import Attributes, AttributeValue
from emberlet.errors import ModelError
from emberlet.host.listing import listed

from ..graph import Graph, Grid
from ..importer.layout import StoredTensor
from ..importer.state import Importer
from ..importer.translation import translate
from ..kernels.elementwise import MapFloat
from ..kernels.state import Keep
from ..quantization.quantize import QUANTIZERS
from .arithmetic import TfliteQuantizer
from .operators import CONVERTERS
from .reading import FileGraph, FileOperator, FileTensor, read_file, values
from .table import Inputs

OPSET = 22

QUANTIZERS[True] = TfliteQuantizer

MOST_ELEMENTS = 1 << 26
"""A larger tensor cannot run on a microcontroller and would exhaust this computer's memory."""

SHARED = 8  # constants may hold this many times the elements of the file's buffers: some tensors share one
FREE = 1 << 16  # and this many more

WHOLE = ("INT32", "INT64", "INT16", "UINT32")


def read_tflite(data: bytes, name: str, origin: str = "model") -> Graph:
    """The graph of a model. Raises ModelError, which lists every problem, FormatError and UnsupportedError."""
    graphs = read_file(data, origin)
    if not graphs:
        raise ModelError(f"{origin}: holds no graph")
    converting = Converting(graphs, name)
    converting.run()
    return converting.graph()


class Converting:
    """One conversion. arguments: tensor number -> its argument in the IR; states: the variables."""

    def __init__(self, graphs: tuple[FileGraph, ...], name: str) -> None:
        self.graphs, self.name = graphs, name
        self.file = graphs[0]
        self.named = Counter(t.name for t in self.file.tensors)
        stored = sum(len(d) for d in {id(t.data): t.data for t in self.file.tensors if t.data is not None}.values())
        self.left = SHARED * stored + FREE
        self.importer = Importer(name)
        self.known: dict[str, Argument] = {}
        self.tensors: dict[int, Argument] = {}
        self.variables: dict[str, Argument] = {}
        self.assigned: dict[str, Argument] = {}
        self.handles: dict[int, str] = {}
        self.initial: dict[str, int] = {}
        self.problems: list[str] = []
        self.labels: dict[str, int] = {}
        self.once: set[str] = set()
        self.unsigned: set[str] = set()
        self.op = FileOperator("", (), (), {})
        self.count = 0
        activations = {n for o in self.file.operators for n in (*o.inputs, *o.outputs) if n >= 0}
        self.is_quantized = any(
            self.file.tensors[n].is_quantized and self.file.tensors[n].data is None for n in activations
        )
        # float64 is precise enough to recover the steps from every product of a step and a scale.
        self.real = dtypes.float64 if self.is_quantized else dtypes.float32
        self.uses = {n for o in self.file.operators for n in o.inputs} | set(self.file.outputs)

    # -- the whole ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        outputs = {self._name(n) for n in self.file.outputs}
        self.importer.outputs.read = {self._name(n) for n in self.uses} | outputs
        broken: set[int] = set()
        for n in self.file.inputs:
            try:
                self._input(n)
            except MALFORMED as problem:
                self.problems.append(f"input {n}: {explained(problem)}")
                broken.add(n)
        for k, op in enumerate(self.file.operators):
            if broken & set(op.inputs):
                broken |= set(op.outputs)
                continue
            try:
                self._convert(op)
            except MALFORMED as problem:
                self.problems.append(f"operator {k} ({op.kind}): {explained(problem)}")
                broken |= set(op.outputs)
        for n in self.file.outputs if not self.problems else ():
            try:
                self.importer.add_output(self.argument(n))
            except MALFORMED as problem:
                self.problems.append(f"output {n}: {explained(problem)}")
        try:
            if not self.problems:
                self._keep()
        except MALFORMED as problem:
            self.problems.append(f"a variable: {explained(problem)}")
        if not self.problems and not self.file.outputs:
            self.problems.append("the model has no outputs")
        if self.problems:
            raise ModelError(f"{self.name} cannot run on a microcontroller:\n{listed(self.problems)}")

    def graph(self) -> Graph:
        graph = self.importer.graph()
        return replace(graph, doubled=self.is_quantized, once=frozenset(self.once), unsigned=frozenset(self.unsigned))

    def _name(self, n: int) -> str:
        """A unique name for a tensor."""
        name = self.file.tensors[n].name or f"tensor {n}"
        return name if self.named[name] == 1 else f"{name} {n}"

    def _input(self, n: int) -> None:
        t = self._tensor(n)
        argument = Argument(self._name(n), TensorType(self._dtype(t), t.shape))
        self._remember(n, argument)
        self.importer.add_input(argument, tuple(range(len(t.shape))))
        grid = self.grid(t)
        if grid:
            self.importer.grids.tensors[self.importer.layout.held[argument.name].name] = grid

    def _tensor(self, n: int) -> FileTensor:
        if n < 0:
            raise Problem("a required input is missing")
        t = self.file.tensors[n]
        if any(d < 0 for d in t.shape) or prod(t.shape) > MOST_ELEMENTS:
            raise Problem(f"{self._name(n)!r} has shape {t.shape}; every size must be fixed")
        return t

    def _dtype(self, t: FileTensor) -> dtypes.DType:
        if t.is_quantized or t.dtype in ("FLOAT32", "FLOAT16", "FLOAT64"):
            return self.real
        if t.dtype in WHOLE:
            return dtypes.int64
        if t.dtype == "BOOL":
            return dtypes.bool
        raise Problem(
            f"tensor {t.name!r} is of type {t.dtype}, without a scale; int8 with one and float32 are supported"
        )

    def grid(self, t: FileTensor) -> Grid | None:
        """The grid of a quantized activation. Raises Problem."""
        if not t.is_quantized:
            return None
        if t.dtype not in ("INT8", "UINT8", "INT16"):
            raise Problem(
                f"tensor {t.name!r} is of type {t.dtype}; activations of int8, uint8 and int16 are supported: "
                "convert the model with these"
            )
        if len(t.scales) != 1 or len(t.zeros) != 1:
            raise Problem(f"tensor {t.name!r} has {len(t.scales)} scales; one for all of an activation is supported")
        bits = 16 if t.dtype == "INT16" else 8
        zero = t.zeros[0] + {"INT8": 128, "UINT8": 0, "INT16": 32768}[t.dtype]
        if not (0 < t.scales[0] < 1e30 and 0 <= zero < 1 << bits):
            raise Problem(f"tensor {t.name!r} has a scale of {t.scales[0]} and a zero point of {t.zeros[0]}")
        return Grid(t.scales[0], zero, bits)

    # -- operators ----------------------------------------------------------------------------------------------------

    def _convert(self, op: FileOperator) -> None:
        if op.kind not in CONVERTERS:
            raise Problem("this operator is not supported on microcontrollers")
        self.op = op
        given = [ABSENT if n < 0 or op.kind in ASKING else self.argument(n) for n in op.inputs]
        try:
            made = CONVERTERS[op.kind](self, op, given)
        except (IndexError, ValueError) as e:
            raise Problem(f"its inputs do not fit: {e}") from None
        results = [made] if isinstance(made, Argument) else list(made or ())
        if len(results) != len(op.outputs) and op.kind != "VAR_HANDLE":
            raise Problem(f"it has {len(op.outputs)} outputs, expected {len(results)}")
        for n, result in zip(op.outputs, results, strict=False):
            self._finish(n, result)

    def _finish(self, n: int, result: Argument) -> None:
        """Give a result the file's name and grid."""
        t = self._tensor(n)
        found = result.type.static_shape if isinstance(result.type, TensorType) else None
        if found is None or (found != t.shape and (t.shape or prod(found) != 1)):
            raise Problem(f"{self._name(n)!r} has shape {t.shape} in the file, but its operator gives {found}")
        grid = None if result.value is not None else self.grid(t)
        if grid is not None:
            self.on_grid(result.name, grid)
        self._remember(n, result)

    def on_grid(self, name: str, grid: Grid) -> None:
        """Put a tensor of numbers on a grid: behind a layer that changes it, if it already lies on another."""
        layout, grids = self.importer.layout, self.importer.grids.tensors
        held = layout.held.get(name)
        if held is None:
            raise Problem("a quantized tensor holds something other than numbers")
        if grids.setdefault(held.name, grid) != grid:
            out = layout.part_of(held, "regrid")
            self.importer.add(MapFloat(f"regrid {name}", (held.name,), out, layout.shapes[held.name], ()))
            grids[out] = grid
            layout.held[name] = StoredTensor(out, held.dims, held.order)

    def _remember(self, n: int, argument: Argument) -> None:
        self.tensors[n] = argument
        self.known[argument.name] = argument

    def argument(self, n: int) -> Argument:
        """The argument of a tensor that is constant or already computed. Raises Problem."""
        if n in self.tensors:
            return self.tensors[n]
        t = self._tensor(n)
        if t.data is None:
            raise Problem(f"tensor {self._name(n)!r} is read before it is computed")
        argument = self._constant(n, t)
        self._remember(n, argument)
        return argument

    def _constant(self, n: int, t: FileTensor) -> Argument:
        stored = values(t, f"tensor {self._name(n)!r}")
        self.left -= stored.size
        if self.left < 0:
            raise Problem(f"tensors share buffers: they hold more than {SHARED} times what the file does")
        if not t.is_quantized:
            kind = np.int64 if t.dtype in WHOLE else np.bool_ if t.dtype == "BOOL" else np.float32
            real: npt.NDArray[Any] = stored.astype(kind)
            return self.constant(real.astype(np.float64) if kind is np.float32 and self.is_quantized else real)
        many = len(t.scales) > 1
        if len(t.zeros) != len(t.scales):
            raise Problem(f"tensor {self._name(n)!r}: {len(t.zeros)} zero points for {len(t.scales)} scales")
        if many and not (0 <= t.axis < len(t.shape) and len(t.scales) == t.shape[t.axis]):
            raise Problem(f"tensor {self._name(n)!r}: {len(t.scales)} scales along axis {t.axis} of {t.shape}")
        along = [-1 if many and k == t.axis else 1 for k in range(len(t.shape))]
        scale = np.asarray(t.scales, np.float64).reshape(along if many else [1] * len(t.shape))
        zero = np.asarray(t.zeros, np.float64).reshape(along if many else [1] * len(t.shape))
        if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
            raise Problem(f"tensor {self._name(n)!r} has scales of {scale.min()} to {scale.max()}")
        real = (stored.astype(np.float64) - zero) * scale
        argument = self.constant(real if self.is_quantized else real.astype(np.float32))
        if self.is_quantized and t.dtype in ("INT8", "UINT8") and not many:
            grid = self.grid(t)
            assert grid is not None
            self.importer.grids.constants[argument.name] = grid
        return argument

    def constant(self, array: npt.ArrayLike, name: str = "") -> Argument:
        """An argument with an array as its value; integers become int64."""
        x = np.asarray(array)
        if x.dtype.kind in "iu":
            x = x.astype(np.int64)
        kinds = {"int64": dtypes.int64, "float32": dtypes.float32, "float64": dtypes.float64, "bool": dtypes.bool}
        value = Value(kinds[x.dtype.name], x.shape, Inline(np.ascontiguousarray(x).tobytes()))
        return Argument(name or self._fresh("constant"), TensorType(value.dtype, value.shape), Constant(value))

    def real_constant(self, array: npt.ArrayLike) -> Argument:
        return self.constant(np.asarray(array, np.float64 if self.is_quantized else np.float32))

    def _fresh(self, what: str) -> str:
        self.count += 1
        return f"{what} {self.count}"

    def node(self, kind: str, inputs: Inputs, outputs: int = 1, **attributes: AttributeValue) -> Any:
        """The result or results of an ONNX node. Raises Problem."""
        label = self._unused(self._label(kind))
        made = tuple(Argument(self._fresh(label), UnknownType()) for _ in range(outputs))
        given = tuple(inputs)
        operator = REGISTRY[("", kind)]
        node = operator.make(label, given, made, Attributes(attributes, OPSET, given, made))
        for a in given:
            self.known.setdefault(a.name, a)
        self.importer.outputs.read |= {a.name for a in made}
        if kind == "Gemm":
            self.once.add(label)
        if kind == "AveragePool" and self.file.tensors[self.op.outputs[0]].dtype == "UINT8":
            self.unsigned.add(label)
        translate(self.importer, node, self.known)
        results = [self.known[a.name] for a in made]
        return results[0] if outputs == 1 else results

    def _unused(self, label: str) -> str:
        """The name, with a number appended if an earlier layer has it, since scales are recorded by name."""
        n = self.labels[label] = self.labels.get(label, 0) + 1
        return label if n == 1 else f"{label} {n}"

    def _label(self, kind: str) -> str:
        """A name for layers: that of the operator's output, without the parts that TensorFlow adds."""
        name = self._name(self.op.outputs[0]) if self.op.outputs else self.op.kind
        return f"{kind.lower()} {name.split(';')[0].split('/')[-1]}"

    # -- what operators share -----------------------------------------------------------------------------------------

    def dims(self, a: Argument) -> tuple[int, ...]:
        shape = a.type.static_shape if isinstance(a.type, TensorType) else None
        if shape is None:
            raise Problem(f"the shape of {a.name!r} is not known")
        return shape

    def ints(self, a: Argument, what: str) -> tuple[int, ...]:
        """The elements of an integer constant. Raises Problem."""
        if a.value is None or not a.value.dtype.is_integer:
            raise Problem(f"{what} must be constant integers")
        return tuple(int(v) for v in np.frombuffer(bytes(a.value.raw()), np.int64))

    def array(self, a: Argument, what: str) -> npt.NDArray[Any]:
        """The elements of a constant. Raises Problem."""
        if a.value is None:
            raise Problem(f"{what} must be constant")
        return np.frombuffer(bytes(a.value.raw()), a.value.dtype.name).reshape(a.value.shape)

    def activated(self, a: Argument, merged: bool = False) -> Argument:
        """Apply the operator's fused activation. merged: the layer before it clamps, so there is no grid in between."""
        number = self.op.integer("FusedActivationFunction")
        if number == 0:
            return a
        bounds = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
        if number not in bounds:
            raise Problem(f"activation {number} is not supported; RELU, RELU6 and RELU_N1_TO_1 are")
        if not merged:
            grid = self.grid(self._tensor(self.op.outputs[0]))
            if grid is not None:
                self.on_grid(a.name, grid)
        low, high = bounds[number]
        limits = [self.real_constant(low), ABSENT if high is None else self.real_constant(high)]
        return self.node("Clip", [a, *limits])

    def channels_first(self, a: Argument) -> Argument:
        if len(self.dims(a)) != 4:
            raise Problem(f"the input has shape {self.dims(a)}, expected an image")
        return self.node("Transpose", [a], perm=(0, 3, 1, 2))

    def channels_last(self, a: Argument) -> Argument:
        return self.node("Transpose", [a], perm=(0, 2, 3, 1))

    # -- variables ----------------------------------------------------------------------------------------------------

    def read_variable(self, variable: str, n: int) -> Argument:
        """A variable's value: the last one assigned, or the previous inference's. Raises Problem."""
        if variable in self.assigned:
            return self.assigned[variable]
        if variable in self.variables:
            return self.variables[variable]
        t, importer = self._tensor(n), self.importer
        argument = Argument(self._fresh(f"state {variable}"), TensorType(self._dtype(t), t.shape))
        held = importer.layout.store(argument.name, t.shape, tuple(range(len(t.shape))))
        # A variable without an assignment holds zero bytes.
        first, grid = float(self.initial.get(variable, 128 if t.dtype == "INT8" else 0)), self.grid(t)
        importer.states.first[held.name] = first if grid is None else (first - grid.zero) * grid.scale
        self.variables[variable] = argument
        self.known[argument.name] = argument
        return argument

    def _keep(self) -> None:
        """Add the layers that write assigned values. Raises Problem."""
        importer = self.importer
        for variable, value in self.assigned.items():
            if variable not in self.variables:
                continue
            state = importer.layout.held[self.variables[variable].name].name
            held = importer.of(value)
            held = importer.ordered(held, tuple(range(len(held.dims))))
            if importer.layout.shapes[state] != importer.layout.shapes[held.name]:
                raise Problem(f"variable {variable!r} is assigned a tensor of another shape")
            if importer.grids.tensors.get(state) != importer.grids.tensors.get(held.name):
                raise Problem(f"variable {variable!r} is assigned a tensor with another scale")
            importer.states.kept.append(Keep(f"keep {variable}", (held.name,), state, importer.layout.shapes[state]))


ASKING = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "UNIDIRECTIONAL_SEQUENCE_LSTM")
"""Operators with inputs that are no tensors of numbers, or variables: their converters ask for the others."""
