"""The switch by which tests make small arrays take the paths of large ones, and fill memory that a plan reserves.

    with lowered(seed):        # a random part of SMALL; lowered(None): all of it
        ...
    with poisoned(0xFF):       # NaN in every float, -1 in every integer
        ...

Nothing in the product imports this module. A constant that decides between two ways of computing the same belongs into
SMALL, so that drawn programs (tests/contract) take both. Neither context is for several threads at once.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_NUMPY = "emberlet.host.numpy_backend."
_PLANS = _NUMPY + "compile."
_GPU = "emberlet.wgpu_backend."

# "module:constant" -> the value with which small arrays reach what is beyond it
SMALL: dict[str, Any] = {
    # Elementwise chains run block by block.
    f"{_PLANS}blocks:LONG": 64,
    f"{_PLANS}blocks:BLOCK": 48,
    f"{_PLANS}blocks:FEWEST": 2,
    f"{_PLANS}blocks:ROWS": 2,
    f"{_PLANS}repeated:FAR": 64,
    # Buffers are reserved by the system.
    f"{_PLANS}memory:RESERVED": 64,
    # Products and convolutions have forms of their own.
    f"{_PLANS}bias:LARGE": 1,
    f"{_PLANS}channels_last:SHORT": 2,
    f"{_PLANS}channels_last:REPEATED": 64,
    f"{_PLANS}depthwise:WIDEST": 3,
    f"{_PLANS}few_rows:LEAST": 8,
    f"{_PLANS}few_rows:SMALL": 4,
    f"{_PLANS}few_rows:WIDTH": 2,
    f"{_PLANS}few_rows:are_faster_in_parts": lambda: True,  # as with the BLAS of other processors
    f"{_PLANS}layout:LARGE": 1,
    f"{_PLANS}windows:BLOCK": 200,
    f"{_PLANS}winograd:BLOCK": 200,
    f"{_PLANS}winograd:CHANNELS": 1,
    f"{_PLANS}winograd:LARGE": 1,
    f"{_PLANS}winograd:LINES": 1,
    f"{_PLANS}winograd:POSITIONS": 2,
    f"{_PLANS}recurrences:_UNROLLED": 1,
    # Packed weights are unpacked in each call.
    f"{_PLANS}tracing:FOLDED": 256,
    # What a mask chooses is computed with the bits.
    f"{_NUMPY}elementwise:BRANCHING": 1,
    # Work is done in tiles.
    f"{_NUMPY}attention:_TILE": 8,
    f"{_NUMPY}attention:_ROWS": 2,
    f"{_NUMPY}block_weights:AT_ONCE": 64,
    f"{_NUMPY}convolution:BLOCK": 64,
    f"{_NUMPY}recurrent:APART": 1,
    "emberlet.python_backend.convolution_loops:BLOCK": 8,
    "emberlet.functional.windows.signal:_DIRECT": 4,
    "emberlet.functional.reductions.sets:FEW": 1,
    # A session makes plans at once, and its states move often.
    f"{_NUMPY}resident:AFTER": 1,
    "emberlet.session.room:LEAST": 1,
    # The GPU computes four elements at a time.
    f"{_GPU}record.node:WIDE": 4,
    # Kernels of WebAssembly and machine code go over panels and add long sums in parts.
    f"{_GPU}wasm.kernels.contraction:BLOCK_BYTES": 2048,
    f"{_GPU}wasm.kernels.contraction:PAGE": 64,
    f"{_GPU}wasm.kernels.pictures.direct_integers:_PICTURE": 64,
    f"{_GPU}wasm.kernels.folds:BLOCK": 16,  # the longest vector: a block is no shorter
    f"{_GPU}wasm.kernels.single_row:BLOCK": 8,
    f"{_GPU}wasm.kernels.single_row:LEAST": 16,
    # Native plans share weights, those that were read from a file without a copy.
    f"{_GPU}llvm.regions:LEAST": 1,
    "emberlet.host.files:LARGE": 1,
}


def _room(name: str) -> str:
    """What belongs together: the constants of a module."""
    return name.partition(":")[0]


@contextmanager
def lowered(seed: int | None = None, together: bool = False) -> Iterator[list[str]]:
    """Lower a random half of SMALL (None: all of it); yields the names that are lowered. The previous values return at
    the end. Plans and kernels made meanwhile keep what they were made with. together: all constants of a module, or
    none, as what needs two of them needs it."""
    choose = random.Random(seed)
    rooms: dict[str, bool] = {}
    names = []
    for name in SMALL:
        half = choose.random() < 0.5
        if seed is None or (rooms.setdefault(_room(name), half) if together else half):
            names.append(name)
    before = []
    try:
        for name in names:
            where, _, constant = name.partition(":")
            module = importlib.import_module(where)
            before.append((module, constant, getattr(module, constant)))
            setattr(module, constant, SMALL[name])
        yield names
    finally:
        for module, constant, value in reversed(before):
            setattr(module, constant, value)


@contextmanager
def poisoned(byte: int = 0xFF) -> Iterator[None]:
    """Fill with this byte whatever a call may not read before it has written it: what `np.empty` returns, and before
    every call the memory of plans on NumPy and of modules in WebAssembly. 0xFF is NaN or -1, 0x7F about 3.4e38 or a
    large integer."""
    plans = importlib.import_module(_PLANS + "plan")
    opened = importlib.import_module(_PLANS + "open_sizes.bound")
    wasm = importlib.import_module(_GPU + "wasm.program")
    growing = importlib.import_module(_GPU + "wasm.growing_program")
    changes: list[tuple[Any, str, Callable[[Any], Any]]] = [
        (np, "empty", lambda make: _filled(make, byte)),
        (np, "empty_like", lambda make: _filled(make, byte)),
        (plans.Plan, "__init__", lambda make: _after(make, lambda plan: _spoil_plan(plan, byte))),
        (opened.Bound, "fit", lambda fit: _after(fit, lambda bound: _spoil_open(bound, byte))),
        (wasm.Program, "__init__", lambda make: _after(make, lambda program: _spoil_module(program, byte))),
        (growing.GrowingProgram, "_place", lambda place: _after(place, lambda program: _spoil_module(program, byte))),
    ]
    before = [(where, name, getattr(where, name)) for where, name, _ in changes]
    try:
        for where, name, change in changes:
            setattr(where, name, change(getattr(where, name)))
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)


def _filled(make: Callable[..., Any], byte: int) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        out = make(*args, **kwargs)
        if type(out) is np.ndarray and out.size and out.dtype.kind in "fiu" and out.flags.c_contiguous:
            out.reshape(-1).view(np.uint8).fill(byte)
        return out

    return made


def _after(call: Callable[..., Any], spoil: Callable[[Any], None]) -> Callable[..., Any]:
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        out = call(self, *args, **kwargs)
        spoil(self)
        return out

    return called


class _Spoiling(list[Any]):
    """The free buffers of a plan, each spoiled when a call takes it."""

    byte = 0

    def pop(self, index: Any = -1) -> Any:
        bound = super().pop(index)
        bound.memory.arena.fill(self.byte)
        return bound


def _spoil_plan(plan: Any, byte: int) -> None:
    plan._free = _Spoiling(plan._free)
    plan._free.byte = byte


def _spoil_open(bound: Any, byte: int) -> None:
    for number, buffer in enumerate(bound.plan._buffers.all):
        if buffer.offset >= 0:
            bound.places[number][0].fill(byte)
            return  # all of them lie in one arena


class _SpoilingInstance:
    """An instance of a module that spoils the memory of results and temporaries before each run, and the memory behind
    them up to the next multiple of 64 bytes, where a run may not write. What lies behind a buffer has its number in the
    low bytes: a NaN that is read elsewhere and written there is another one."""

    def __init__(self, instance: Any, temporary: Any, byte: int) -> None:
        self._instance = instance
        ends = [(at + max(4, nbytes), -(at + max(4, nbytes)) % 64) for at, nbytes in temporary]
        words = [(number + 1).to_bytes(2, "little") + bytes([byte, byte]) for number in range(len(ends))]
        self._behind = [(at, (word * 17)[at % 4 :][:nbytes]) for (at, nbytes), word in zip(ends, words, strict=True)
                        if nbytes]  # fmt: skip
        self._temporary = [(at, bytes([byte]) * nbytes) for at, nbytes in temporary]

    def run(self) -> None:
        for at, data in (*self._temporary, *self._behind):
            self._instance.write(at, data)
        self._instance.run()
        for at, data in self._behind:
            if self._instance.read(at, len(data)) != data:
                raise AssertionError("a module writes behind the end of a buffer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._instance, name)


def _spoil_module(program: Any, byte: int) -> None:
    program.instance = _SpoilingInstance(program.instance, program.temporary, byte)
