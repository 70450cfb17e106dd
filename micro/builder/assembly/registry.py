"""Which layer runs in which kernel: the instruction sets that have kernels, and the numbers a kernel is called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ..kernels.depthwise import Depthwise
from ..kernels.dot import Dot
from ..kernels.layer import Layer, View
from ..kernels.window import Window, window_loops
from . import dsp_depthwise, dsp_dot
from .assembler import Assembler
from .dsp import requant_fields
from .frame import Frame

DSP = "dsp"

FAMILIES = {"armv7em": DSP, "armv7emsp": DSP, "armv7emdp": DSP}
"""mpy-cross's instruction sets that have kernels in assembly."""

ALL = tuple(sorted(set(FAMILIES.values())))
"""The families of instruction sets."""

MOST_GROUPS = 8
"""A grouped convolution is a call for each group, up to this many."""


@dataclass(frozen=True)
class Kernel:
    """A function in assembly: its name says what it was made for. frame: the numbers it takes."""

    name: str
    make: Callable[[], Assembler]
    frame: Frame

    def assembled(self) -> Assembler:
        return _assembled(self.make)


@cache
def _assembled(make: Callable[[], Assembler]) -> Assembler:
    return make()


@dataclass(frozen=True)
class Call:
    """A kernel and its numbers, by name."""

    kernel: Kernel
    numbers: Mapping[str, int]

    def line(self) -> str:
        """The line of `run`."""
        fields = ", ".join(str(self.numbers[name]) for name in self.kernel.frame.fields)
        return f"{self.kernel.name}(a, w, t, l, {fields})"


def calls(
    layer: Layer, family: str, inputs: Sequence[View], output: View, places: Mapping[str, int]
) -> list[Call] | None:
    """The calls that compute a layer, or None where viper does."""
    if isinstance(layer, Dot):
        return _dot(layer, family, inputs[0], output, places)
    if isinstance(layer, Depthwise):
        return _depthwise(layer, family, inputs[0], output, places)
    return None


def scratch(layer: Layer, families: Sequence[str]) -> int:
    """Bytes of the arena that the layer's kernels in assembly use while they run, wherever in it they lie."""
    if not families or not isinstance(layer, Dot):
        return 0
    k4 = -(-layer.weights[0].size // 4)
    return (8 if _positions(layer) == 1 else 16) * k4 + 4 * k4 + 8 + 3


def _positions(layer: Dot) -> int:
    return layer.positions


def _dot(layer: Dot, family: str, x: View, y: View, places: Mapping[str, int]) -> list[Call] | None:
    requant = requant_fields(layer.requant)
    if requant is None or layer.groups > MOST_GROUPS:
        return None
    loops, run = window_loops(layer.window, x.pitch, layer.image[2], layer.weights.shape[3])
    _, ow = layer.window.output(*layer.image[:2])
    each, n = layer.weights.shape[3], len(layer.weights) // layer.groups
    k = layer.weights[0].size
    k4 = -(-k // 4)
    one = layer.positions == 1
    scratch_at = places["zs"] + 3 & ~3
    gather = run % 4 != 0
    up = requant["up"] > 0
    numbers = {
        "e": scratch_at,
        "g": scratch_at + (8 if one else 16) * k4,
        "K4": k4,
        "K": k,
        "N": n,
        "lift": layer.lift,
        "left": layer.positions,
        "cols": ow,
        "xstep": layer.window.strides[1] * layer.image[2],
        "xrow": layer.window.strides[0] * x.pitch,
        "ystep": len(layer.weights),
        "ygap": y.pitch - y.row,
        **window_fields(loops, run),
        **requant,
    }
    suffix = ("_gather" if gather else "") + ("_up" if up else "")
    if one:
        kernel = Kernel(f"dense{suffix}", _bind(dsp_dot.dense, gather, up, False), dsp_dot.DENSE)
    else:
        kernel = Kernel(f"conv{suffix}", _bind(dsp_dot.conv, gather, up), dsp_dot.CONV)
    return [
        Call(
            kernel,
            {
                **numbers,
                "x": places["i0"] + layer.window.corner(x) + g * each,
                "y": places["o"] + y.origin + g * n,
                "w": places["wo"] + g * n * k,
                "q": 4 * (places["to"] + 2 + 2 * g * n),
            },
        )
        for g in range(layer.groups)
    ]


def window_fields(loops: Sequence[tuple[int, int]], run: int) -> dict[str, int]:
    """Values of dsp.WINDOW but K4."""
    (n0, step0), (n1, step1) = [*[(1, 0)] * (2 - len(loops)), *loops]
    words = -(-run // 4)
    return {
        "n0": n0,
        "n1": n1,
        "run": run,
        "words": words,
        "after1": step1 - 4 * words,
        "after0": step0 - n1 * step1,
    }


@cache
def _bind(make: Callable[..., Assembler], *options: object) -> Callable[[], Assembler]:
    return lambda: make(*options)


def _depthwise(layer: Depthwise, family: str, x: View, y: View, places: Mapping[str, int]) -> list[Call] | None:
    requant = requant_fields(layer.requant)
    channels = layer.image[2]
    window: Window = layer.window
    kh, kw = window.kernel
    if requant is None or channels < 4 or len(layer.weights) != channels or kh * kw > dsp_depthwise.MOST_TAPS:
        return None
    oh, ow = window.output(*layer.image[:2])
    dx = window.dilations[1] * channels
    up = requant["up"] > 0
    numbers = {
        "x": places["i0"] + window.corner(x),
        "y": places["o"] + y.origin,
        "w": places["wo"],
        "q": 4 * (places["to"] + 2),
        "lift": layer.lift,
        "C": channels,
        "dx": dx,
        "dy": window.dilations[0] * x.pitch - dsp_depthwise.columns_stepped(kw) * dx,
        "rows": oh,
        "cols": ow,
        "xstep": window.strides[1] * channels,
        "xrow": window.strides[0] * x.pitch - ow * window.strides[1] * channels,
        "ystep": channels,
        "ygap": y.pitch - y.row,
        **requant,
    }
    kernel = Kernel(
        f"depthwise_{kh}x{kw}{'_up' if up else ''}",
        _bind(dsp_depthwise.depthwise, kh, kw, up),
        dsp_depthwise.frame(kh * kw),
    )
    return [Call(kernel, numbers)]
