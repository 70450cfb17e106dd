"""What `compile()` makes of a model on a CPU: machine code, or a plan of NumPy calls where machine code would compute
something else or cannot be made."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

import numpy as np
from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.backend.tracing import forked
from emberlet.errors import BackendError, UnsupportedError
from emberlet.errors.warning import warn
from emberlet.host.numpy_backend.compile import Compiled as NumpyCompiled
from emberlet.host.numpy_backend.storage import numpy_dtype
from emberlet.tensor import Tensor

from ..compiled import Compiled
from ..planned import Planned
from ..record.bounds import UNKNOWN
from ..record.host_evaluation import evaluate, is_evaluated
from ..record.node import refuse_values, topological
from ..wasm.short_calls import SAME, ShortCalls
from .backend import NativeBackend

MOST = (1 << 20) - 1  # the largest magnitude of 64-bit integers in inputs: token ids, and 2048 of them added up, fit
MOST_NUMBERS = 4  # Python numbers among the arguments that get machine code
_REFUSED = (BackendError, UnsupportedError)  # there is no plan, or it does not take these arguments


class _Exact(NativeBackend):
    """A native backend whose results are NumPy's. It raises BackendError for float64, and for 64-bit integers that may
    not fit into 32 bits; those of inputs lie within `MOST`, which `_in_range` checks in each call."""

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
        self.refused: Exception | None = None
        self._dims = dims
        self._lock = RLock()
        self._short: _Short | None = None
        self._numbers: set[str] = set()  # the Python numbers and texts among the arguments of calls
        self._native: Compiled | None = None
        self._plain: NumpyCompiled | None = None  # what computes once it is there
        self.model = model = forked(model, self.backend)
        try:
            self._native = Compiled(model, (), _Exact(), dims=dims)
            if examples:
                self._found(self._native, self._native.bound(examples, {}))
        except _REFUSED as error:
            self._leave(self._on_numpy(examples), error)

    def __repr__(self) -> str:
        return f"{self._plain or self._native!r} on {self.chosen}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plain or self._native, name)

    def __reduce__(self) -> Any:
        return NativeOrNumpy, (self.model, (), self._dims, self.backend)

    @property
    def chosen(self) -> str:
        """What computes the results: "native" or "numpy"."""
        return "native" if self._plain is None else "numpy"

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The model's results."""
        short = self._short
        if short is not None and not keywords:
            data = short.data(arguments)
            if data is not None:
                return short.run(data)
        native = self._native
        if native is None:
            return self._by_numpy(arguments, keywords)
        try:
            return self._computed(native, arguments, keywords)
        except _REFUSED as error:
            return self._by_numpy(arguments, keywords, error)

    def release(self) -> None:
        """Give the plans' memory back. The next call makes a plan again."""
        compiled: Any = self._plain or self._native
        compiled.release()
        with self._lock:
            self._short = None

    async def call_async(self, *arguments: Any, **keywords: Any) -> Any:
        """`__call__`: nothing is awaited."""
        return self(*arguments, **keywords)

    def _found(self, native: Compiled, bound: list[Any]) -> tuple[Planned, Any]:
        found: tuple[Planned, Any] | None = native.find(bound)
        if found is None:
            raise native.refusal(bound)
        return found

    def _computed(self, native: Compiled, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        bound = native.bound(arguments, keywords)
        _in_range(bound)
        self._count_numbers(bound)
        planned, sizes = self._found(native, bound)
        data = planned.program.run(planned.words(bound, sizes), sizes)
        short = _Short.of(planned, bound, self.backend) if sizes is None else None
        with self._lock:
            self._short = short if self._plain is None and native.keeps(planned) else None
        tensors = [_moved(x, self.backend) for x in planned.tensors(data, sizes)]
        return planned.assembled(tensors, sizes, lambda x: _moved(x, self.backend))

    def _count_numbers(self, bound: list[Any]) -> None:
        """Raise BackendError where Python numbers or texts take ever new values, each of which would be compiled."""
        numbers = repr([x for x in bound if type(x) in (int, float, str)])
        if numbers == "[]" or numbers in self._numbers:
            return
        if len(self._numbers) >= MOST_NUMBERS:
            raise BackendError(
                "a number or text among the arguments keeps changing, and each is compiled; give numbers as arrays"
            )
        self._numbers.add(numbers)

    def _on_numpy(self, examples: Sequence[Any]) -> NumpyCompiled:
        return NumpyCompiled(self.model, examples, self.backend, self._dims, warns=False)

    def _by_numpy(self, arguments: tuple[Any, ...], keywords: dict[str, Any], error: Exception | None = None) -> Any:
        """The model's results by NumPy, which computes them from now on; error: why."""
        with self._lock:
            plain = self._plain
            if plain is None and error is not None:
                plain = self._on_numpy(())
                found = plain(*arguments, **keywords)  # where this fails too, nothing is chosen
                self._leave(plain, error)
                return found
        assert plain is not None
        return plain(*arguments, **keywords)

    def _leave(self, plain: NumpyCompiled, error: Exception) -> None:
        """Let a plan of NumPy calls compute the results from now on, and say so, once."""
        self.refused, self._plain = error.with_traceback(None), plain
        self._native = self._short = None
        plain.warns = True
        if uncompiled := plain.cut or plain.unfit:
            plain.tell(uncompiled, ", in machine code or on NumPy,")
            return
        name = getattr(self.model, "__name__", type(self.model).__name__)
        warn(f'{name} is compiled for NumPy (compile(backend="numpy") asks for that), not to machine code: {error}')


def _in_range(bound: list[Any]) -> None:
    """Raise BackendError for 64-bit integers that a plan does not count on."""
    for i, x in enumerate(bound):
        if isinstance(x, Tensor) and x.dtype in (dtypes.int64, dtypes.uint64) and x.size:
            if not _is_in_range(np.frombuffer(x.backend.to_bytes(x), numpy_dtype(x.dtype))):
                raise BackendError(f"input {i} holds 64-bit integers beyond {MOST}")


def _is_in_range(x: Any) -> bool:
    return bool(x.max() <= MOST and x.min() >= -MOST)


def _moved(x: Tensor, backend: Any) -> Tensor:
    """A tensor on another backend, which the caller may write to."""
    found: Tensor = backend.from_bytes(bytearray(x.backend.to_bytes(x)), x.dtype, x.shape)
    return found


class _Short(ShortCalls):
    """Results are NumPy's arrays, copied out of the plan's memory without becoming bytes first."""

    def __init__(self, planned: Planned, bound: list[Any], backend: Any) -> None:
        ShortCalls.__init__(self, planned, bound)
        self._backend = backend
        memory, places = planned.program.instance.memory, planned.program.results
        self._results: list[Any] = []
        for root, (at, _) in zip(planned.roots, places, strict=True):
            found = np.frombuffer(memory, SAME[root.word], root.count, at).reshape(root.shape)
            self._results.append((found, numpy_dtype(root.dtype), root.dtype))

    def holds(self, x: Any) -> bool:
        return _is_in_range(x)

    @staticmethod
    def returns(root: Any) -> bool:
        return bool(root.count) and root.word in SAME and root.dtype.bits >= 8 and hasattr(np, root.dtype.name)

    def results(self, instance: Any, places: Any) -> list[Tensor]:
        return [Tensor(a.astype(t), dtype, a.shape, self._backend) for a, t, dtype in self._results]

    def assembled(self, tensors: list[Tensor]) -> Any:
        return self.planned.assembled(tensors, None, lambda x: _moved(x, self._backend))
