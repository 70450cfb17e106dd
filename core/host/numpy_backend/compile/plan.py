"""A plan: the list of NumPy calls for a model and the shapes of its inputs, with the memory that they work in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ....backend.tracing import Trace, ValueNeeded
from ....errors import IndexingError
from ....tensor import Tensor
from .. import NumpyBackend
from ..storage import Array, numpy_dtype
from . import counts, exact_sums, grids, merging, multipliers, relus, requantizing, rows, scales
from .blocks import grouped, lifetimes
from .calling import called, quiet
from .layout import channels_last
from .lowering import lower
from .memory import Memory, address
from .paying import converted, pays
from .spread import spread_scales
from .steps import Step, Writer
from .tracing import Tracing, Value, assembled, trace

_copy = np.copyto  # an attribute of a module takes longer
_ALONE = ("tensor", 0)  # what a model returns that gives one tensor
_SPARE = 2  # sets of buffers that a plan keeps: overlapping calls use one each


def _parts(structure: Any) -> list[Any]:
    """The results where they are nothing but tensors, else something that is none."""
    kind, parts = structure
    flat: list[Any] = [structure] if kind == "tensor" else parts if kind in (list, tuple) else [("value", None)]
    return flat


def _order(traced: Trace) -> list[int] | None:
    if traced.structure[0] is list:  # one result, a list: several results are a tuple
        return None
    flat = _parts(traced.structure)
    if any(numpy_dtype(v.dtype).isbuiltin != 1 for v in traced.roots) or any(k != "tensor" for k, _ in flat):
        return None
    numbers: list[int] = [number for _, number in flat]
    return numbers if len(set(numbers)) == len(numbers) else None


class Bound:
    """The steps of a plan in one set of buffers. Only one call at a time may use it."""

    __slots__ = ("copies", "inputs", "memory", "outputs", "quiet", "steps")

    def __init__(self, plan: Plan, memory: Memory) -> None:
        self.memory = memory
        self.inputs: list[Array] = [memory.relocated(a) for a in plan.input_arrays]
        self.outputs: list[Array] = [memory.relocated(a) for a in plan.root_arrays]
        self.copies = list(zip(self.inputs, plan.inputs, strict=True))
        self.steps = [called(s.function, [memory.relocated(a) for a in s.args]) for s in plan.steps]
        self.quiet = quiet()

    def run(self) -> None:
        """Run the steps."""
        self.quiet.run(self._run)

    def run_for(self, given: Sequence[Any]) -> None:
        """Copy the arrays of all arguments, and run the steps."""
        self.quiet.run(self._run_for, given)

    def _run(self) -> None:
        for function, args in self.steps:
            function(*args)

    def _run_for(self, given: Sequence[Any]) -> None:
        for array, position in self.copies:
            _copy(array, given[position])
        for function, args in self.steps:
            function(*args)


class Plan:
    """A model traced for inputs of given dtypes and shapes.

    steps: the calls, over arrays without memory; pays: whether they are quicker than the model itself, which otherwise
    runs; nbytes: what one set of buffers takes; inputs: the positions of the
    arguments that the results depend on; order: the number of each result's array, where the results are a tensor or a
    tuple of tensors, of dtypes that NumPy has itself, else None; key, fits: the kinds and shapes of
    the arguments that it was made for, and whether arguments are such (matching.py), or None where they are not all
    Tensors.
    """

    held: frozenset[int] = frozenset()  # the arguments that no step may overwrite (training.py)

    def __init__(self, function: Any, arguments: list[Any], eager: NumpyBackend, fixed: Collection[int]) -> None:
        self.key: Any = None
        self.fits: Callable[..., bool] | None = None
        traced = self._traced(function, arguments, eager, fixed)
        self._check(traced)
        self.backend = eager
        self.structure = traced.structure
        merging.merge(traced)
        integers = converted(traced)
        exact_sums.keep_floats(traced)
        grids.keep_floats(traced)
        scales.fold(traced)
        requantizing.shorten(traced)
        multipliers.fold(traced)
        relus.delay(traced)
        counts.from_masks(traced)
        rows.as_linear(traced)
        writer = Writer(traced, channels_last(traced.calls), self.held, repeats=True)
        used = {v for call in writer.calls for v in call.operands()} | set(traced.roots)
        values = [v for v in traced.inputs if v in used]
        for value in values:
            writer.out(value)
        lower(writer)
        self.inputs = [v.index for v in values]
        self.dtypes = [v.dtype for v in traced.roots]
        self.order = _order(traced)
        self.input_arrays = [writer.array(v) for v in values]
        self.root_arrays = [writer.array(v) for v in traced.roots]
        kept = [*self.input_arrays, *self.root_arrays]
        made = all(kind == "tensor" for kind, _ in _parts(self.structure))
        ends = self.input_arrays, self.root_arrays
        self.pays = bool(fixed) or not made or traced.shares or pays(writer, *ends, integers)
        spread_scales(writer.steps, writer.buffers, kept)
        groups = grouped(writer.steps, writer.buffers, kept)
        self.steps: list[Step] = [s for group in groups for s in group]
        lifetimes(groups, writer.buffers, self.input_arrays, self.root_arrays)
        self._buffers = writer.buffers
        self._parts = None if self.steps else self._parts_of_arguments()
        self._free: list[Bound] = []
        self._allocate()

    def _traced(self, function: Any, arguments: list[Any], eager: NumpyBackend, fixed: Collection[int]) -> Trace:
        return trace(function, arguments, Tracing(eager), fixed)

    def _allocate(self) -> None:
        """Give the buffers memory."""
        self._arena = self._buffers.arrange()
        first = Memory(self._buffers, self._arena)
        self.nbytes = first.nbytes
        self._free.append(Bound(self, first))

    def _parts_of_arguments(self) -> list[tuple[int, Any]] | None:
        """Of each result, (the position of the argument that it is a part of, where it lies there); None if one is
        none."""
        whole: dict[int, tuple[int, Array]] = {}
        for position, a in zip(self.inputs, self.input_arrays, strict=True):
            buffer = self._buffers.of(a)
            if buffer is not None and buffer.fill is None and a.flags.c_contiguous and a.nbytes == buffer.nbytes:
                whole[id(buffer)] = position, a
        found: list[tuple[int, Any]] = []
        for root in self.root_arrays:
            position, a = whole.get(id(self._buffers.of(root)), (-1, root))
            if not root.size and whole:  # it may begin outside of its argument
                position = next(iter(whole.values()))[0]
                found.append((position, (root.shape, root.dtype, 0, None)))
            elif position < 0:
                return None
            else:
                found.append((position, (root.shape, root.dtype, address(root) - address(a), root.strides)))
        return found

    @staticmethod
    def _check(traced: Trace) -> None:
        values: list[Value] = [*traced.inputs, *(v for call in traced.calls for v in call.results)]
        for value in values:
            if value.dtype.kind == "string":
                raise ValueNeeded("the model uses strings, which a plan cannot hold")

    def __repr__(self) -> str:
        lines = [f"{len(self.steps)} calls of NumPy in {self.nbytes} bytes"]
        return "\n".join(lines + [f"  {step!r}" for step in self.steps])

    def arrays(self, given: Sequence[Any]) -> list[Array]:
        """The results for the arrays of all arguments. Calls of several threads may overlap: each has its buffers."""
        if self._parts is not None and all(given[i].flags.c_contiguous for i, _ in self._parts):
            return [
                np.ndarray(shape, dtype, given[i], offset, strides).copy()
                for i, (shape, dtype, offset, strides) in self._parts
            ]
        try:
            bound = self._free.pop()
        except IndexError:
            bound = Bound(self, Memory(self._buffers, self._arena))
        try:
            bound.run_for(given)
        except IndexError as error:
            raise IndexingError(str(error)) from None
        out = [a.copy() for a in bound.outputs]
        # The buffers of an interrupted call are not reused.
        if len(self._free) < _SPARE:
            self._free.append(bound)
        return out

    def finish(self, arrays: list[Array]) -> Any:
        """The model's result from those of `arrays`."""
        if self.structure == _ALONE:
            return Tensor(arrays[0], self.dtypes[0], arrays[0].shape, self.backend)
        found = [Tensor(a, d, a.shape, self.backend) for a, d in zip(arrays, self.dtypes, strict=True)]
        return assembled(self.structure, found)
