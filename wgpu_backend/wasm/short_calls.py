"""Calls of a plan with arguments of the dtypes and shapes of the call before: of a small model, finding the plan and
making tensors takes longer than the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from emberlet.backend.opening import value_of
from emberlet.host.numpy_backend.storage import numpy_dtype
from emberlet.tensor import Tensor

from ..record.node import Node
from ..run import storage

# Storage types (run/storage.py) whose elements are the host's, and these; bool is stored as u8, too.
SAME = {"f32": "float32", "i32": "int32", "u32": "uint32", "i8": "int8", "u8": "uint8"}
_HALVED = {"int64": "i32", "uint64": "u32"}  # integers of which the lower half is stored


class ShortCalls:
    """Calls of a Planned whose inputs are copied as they are, or 64-bit integers in 32 bits. `of` makes it."""

    def __init__(self, planned: Any, arguments: Any) -> None:
        self.planned = planned
        self._kinds = [(numpy_dtype(x.dtype), x.dtype, x.shape) for x in arguments]
        self._words = {node.arg: node.word for node in planned.arguments}
        self._inputs = [(node.arg, at) for node, (at, _) in zip(planned.arguments, planned.program.inputs, strict=True)]

    @classmethod
    def of(cls, planned: Any, arguments: Any, *more: Any) -> Any:
        """None for plans and arguments that take more than copying. more: the class's further arguments."""
        if not all(isinstance(x, Tensor) and _is_plain(x.dtype) for x in arguments):
            return None
        for node in planned.arguments:
            name = "uint8" if node.dtype.is_bool and node.word == "u8" else node.dtype.name
            if SAME.get(node.word) != name and _HALVED.get(name) != node.word:
                return None
        return cls(planned, arguments, *more) if all(cls.returns(root) for root in planned.roots) else None

    @staticmethod
    def returns(root: Any) -> bool:
        """Whether a root's elements are read by `results`."""
        return bool(root.count)

    def data(self, arguments: tuple[Any, ...]) -> list[Any] | None:
        """The bytes of a call's arguments, of arrays and tensors; None if they are of other kinds, or integers that do
        not fit. Raises IndexingError as the model does."""
        if len(arguments) != len(self._kinds):
            return None
        out = []
        for i, (dtype, kind, shape) in enumerate(self._kinds):
            x = arguments[i]
            if i in self.planned.fixed:
                if not self._is_fixed(i, x):
                    return None
                out.append(b"")  # which nothing reads
                continue
            if type(x) is Tensor:
                if x.dtype is not kind or x.shape != shape:
                    return None
                x = x.data
                if type(x) is Node:
                    if x.op != "data" or x.word != self._words.get(i) or kind.name in _HALVED:
                        return None
                    out.append(x.arg)
                    continue
            if type(x) is not np.ndarray or x.dtype is not dtype or x.shape != shape:
                return None
            out.append(self._bytes(x, kind))
        if self.planned.checks:
            self._check(arguments)
        return None if None in out else out

    def _bytes(self, x: Any, kind: Any) -> Any:
        """The words of an array; None if these have 32 bits, and its integers do not fit."""
        if not x.size:
            return b""
        given = memoryview(x if x.flags.c_contiguous else x.copy()).cast("B")
        if kind.name not in _HALVED:
            return given
        return storage.widen(given, kind, x.size) if self.holds(x) else None

    def holds(self, x: Any) -> bool:
        """Whether the plan counts on integers such as an array's."""
        return True

    def _check(self, arguments: tuple[Any, ...]) -> None:
        """Raise IndexingError for an index outside its axis."""
        host = self.planned.backend.host

        def given(number: int) -> Tensor:
            x = arguments[number]
            if type(x) is Tensor and type(x.data) is Node:
                return host.from_bytes(x.backend.to_bytes(x), x.dtype, x.shape)
            array = x.data if type(x) is Tensor else x
            return host.from_bytes(array.tobytes(), *self._kinds[number][1:])

        for check in self.planned.checks:
            check.run(host, given, None)

    def _is_fixed(self, i: int, x: Any) -> bool:
        """Whether an argument has the value that the plan was made for."""
        dtype, kind, shape = self._kinds[i]
        if type(x) is Tensor:
            found = value_of(x) if x.dtype is kind and x.shape == shape else None
        else:
            found = x.tobytes() if type(x) is np.ndarray and x.dtype is dtype and x.shape == shape else None
        return bool(found == self.planned.fixed[i])

    def run(self, data: list[Any]) -> Any:
        """The model's results. Raises BackendError after `release`."""
        program = self.planned.program
        with program.lock:
            instance = program.usable()
            for place, at in self._inputs:
                instance.write(at, data[place])
            instance.run()
            found = self.results(instance, program.results)
        return self.assembled(found)

    def results(self, instance: Any, places: Any) -> list[Tensor]:
        """The roots' tensors, in memory of their own."""
        backend = self.planned.backend
        return [
            Tensor(Node("data", (), instance.read(*place), r.dtype, r.shape, r.word), r.dtype, r.shape, backend)
            for r, place in zip(self.planned.roots, places, strict=True)
        ]

    def assembled(self, tensors: list[Tensor]) -> Any:
        """What the model returns, of the roots' tensors."""
        return self.planned.assembled(tensors)


def _is_plain(dtype: Any) -> bool:
    return dtype.bits >= 8 and hasattr(np, dtype.name)
