"""The interface between layers and the rest of the build."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..quantization.doubled import HALF, LEFT, LOW, SHIFT, DividedRequant, DoubledRequant
from ..quantization.reference import Requant
from .writer import Writer

Array = npt.NDArray[Any]

NameOf = Callable[[Writer], str]
"""Gives a kernel its name; equal kernels have one."""

Places = Mapping[str, int]
"""The offset of each of a kernel's places."""


@dataclass(frozen=True)
class View:
    """The layout in its buffer of a tensor seen as an image (height, width, channels), in elements.

    origin: its first element; pitch: elements from one row to the next. A buffer may include a border around its
    tensor, from which a convolution reads its padding; pitch then exceeds width * channels.
    """

    shape: tuple[int, int, int]
    pitch: int
    origin: int = 0

    @property
    def row(self) -> int:
        """Elements of a row without the border."""
        return self.shape[1] * self.shape[2]


def as_image(shape: Sequence[int]) -> tuple[int, int, int]:
    """A shape as (height, width, channels): a sequence is one row of steps, a vector one pixel."""
    if len(shape) >= 3:
        return prod(shape[:-2]), shape[-2], shape[-1]
    return (1, *([1] * (2 - len(shape))), *shape)  # type: ignore[return-value]


def dense_view(shape: Sequence[int]) -> View:
    """The view of a tensor without a border."""
    h, w, c = as_image(shape)
    return View((h, w, c), w * c)


@dataclass(frozen=True)
class Layer(ABC):
    """One step of inference: reads `inputs` and writes `output`, which name tensors in the arena.

    `name` is for reports and messages. All arrays of a layer are constant.
    """

    name: str
    inputs: tuple[str, ...]
    output: str

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return 0

    @property
    def turns(self) -> int:
        """The number of elements processed one by one, if it differs from the output's; else 0."""
        return 0

    @property
    def scratch(self) -> int:
        """Elements of the arena that the layer needs while it runs, in addition to its tensors."""
        return 0

    @property
    def state(self) -> int:
        """Elements of the arena for the layer's state."""
        return 0

    @property
    def initial(self) -> tuple[tuple[int, tuple[float, ...]], ...]:
        """The initial state: a count, and the elements that are repeated."""
        return ((self.state, (0.0,)),)

    @property
    def remembers(self) -> bool:
        """Whether `state` is kept from one inference to the next."""
        return False

    @property
    def in_place(self) -> bool:
        """Whether the output may alias the first input."""
        return False

    @property
    def takes_borders(self) -> bool:
        """Whether inputs and output may have borders around them."""
        return False

    def constants(self) -> tuple[Array, list[int]]:
        """The kernel's constants in W (uint8, or float32) and in T (words, 0 <= word < 2**30)."""
        return np.empty(0, np.uint8), []

    @abstractmethod
    def reference(self, *inputs: Array) -> Array:
        """The output, computed in NumPy: bit-identical to the kernel (in float32, up to rounding)."""

    def advance(self, state: Any, *inputs: Array) -> tuple[Array, Any]:
        """`reference` of a stateful layer: the output, and the new state. A state of None is all zeros."""
        return self.reference(*inputs), state

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        """The kernel. Its arguments are offsets: one for each input ("i0", "i1", …), "o" for the output, "st" for the
        state and "zo" for the scratch if there are any, then "wo" and "to" for the layer's constants in W and T."""
        raise NotImplementedError

    def calls(self, name: NameOf, dialect: str, inputs: Sequence[View], output: View, places: Places) -> list[str]:
        """The lines of `run` for this layer. name(writer): the kernel's name; places: the offsets."""
        writer = self.emit(dialect, inputs, output)
        return [writer.call(name(writer), places)]

    def places(self) -> list[str]:
        """The names of the kernel's places."""
        own = [*(["st"] if self.state else []), *(["zo"] if self.scratch else [])]
        return [*(f"i{k}" for k in range(len(self.inputs))), "o", *own, "wo", "to"]


def emit_requantize(w: Writer, r: Requant, words: Sequence[str], offset: str = "") -> None:
    """Write code that requantizes and clamps `s`. words: expressions of the channel's words in `r.packed`; offset: an
    expression that equals r.offset, by default the number.
    """
    offset = offset or str(r.offset)
    if isinstance(r, DoubledRequant):
        _emit_doubled(w, r, words, offset)
    elif isinstance(r, DividedRequant):
        with w.block(f"if s < 0 and {words[0]} & 1 == 0"):
            w.line("s -= 1")
        w.line(f"s = (s + ({words[0]} >> 1)) // {words[0]} + {offset}")
    elif r.split:
        mask = (1 << r.split) - 1
        m = words[0]
        w.line(f"s = (s >> {r.split}) * {m} + ((s & {mask}) * {m} >> {r.split}) + {offset} >> {r.rest}")
    else:
        w.line(f"s = s * {words[0]} + {offset} >> {r.rest}")
    emit_clamp(w, r.low, r.high)


def _emit_doubled(w: Writer, r: DoubledRequant, words: Sequence[str], offset: str) -> None:
    """See DoubledRequant. Locals: u, v, d, e."""
    first, second = words
    w.line(f"u = {first}")
    w.line(f"d = {second}")
    w.line(f"v = d >> {SHIFT}" + (f" & {(1 << HALF) - 1}" if r.left else ""))
    far = max(r.shifts) > LEFT
    if far:
        w.line(f"e = d >> {SHIFT + HALF}")
        with w.block(f"if e > {LEFT}"):
            w.line(f"s = s << e - {LEFT}")
    w.line(f"e = s & {(1 << LOW) - 1}")
    w.line(f"s = s >> {LOW}")
    quarters = f"s * u + (e * u + (s * v + (e * v >> {LOW}) >> {HALF - LOW}) >> {LOW})"
    right = (1 << SHIFT) - 1
    if not r.twice:
        w.line(f"s = {quarters}")
        w.line(f"d = 3 + (d + 1 & {right})" + (f" - (d >> {SHIFT + HALF})" if r.left else ""))
        w.line(f"s = (s + (1 << d - 1) >> d) + {offset}")
        return
    if r.left:
        w.line(f"s = {quarters}")
        w.line(f"e = 3 - (d >> {SHIFT + HALF})")
        if far:
            with w.block("if e < 1"):
                w.line("e = 1")
        w.line("s = s + (1 << e - 1) >> e")
    else:
        w.line(f"s = {quarters} + 4 >> 3")
    w.line(f"d = d + 1 & {right}")
    # Ties round away from zero: a negative number is decremented before rounding.
    with w.block("if d"):
        w.line("e = 1 << d - 1")
        with w.block("if s < 0"):
            w.line("e -= 1")
        w.line("s = s + e >> d")
    w.line(f"s = s + {offset}")


def emit_clamp(w: Writer, low: int, high: int, name: str = "s") -> None:
    """Write code that clamps a local to low..high, with a single test if the range is that of a number of bits."""
    if low == 0 and high & (high + 1) == 0:
        with w.block(f"if {name} & {-high - 1}"):
            w.line(f"{name} = 0 if {name} < 0 else {high}")
        return
    with w.block(f"if {name} < {low}"):
        w.line(f"{name} = {low}")
    with w.block(f"elif {name} > {high}"):
        w.line(f"{name} = {high}")


def emit_extreme(w: Writer, operation: str, name: str = "s") -> None:
    """Write code that replaces a local by `v` if that is greater ("max") or less ("min")."""
    with w.block(f"if v {'>' if operation == 'max' else '<'} {name}"):
        w.line(f"{name} = v")


def emit_clamp_float(w: Writer, low: float, high: float) -> None:
    """Clamp `s` to low..high."""
    if low > -inf:
        with w.block(f"if s < {low!r}"):
            w.line(f"s = {low!r}")
    if high < inf:
        with w.block(f"if s > {high!r}"):
            w.line(f"s = {high!r}")
