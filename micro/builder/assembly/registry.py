"""The mapping from layers to kernels, and the arguments of their calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeGuard

from ..kernels.depthwise import Depthwise
from ..kernels.dot import Dot
from ..kernels.doubled_lstm import DoubledLstm
from ..kernels.layer import Layer, View
from ..kernels.recurrence import RecurrentLayer, Rows
from ..kernels.recurrent import Gru, Lstm
from ..kernels.trees import Trees
from ..kernels.window import Loops, window_loops
from ..quantization.reference import ZERO, Requant
from . import (
    doubled_lstm,
    dsp_dot,
    dsp_recurrent,
    scalar_dot,
    scalar_gru,
    scalar_recurrent,
)
from .depthwise import depthwise
from .driver import Call, Kernel, Table, trees
from .driver.layers import BEGIN, copied, filled, moved, repeated
from .variants import DSP, THUMB, arithmetic, bind, bound, fills_bytes, how_often, name_of, scalar

MOST_GROUPS = 8
"""A grouped convolution of at most this many groups becomes one call per group."""


def calls(
    layer: Layer, family: str, inputs: Sequence[View], output: View, places: Mapping[str, int]
) -> list[Call] | None:
    """The calls that compute a layer, or None if it runs in viper, at least in part (see sums_in_assembly)."""
    if isinstance(layer, Dot) and not layer.packed:
        return _dot(layer, family, inputs[0], output, places)
    if isinstance(layer, Depthwise):
        return depthwise(layer, family, inputs[0], output, places)
    if sums_in_assembly(layer, family):
        return _recurrent(layer, family, places) if family in BEGIN else None
    if isinstance(layer, Trees):
        return _trees(layer, family, inputs[0], output, places) if family in BEGIN else None
    return moved(layer, family, inputs, output, places)


def table(family: str) -> Table | None:
    """The table of a model's calls, or None if the instruction set has no driver."""
    return Table(BEGIN[family]) if family in BEGIN else None


def sums_in_assembly(layer: Layer, family: str) -> TypeGuard[RecurrentLayer]:
    """Whether kernels compute the gates' sums of a recurrent layer on bytes: of a .tflite file's only with a driver."""
    some = not isinstance(layer, DoubledLstm) or family in BEGIN
    return isinstance(layer, RecurrentLayer) and layer.element == 1 and some


def sums(rows: Rows, family: str, source: int | str, places: Mapping[str, int]) -> Call | None:
    """The call that computes the gates' sums of a recurrent layer, or None if they run in viper.

    source: the offset of the bytes, or a variable of `run` with it; places: "o", "wo" and "to", and "zs".
    """
    own_requant = replace(rows.requant, zero=0) if rows.adds else rows.requant
    requant = bound(own_requant, family)
    if requant is None:
        return None
    n, k = rows.weights.shape
    one = dict.fromkeys(("xstep", "xrow", "ystep", "ygap"), 0) | {"rows": 1, "cols": 1}
    if family == DSP:
        how = how_often(own_requant)
        kernel, own = _dsp_dot((), k, k, True, requant, places["zs"], wide=True, how=how, adds=rows.adds)
    else:
        kernel, own = _scalar_dot(family, (), k, k, n < 4, own_requant, places["zs"], wide=True, adds=rows.adds)
    places_of: dict[str, int | str] = {"x": source, "y": places["o"], "w": places["wo"], "q": 4 * (places["to"] + 2)}
    numbers: dict[str, int | str] = {"K": k, "N": n, "lift": rows.lift, "wz": ZERO, **one, **requant, **own}
    return Call(kernel, {**numbers, **places_of})


def units(layer: Layer, family: str, places: Mapping[str, int]) -> Call | None:
    """The call that computes a recurrent layer's new states from the gates' sums, or None if that runs in viper."""
    if not isinstance(layer, Gru | Lstm):
        return None
    make = scalar_recurrent.gru if isinstance(layer, Gru) else scalar_recurrent.lstm
    kernel = Kernel(f"{layer.kind}_units", scalar(make, THUMB if family == DSP else family), scalar_recurrent.FRAME)
    return Call(kernel, {name: places[name] for name in ("st", "zo", "wo")} | {"hidden": layer.hidden})


def _trees(layer: Trees, family: str, x: View, y: View, places: Mapping[str, int]) -> list[Call]:
    make = partial(trees.trees, wide=layer.wide)
    name = "trees_of_words" if layer.wide else "trees"
    kernel = Kernel(name, scalar(make, THUMB if family == DSP else family), trees.FRAME)
    numbers = {"x": places["i0"] + x.origin, "y": places["o"] + y.origin, "q": 4 * places["to"]}
    return [Call(kernel, {**numbers, "targets": layer.targets, "roots": len(layer.roots)})]


def _recurrent(layer: RecurrentLayer, family: str, places: Mapping[str, int]) -> list[Call] | None:
    """All steps of a recurrent layer, as RecurrentLayer.calls, or None if some of it runs in viper."""
    begin, at = [], places["st"]
    for count, pattern in () if layer.keep else layer.initial:
        size = len(pattern)
        for k, byte in enumerate(pattern):
            runs = (count, 1) if size == 1 else (1, count)
            begin.append(filled(family, at + k, runs[0], byte, runs[1], size - 1))
        at += size * count
    if family == DSP and dsp_recurrent.fits(layer):
        steps: list[Call] | None = [dsp_recurrent.call(layer, places)]
    elif family in scalar_gru.FAMILIES and (shape := scalar_gru.shape_of(layer)):
        steps = [scalar_gru.call(layer, shape, family, places)]
    else:
        steps = _step_by_step(layer, family, places)
    if steps is None:
        return None
    end = [] if layer.sequence else [copied(family, places["st"], places["o"], layer.hidden)]
    return [*begin, *steps, *end]


def _step_by_step(layer: RecurrentLayer, family: str, places: Mapping[str, int]) -> list[Call] | None:
    sources: tuple[int | str, ...] = ("i", places["st"])
    step = [
        sums(layer.rows[k], family, source, {**layer.places_of_rows(places, k), "zs": places["zs"]})
        for k, source in enumerate(sources)
    ]
    step += (
        doubled_lstm.calls(layer, family, places) if isinstance(layer, DoubledLstm) else [units(layer, family, places)]
    )
    body = [call for call in step if call]
    if len(body) < len(step):
        return None
    first, moves = layer.walk(places)
    if layer.sequence:
        body.append(copied(family, places["st"], "o", layer.hidden))
    return repeated(family, layer.steps, first, moves, body)


def scratch(layer: Layer, families: Sequence[str]) -> int:
    """The scratch memory of the layer's assembly kernels, in bytes of the arena."""
    if families and isinstance(layer, Dot) and not layer.packed:
        k, spread = layer.weights[0].size, DSP in families and not dsp_dot.one_by_one(layer)
        return _room(k, layer.positions == 1, spread, layer.window.kernel != (1, 1) or (spread and k % 4 != 0))
    if isinstance(layer, RecurrentLayer) and any(sums_in_assembly(layer, family) for family in families):
        most = max(layer.from_input.weights.shape[1], layer.hidden)
        sizes = [_room(most, True, DSP in families)]
        if DSP in families and dsp_recurrent.fits(layer):
            sizes = [_room(most, True, False), dsp_recurrent.room(layer) + 3]
        if scalar_gru.FAMILIES & set(families) and (shape := scalar_gru.shape_of(layer)):
            sizes.append(shape.room)
        return max(sizes)
    return 0


def _room(k: int, one: bool, spread: bool, gathered: bool = True) -> int:
    """The scratch memory for a window of k bytes: gathered or not, and unpacked for one position or two."""
    words = -(-k // 4)
    return 4 * words * gathered + ((8 if one else 16) * words + 8 + 3 if spread else 0)


def _dot(layer: Dot, family: str, x: View, y: View, places: Mapping[str, int]) -> list[Call] | None:
    requant = bound(layer.requant, family)
    if requant is None or layer.groups > MOST_GROUPS:
        return None
    loops, run = window_loops(layer.window, x.pitch, layer.image[2], layer.weights.shape[3])
    oh, ow = layer.window.output(*layer.image[:2])
    each, n = layer.weights.shape[3], len(layer.weights) // layer.groups
    k = layer.weights[0].size
    one, how, words = layer.positions == 1, how_often(layer.requant), 1 + layer.requant.words
    single = family == DSP and dsp_dot.one_by_one(layer)
    step = 1 if single else n
    numbers = {
        "K": k,
        "N": step,
        "lift": layer.lift,
        "wz": layer.weight_zero,
        "rows": oh,
        "cols": ow,
        "xstep": layer.window.strides[1] * layer.image[2],
        "xrow": layer.window.strides[0] * x.pitch,
        "ystep": len(layer.weights),
        "ygap": y.pitch - y.row,
        **requant,
    }
    if family == DSP:
        kernel, own = _dsp_dot(loops, run, k, one, requant, places.get("zs", 0), how=how, single=single)
        numbers["left"] = layer.positions
    else:
        kernel, own = _scalar_dot(family, loops, run, k, n < 4, layer.requant, places.get("zs", 0))
    return [
        Call(
            kernel,
            {
                **numbers,
                **own,
                "x": places["i0"] + layer.window.corner(x) + channel // n * each,
                "y": places["o"] + y.origin + channel,
                "w": places["wo"] + channel * k,
                "q": 4 * (places["to"] + 2 + words * channel),
            },
        )
        for channel in range(0, len(layer.weights), step)
    ]


def _two_loops(loops: Loops) -> tuple[tuple[int, int], tuple[int, int]]:
    """The loops over the runs of a window, padded with loops of one iteration."""
    outer, inner = [*[(1, 0)] * (2 - len(loops)), *loops]
    return outer, inner


def _dsp_dot(
    loops: Loops,
    run: int,
    k: int,
    one: bool,
    requant: Mapping[str, int],
    scratch_at: int,
    wide: bool = False,
    how: str = "",
    single: bool = False,
    adds: bool = False,
) -> tuple[Kernel, dict[str, int]]:
    """single: as dsp_dot.one_by_one."""
    gather = run % 4 != 0
    (n0, step0), (n1, step1) = _two_loops(loops)
    words, k4 = -(-run // 4), -(-k // 4)
    e = scratch_at + 3 & ~3
    fields = {
        **{"e": e, "g": e + (8 if one else 16) * k4, "K4": k4},
        **{"n0": n0, "n1": n1, "run": run, "words": words},
        "after1": step1 - 4 * words,
        "after0": step0 - n1 * step1,
    }
    up, full = requant["up"] > 0, fills_bytes(requant)
    if single:
        name = name_of("dense_of_one", how, up=up, full=full)
        return Kernel(name, bind(dsp_dot.one, up, full, how), dsp_dot.DENSE), fields
    if one:
        full = full and not wide
        name = name_of("dense", how, gather=gather, up=up, wide=wide, full=full, adds=adds)
        return Kernel(name, bind(dsp_dot.dense, gather, up, wide, full, how, adds), dsp_dot.DENSE), fields
    name = name_of("conv", how, gather=gather, up=up, full=full)
    return Kernel(name, bind(dsp_dot.conv, gather, up, full, how), dsp_dot.CONV), fields


def _scalar_dot(
    family: str,
    loops: Loops,
    run: int,
    k: int,
    few: bool,
    requant: Requant,
    scratch_at: int,
    wide: bool = False,
    adds: bool = False,
) -> tuple[Kernel, dict[str, int]]:
    gather = bool(loops)
    (n0, step0), (n1, step1) = _two_loops(loops)
    fields = {
        "g": scratch_at,
        "K8": k // scalar_dot.UNROLL,
        "rest8": k % scalar_dot.UNROLL,
        "n0": n0,
        "n1": n1,
        "run4": run // 4,
        "rest4": run % 4,
        "after1": step1 - run,
        "after0": step0 - n1 * step1,
    }
    how, apart, full = how_often(requant), scalar_dot.halves(requant), scalar_dot.is_full(requant, 16 if wide else 8)
    name = name_of("conv", how, gather=gather, few=few, **arithmetic(apart, full), wide=wide, adds=adds)
    make = scalar(scalar_dot.conv, family, gather, few, apart, wide, full, how, adds)
    return Kernel(name, make, scalar_dot.FRAME), fields
