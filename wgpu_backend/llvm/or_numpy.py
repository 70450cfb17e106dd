"""What `compile()` makes of a model on a CPU: machine code, or a plan of NumPy calls where machine code would compute
something else or cannot be made."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.errors import BackendError, UnsupportedError
from emberlet.host.numpy_backend.storage import numpy_dtype
from emberlet.sizes.questions import known_equal
from emberlet.tensor import Tensor

from ..compiled import Compiled
from ..planned import Planned
from ..record.bounds import UNKNOWN
from ..record.host_evaluation import evaluate, is_evaluated
from ..record.node import refuse_values, topological
from ..record.tracing import assemble
from .backend import NativeBackend

# What an array's elements and those in a plan's memory have in common, by the word of the latter (run/storage.py).
_SAME = {
    "f32": ("float32", np.float32),
    "i32": ("int32", np.int32),
    "u32": ("uint32", np.uint32),
    "i8": ("int8", np.int8),
    "u8": ("uint8", np.uint8),
}
MOST = (1 << 20) - 1  # the largest magnitude of 64-bit integers in inputs: token ids, and 2048 of them added up, fit
_REFUSED = (BackendError, UnsupportedError)  # there is no plan, or it does not take these arguments


class _Exact(NativeBackend):
    """Refuses what it would compute otherwise than NumPy: float64, and 64-bit integers that may not fit into 32 bits.
    Those of inputs lie within `MOST`, which `_in_range` checks in each call."""

    def given(self, dtype: Any) -> Any:
        self._admit(dtype)
        return NativeBackend.given(self, dtype)

    def _tensor(self, op: str, srcs: Any, arg: Any, dtype: Any, shape: Any) -> Tensor:
        self._admit(dtype)
        for node in srcs:
            if node.op == "input" and node.bounds is None and node.dtype.is_integer and node.dtype.bits == 64:
                node.bounds = (0 if node.dtype.kind == "uint" else -MOST, MOST)
        return NativeBackend._tensor(self, op, srcs, arg, dtype, shape)

    def _holds(self, node: Any) -> bool:
        """Raise BackendError if nothing shows that 32 bits hold the 64-bit integers of a node."""
        holds = NativeBackend._holds(self, node)
        if holds and node.bounds == UNKNOWN:
            what = node.arg if node.op in ("unary", "binary") else node.op
            raise BackendError(
                f"the results of {what!r} in {node.dtype} may need more than the 32 bits of machine code"
            )
        return holds

    def _words(self, x: Tensor) -> Any:
        """What a model looks at while it is traced, such as sizes, is computed on the host: it is little, and its
        kernels would be compiled."""
        node = x.data
        if node.op != "data" and x.size and all(n.op != "buffer" and is_evaluated(n) for n in topological([node])):
            refuse_values(node)
            evaluate([node], self.host)
        return NativeBackend._words(self, x)

    def _admit(self, dtype: Any) -> None:
        """Raise BackendError for float64."""
        if dtype is dtypes.float64:
            raise BackendError("machine code would compute its float64 in float32")


class NativeOrNumpy:
    """A compiled model: call it like the model. Results are tensors of the numpy backend.

    chosen: "native" as long as machine code computes the results, then "numpy"; refused: None, or the error because of
    which NumPy does from then on. Other attributes are those of the compiled model that it is: `plan()`, `cut`,
    `fixed`, `unopened`.
    """

    def __init__(self, model: Any, examples: Sequence[Any] = (), dims: Any = None, backend: Any = "numpy") -> None:
        self.backend = get_backend(backend)
        self.chosen = "native"
        self.refused: Exception | None = None
        self._dims = dims
        self._short: _Short | None = None
        self._compiled: Any = None
        if hasattr(model, "fork"):
            for param in model.params():
                param.val()  # what the model would draw at random is drawn once, for all its copies
            model = model.fork(self.backend)
        self.model = model
        try:
            self._compiled = Compiled(model, (), _Exact(), dims=dims)
            if examples:
                self._found(self._compiled._arguments(examples, {}))
        except _REFUSED as error:
            self._leave(self._on_numpy(examples), error, 4)

    def __repr__(self) -> str:
        return f"{self._compiled!r} on {self.chosen}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._compiled, name)

    def __reduce__(self) -> Any:
        return NativeOrNumpy, (self.model, (), self._dims, self.backend)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The model's results."""
        short = self._short
        if short is not None and not keywords:
            arrays = short.arrays(arguments)
            if arrays is not None:
                return short.run(arrays)
        if self.chosen == "numpy":
            return self._compiled(*arguments, **keywords)
        try:
            return self._computed(arguments, keywords)
        except _REFUSED as error:
            plain = self._on_numpy(())
            found = plain(*arguments, **keywords)  # where this fails too, nothing is chosen
            self._leave(plain, error, 3)
            return found

    def release(self) -> None:
        """Give the plans' memory back. The next call makes a plan again."""
        compiled, self._short = self._compiled, None
        if self.chosen == "numpy":
            compiled.release()
            return
        with compiled._lock:
            compiled._programs, compiled._open, compiled._last = {}, [], None

    async def call_async(self, *arguments: Any, **keywords: Any) -> Any:
        """`__call__`: nothing is awaited."""
        return self(*arguments, **keywords)

    def _found(self, bound: list[Any]) -> tuple[Planned, Any]:
        found = self._compiled._find(bound)
        if found is None:
            raise self._compiled.cut
        return found

    def _computed(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        bound = self._compiled._arguments(arguments, keywords)
        _in_range(bound)
        planned, sizes = self._found(bound)
        results = planned.finish(planned.program.run(planned.words(bound, sizes), sizes), sizes)
        self._short = _Short.of(planned, bound, self.backend) if sizes is None else None
        return _moved(results, self.backend)

    def _on_numpy(self, examples: Sequence[Any]) -> Any:
        from emberlet.host.numpy_backend.compile import compile

        return compile(self.model, *examples, backend=self.backend, dims=self._dims)

    def _leave(self, plain: Any, error: Exception, level: int) -> None:
        """Let a plan of NumPy calls compute the results from now on, and say so, once. level: of the caller's code."""
        self._compiled, self.chosen, self.refused, self._short = plain, "numpy", error.with_traceback(None), None
        name = getattr(self.model, "__name__", type(self.model).__name__)
        text = f'{name} is compiled for NumPy (compile(backend="numpy") asks for that), not to machine code: {error}'
        warnings.warn(text, stacklevel=level)


def _in_range(bound: list[Any]) -> None:
    """Raise BackendError for 64-bit integers that a plan does not count on."""
    for i, x in enumerate(bound):
        if isinstance(x, Tensor) and x.dtype in (dtypes.int64, dtypes.uint64) and x.size:
            found = np.frombuffer(x.backend.to_bytes(x), numpy_dtype(x.dtype))
            if found.max() > MOST or found.min() < -MOST:
                raise BackendError(f"input {i} holds 64-bit integers beyond {MOST}")


def _moved(value: Any, backend: Any) -> Any:
    """Results with their tensors on another backend."""
    if isinstance(value, Tensor):
        data = bytearray(value.backend.to_bytes(value))  # which the caller may write to
        return backend.from_bytes(data, value.dtype, value.shape)
    if isinstance(value, (list, tuple)):
        parts = [_moved(v, backend) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: _moved(v, backend) for k, v in value.items()}
    fields: dict[str, Any] = getattr(value, "__dict__", {})
    if any(isinstance(v, (Tensor, list, tuple)) for v in fields.values()):  # such as AttentionOutput
        out = object.__new__(type(value))
        for k, v in fields.items():
            setattr(out, k, _moved(v, backend))
        return out
    return value


class _Short:
    """Calls of a plan with arrays of the dtypes and shapes of the call before: they are copied into its memory, and
    results out of it, without becoming bytes first."""

    def __init__(self, planned: Planned, bound: list[Any], backend: Any) -> None:
        program = planned.program
        self._program = program
        self._structure = planned.structure
        self._backend = backend
        self._kinds = [(x.data.dtype, x.shape) for x in bound]
        memory = program._instance.memory
        self._inputs = []
        for node, (address, _) in zip(planned.arguments, program.inputs, strict=True):
            into: Any = np.frombuffer(memory, _SAME[node.word][1], bound[node.arg].size, address)
            self._inputs.append((node.arg, into.reshape(node.shape)))
        places = iter(program.results)
        self._results: list[Any] = []
        for root in planned.roots:
            found = np.zeros(0, np.float32) if known_equal(root.count, 0) else None
            if found is None:
                found = np.frombuffer(memory, _SAME[root.word][1], root.count, next(places)[0])
            self._results.append((found.reshape(root.shape), numpy_dtype(root.dtype), root.dtype))

    @staticmethod
    def of(planned: Planned, bound: list[Any], backend: Any) -> _Short | None:
        """None for plans and arguments that take more than copying."""
        if planned._checks or any(not isinstance(x, Tensor) or type(x.data) is not np.ndarray for x in bound):
            return None
        for node in planned.arguments:
            name = "uint8" if node.dtype.is_bool and node.word == "u8" else node.dtype.name
            if _SAME.get(node.word, ("",))[0] != name:
                return None
        for root in planned.roots:
            if root.word not in _SAME or root.dtype.bits < 8 or not hasattr(np, root.dtype.name):
                return None
        return _Short(planned, bound, backend)

    def arrays(self, arguments: tuple[Any, ...]) -> list[Any] | None:
        """The arrays of a call's arguments; None if they are of other kinds."""
        if len(arguments) != len(self._kinds):
            return None
        out = []
        for x, (dtype, shape) in zip(arguments, self._kinds, strict=True):
            array = x.data if type(x) is Tensor else x
            if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                return None
            out.append(array)
        return out

    def run(self, arrays: list[Any]) -> Any:
        """The model's results."""
        program = self._program
        with program._lock:
            for place, into in self._inputs:
                np.copyto(into, arrays[place], casting="unsafe")
            program._instance.run()
            found = [Tensor(a.astype(t), dtype, a.shape, self._backend) for a, t, dtype in self._results]
        return assemble(self._structure, found)
