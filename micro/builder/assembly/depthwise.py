"""The calls that compute depthwise convolutions in assembly."""

from __future__ import annotations

from collections.abc import Mapping

from ..kernels.depthwise import Depthwise
from ..kernels.layer import View
from . import (
    dsp_depthwise,
    dsp_depthwise_few,
    dsp_depthwise_one,
    dsp_depthwise_pairs,
    scalar_depthwise,
    scalar_depthwise_one,
    scalar_depthwise_pairs,
    scalar_dot,
)
from .driver import Call, Kernel
from .dsp_depthwise_one import step_of
from .variants import DSP, arithmetic, bind, bound, fills_bytes, how_often, name_of, scalar


def depthwise(layer: Depthwise, family: str, x: View, y: View, places: Mapping[str, int]) -> list[Call] | None:
    """The calls for a layer, or None if it runs in viper."""
    requant, how = bound(layer.requant, family), how_often(layer.requant)
    channels, window = layer.image[2], layer.window
    kh, kw = window.kernel
    most = dsp_depthwise.MOST_TAPS if family == DSP else scalar_depthwise.MOST_TAPS
    if requant is None or how == "once" or len(layer.weights) != channels or kh * kw > most:
        return None
    oh, ow = window.output(*layer.image[:2])
    dx, step = (v[1] * channels for v in (window.dilations, window.strides))
    pitch, across = window.dilations[0] * x.pitch, window.strides[0] * x.pitch
    pairs = dsp_depthwise_pairs.in_pairs(layer, ow, family == DSP)
    stepped_of = scalar_depthwise_pairs if pairs and family != DSP else dsp_depthwise
    stepped = stepped_of.columns_stepped(kw + pairs) * dx
    numbers = {
        "x": places["i0"] + window.corner(x),
        "y": places["o"] + y.origin,
        "w": places["wo"],
        "q": 4 * (places["to"] + 2),
        "lift": layer.lift,
        "wz": layer.weight_zero,
        "C": channels,
        **{"dx": dx, "dy": pitch - stepped, "rows": oh, "cols": ow, "xstep": step, "xrow": across - ow * step},
        **{"ystep": channels, "ygap": y.pitch - y.row},
        **requant,
    }
    one = step_of(layer, x)
    if family != DSP:
        kernel = _scalar(layer, family, how, one is not None, pairs)
        return [Call(kernel, {**numbers, "step": one or 0})]
    if one is not None and dsp_depthwise_one.fits(layer):
        moves = {"step": one}
    elif dsp_depthwise_few.fits(layer):
        moves = {"P": pitch, "yP": y.pitch, "yC": y.pitch + channels, "last": (ow - 2) * step}
        moves |= {"xrow": 2 * pitch, "yrow": 2 * y.pitch}
    elif pairs:
        moves = {"xrow": across, "yrow": y.pitch, "last": (ow - 2) * step}
        moves["back"] = 2 * step - (kh - 1) * pitch - stepped
    else:
        moves = {}
    return [Call(_dsp(layer, requant, how, one is not None, pairs), {**numbers, **moves})]


def _dsp(layer: Depthwise, requant: Mapping[str, int], how: str, one: bool, pairs: bool) -> Kernel:
    """one: the layer has one position; pairs: as dsp_depthwise_pairs.in_pairs."""
    (kh, kw), channels = layer.window.kernel, min(layer.image[2], 4)
    up, full = requant["up"] > 0, fills_bytes(requant)
    few = {f"of_{channels}": True} if channels < 4 else {}
    size = f"depthwise_{kh}x{kw}"
    if one and dsp_depthwise_one.fits(layer):
        name = name_of(f"{size}_of_one", how, up=up, full=full)
        return Kernel(name, bind(dsp_depthwise_one.depthwise, kh * kw, up, full, how), dsp_depthwise_one.FRAME)
    if dsp_depthwise_few.fits(layer):
        name = name_of(size, how, squares=True, up=up, full=full, **few)
        make = bind(dsp_depthwise_few.depthwise, kw, channels, up, full, how)
        return Kernel(name, make, dsp_depthwise_few.frame(kw, how))
    if pairs:
        name = name_of(size, how, pairs=True, up=up, full=full, **few)
        make = bind(dsp_depthwise_pairs.depthwise, kh, kw, channels, up, full, how)
        return Kernel(name, make, dsp_depthwise_pairs.frame(kh * kw, how))
    make = bind(dsp_depthwise.depthwise, kh, kw, channels, up, how)
    return Kernel(name_of(size, how, up=up, **few), make, dsp_depthwise.frame(kh * kw, how))


def _scalar(layer: Depthwise, family: str, how: str, one: bool, pairs: bool) -> Kernel:
    """As _dsp."""
    kh, kw = layer.window.kernel
    apart, full = scalar_dot.halves(layer.requant), scalar_dot.is_full(layer.requant)
    size, flags = f"depthwise_{kh}x{kw}", arithmetic(apart, full)
    if one:
        make = scalar(scalar_depthwise_one.depthwise, family, kh * kw, apart, full, how)
        return Kernel(name_of(f"{size}_of_one", how, **flags), make, scalar_depthwise_one.FRAME)
    kind = scalar_depthwise_pairs if pairs else scalar_depthwise
    make = scalar(kind.depthwise, family, kh, kw, apart, full, how)
    return Kernel(name_of(size, how, pairs=pairs, **flags), make, kind.frame(kh * kw))
