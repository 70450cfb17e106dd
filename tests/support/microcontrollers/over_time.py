"""Networks over time drawn at random, and what a stream owes the whole window."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.quantization.sixteen import to_bytes
from emberlet.micro.builder.streaming import time_axis

from .onnx_models import Array
from .quantized import ACTIVATIONS, Network


def network_over_time(seed: int) -> tuple[onnx.ModelProto, int]:
    """Convolutions over time (and bands) in every manner of padding, a residual, and a head; the axis that is time."""
    n, rng = Network(seed), np.random.default_rng(seed)
    flat = bool(rng.integers(0, 2))  # a sequence, or an image of time and bands
    time, c, bands = int(rng.integers(16, 40)), int(rng.choice([1, 3, 4])), int(rng.integers(4, 8))
    turned = not flat and bool(rng.integers(0, 2))  # time across rather than down
    shape = [1, c, time] if flat else [1, c, bands, time] if turned else [1, c, time, bands]
    axis, length, depth = (2 if flat or not turned else 3), time, c

    def sides(along: Any, across: Any) -> list[Any]:
        return [along] if flat else [across, along] if turned else [along, across]

    def pads(before: int, behind: int, across: int) -> list[int]:
        low, high = sides(before, across), sides(behind, across)
        return [*low, *high]

    for _ in range(int(rng.integers(1, 5))):
        kind = str(rng.choice(["conv", "conv", "depthwise", "pool", "residual", "causal", "chomp", "same"]))
        k, d, s = int(rng.integers(1, 5)), int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 1, 2]))
        reach = (k - 1) * d + 1
        before = behind = 0
        if kind in ("causal", "chomp", "same"):
            s = 1
            before = reach - 1 if kind != "same" else (reach - 1) // 2
            behind = 0 if kind == "causal" else reach - 1 - before if kind == "same" else reach - 1
        if kind == "residual":
            k, d, s, reach = 3, 1, 1, 3
        if length + before + behind < reach + 4:
            break
        if kind == "pool":
            op = str(rng.choice(["MaxPool", "AveragePool"]))
            n.then(op, kernel_shape=sides(k, 1), strides=sides(s, 1))
            length = (length - k) // s + 1
            continue
        source, group = n.at, depth if kind == "depthwise" else 1
        wide = depth if kind in ("depthwise", "residual") else int(rng.choice([4, 6]))
        w, b = n.name(), n.name()
        n.m.weight(w, wide, depth // group, *sides(k, 3 if not flat else 1), scale=1 / (k * depth) ** 0.5)
        n.m.weight(b, wide, scale=0.3)
        if kind == "causal" and bool(rng.integers(0, 2)):
            amounts, zero = n.name(), [0, 0, *pads(before, behind, 0)]
            rank = len(shape)
            n.m.constant(amounts, [0, 0, *zero[2:rank], 0, 0, *zero[rank:]])
            n.then("Pad", amounts)
            before = 0
            length += reach - 1
        n.then("Conv", w, b, group=group, strides=sides(s, 1), dilations=sides(d, 1), pads=pads(before, behind, 1))
        length, depth = (length + before + behind - reach) // s + 1, wide
        if kind in ("chomp", "residual"):
            start, end, along = n.name(), n.name(), n.name()
            n.m.constant(along, [axis])
            if kind == "chomp":
                n.m.constant(start, [0])
                n.m.constant(end, [length - reach + 1])
                n.then("Slice", start, end, along)
                length -= reach - 1
            else:
                # What the convolution leaves of its input: without the first two steps, the last two, or one of each.
                first = int(rng.integers(0, 3))
                n.m.constant(start, [first])
                n.m.constant(end, [first + length])
                here, n.at = n.at, source
                n.then("Slice", start, end, along)
                n.then("Add", here)
        n.activation(str(rng.choice(ACTIVATIONS)))
    head = str(rng.choice(["mean", "last", "dense", "steps", "lstm"]))
    if head == "lstm" and not flat:
        head = "dense"
    if head == "mean":
        n.then("GlobalAveragePool")
        n.then("Flatten")
        n.dense(depth, 3)
    elif head == "last":
        index = n.name()
        n.m.constant(index, -1, "int64")
        n.then("Gather", index, axis=axis)
        n.then("Flatten")
        n.dense(depth * (1 if flat else bands), 3)
    elif head == "dense":
        n.then("Flatten")
        n.dense(depth * length * (1 if flat else bands), 3)
    elif head == "lstm":
        n.then("Transpose", perm=[2, 0, 1])
        names = [n.name() for _ in range(2)]
        n.m.weight(names[0], 1, 20, depth)
        n.m.weight(names[1], 1, 20, 5)
        n.m("LSTM", " ".join([n.at, *names]), "_ state", hidden_size=5)
        n.at = "state"
    else:
        w = n.name()
        n.m.weight(w, 3, depth, *([1] if flat else [1, 1]))
        n.then("Conv", w)
    return n.done(shape), axis


def check(whole: Graph, stream: Graph, axis: int, seed: int, calls: int = 8, gap: int = 1, near: float = 1e-6) -> None:
    """Both on the same random steps, after zeros. gap: one in how many calls is compared, and the last one: what a step
    kept wrong shows in later ones."""
    (name,), rng, exact = whole.inputs, np.random.default_rng([seed, 1]), not whole.is_float
    wide = exact and whole.grids[name].wide
    at, steps = time_axis(whole, name, axis)
    new, shape = stream.shapes[name][at], list(whole.shapes[name])
    if wide:
        shape[-1] //= 2
        new //= 2 if at == len(shape) - 1 else 1
    past = np.full(shape, whole.grids[name].zero if exact else 0)
    shape[at] = calls * new
    coming = rng.integers(0, 65536 if wide else 256, shape) if exact else rng.standard_normal(shape)
    every = np.concatenate([past, coming], at).astype(np.float32 if not exact else np.int64 if wide else np.uint8)

    def last(count: int, end: int) -> Array:
        found = np.take(every, range(end - count, end), at)
        return to_bytes(found) if wide else found

    states: dict[str, Any] = {}
    for k in range(calls):
        end = steps + (k + 1) * new
        found = stream.run({name: last(new, end)}, states)
        if k % gap and k < calls - 1:
            continue
        wanted = whole.run({name: last(steps, end)})
        for output in whole.outputs:
            a, b = found[output], wanted[output]
            if a.shape != b.shape:
                (along,) = (k for k, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n)
                b = np.take(b, range(b.shape[along] - a.shape[along], b.shape[along]), along)
            if exact:
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=10 * near, atol=near, err_msg=f"seed {seed}, call {k}, {output}")
