"""The native backend: recorded operations (../record/), computed by machine code that LLVM makes for this processor."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes
from emberlet.errors import BackendError
from emberlet.sizes.size import typical

from ..arena import ArenaBackend
from ..wasm.image import Layout
from ..wasm.kernels import split
from ..wasm.kernels.table import Options
from . import engine, processor, regions, threads
from .byte_panels import store_panels
from .kept_kernels import KernelFile

# Rows of a tile of products: with two vectors of columns, the sums fill most of the 32 registers of AVX-512, and of the
# 16 of AVX2.
ROWS = {16: 14, 8: 6, 4: 6}
# Elements of the largest tensor of an eager operation whose kernel takes longer to compile well than it saves.
SMALL = 1 << 11
MOST = 1 << 32  # bytes of a plan's memory, whose addresses have 32 bits
APART = 1 << 21  # bytes of the matrices of a recurrent layer's directions, from which they run apart
_CODE = 8  # bytes that a byte of a kernel's code takes once it is compiled


class _KeptOptions(Options):
    """Options of plans whose kernels are kept for later processes."""

    def kept(self, keys: list[str]) -> KernelFile:
        return KernelFile(keys)


class NativeBackend(ArenaBackend):
    """Computes tensors with machine code. strict: raise UnsupportedError instead of computing on the host.

    When a value is read, everything recorded so far is compiled and computed; a graph of the same structure with other
    values is not compiled again. `model.compile(backend="native")` also keeps the weights in the plan's memory. Raises
    BackendError without the package llvmlite.
    """

    name = "native"
    OVERRIDES = (*ArenaBackend.OVERRIDES, "dot_product_attention")

    def __init__(self, index: int = 0, strict: bool = False, planning: bool = False) -> None:
        ArenaBackend.__init__(self, index, strict, planning)
        if index:
            raise BackendError(f'"native:{index}" does not exist; there is only one native backend')
        engine.available()
        _, _, lanes, fused, dots = processor.current()
        self.options = _KeptOptions(fused, lanes, ROWS[lanes], "native", bytewise=dots == 4)
        self._eager_options = Options(fused, lanes, ROWS[lanes], "native", SMALL)

    @property
    def eager_options(self) -> Options:
        return self._eager_options

    def dot_product_attention(
        self, q: Any, keys: Any, values: Any, bias: Any, scale: float, softcap: float, blind: bool, sink: Any
    ) -> Any:
        """The composite of that name (functional/transformer) in one kernel, where that is faster."""
        from ..record.attention import record
        from ..wasm.kernels.attention import serves

        good = q.dtype is dtypes.float32 and serves(q, keys, values)
        return record(self, good, q, keys, values, bias, scale, softcap, blind, sink)

    @staticmethod
    def directions_apart(r: Any) -> bool:
        """Whether a recurrent layer runs one direction after the other: where the matrices r (directions, …) of both
        do not fit into the cache, a step of one finds some of its own there."""
        return bool(APART <= 4 * typical(r.size))

    def reorder_weights(self, roots: Any) -> None:
        store_panels(roots, 2 * self.options.lanes, self.options.bytewise, self.host)

    def _compiled(self, plan: Any) -> tuple[Any, Any, int]:
        found = Compiled(plan, quick=True)
        return found, found, _CODE * sum([len(f) for _, f in plan.kernels])

    def layout(self, plan: Any, sizes: int = 0, room: Any = None, constants: dict[int, Any] | None = None) -> Compiled:
        return Compiled(plan, sizes, room, weights=constants)


class Compiled(Layout):
    """A plan whose kernels are compiled, and the layout of its memory. quick: whether kernels of little work may be
    slower, for being compiled sooner; weights: {number of a buffer: its bytes}, which it shares with other plans where
    that is possible (regions.py); then it has one instance."""

    def __init__(
        self, plan: Any, sizes: int = 0, room: Any = None, quick: bool = False, weights: dict[int, Any] | None = None
    ) -> None:
        count = threads.threads() if split.pays([[plan.kernels[step.kernel][1]] for step in plan.steps]) else 1
        self._shared: regions.Shared | None = None
        if weights and regions.is_worth(sum([plan.buffers[number].nbytes for number in weights])):
            self._lay_out(plan, sizes, room, count, weights)
            self._shared = regions.share(weights, self.nbytes)
        if self._shared is None:
            self._lay_out(plan, sizes, room, count, {})
        else:
            places = self._shared.places
            self.held: Any = places
            for number in places:
                self.addresses[number] = places[number]
        if self.nbytes >= MOST:
            raise BackendError(f"this plan takes {self.nbytes} bytes of memory; a native one has at most 4 GiB")
        each = []
        for step in plan.steps:
            f = plan.kernels[step.kernel][1]
            each.append((f, [*[self.addresses[b] for b in step.buffers], self.scratch, self._scratch_apart]))
        self.steps = engine.Steps(each, count, quick, not sizes)

    def _lay_out(self, plan: Any, sizes: int, room: Any, count: int, apart: dict[int, Any]) -> None:
        Layout.__init__(self, plan, None, sizes, room, apart)
        self._scratch_apart = (self.scratch_room + 63) // 64 * 64  # bytes between the scratch memories of two threads
        self.nbytes += (count - 1) * self._scratch_apart

    def instance(self) -> engine.Instance:
        shared, self._shared = self._shared, None  # the instance holds it, as long as it is not released
        return engine.Instance(self.steps, self.nbytes, shared)
