"""Nodes whose inputs must fit each other, which drawing from a schema would hardly ever hit: recurrent layers,
attention, Fourier transforms, regions, control flow, strings.

Each function draws one node from a random.Random and the opset: (operator, [input array, or None where it is left out],
{attribute: value}, number of outputs). None where the opset does not have it. The first input is never constant.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, parser

Drawn = tuple[str, list[Any], dict[str, Any], int] | None
F32 = np.float32


def _floats(choose: random.Random, *shape: int) -> Any:
    return np.random.default_rng(choose.randrange(1 << 30)).standard_normal(shape).astype(F32)


def _maybe(choose: random.Random, value: Any, chance: float = 0.5) -> Any:
    return value if choose.random() < chance else None


def recurrent(choose: random.Random, opset: int) -> Drawn:
    operator, gates = choose.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    direction = choose.choice(["forward", "reverse", "bidirectional"])
    n = 2 if direction == "bidirectional" else 1
    steps, batch, features, hidden = (choose.choice([1, 2, 3]) for _ in range(4))
    inputs = [
        _floats(choose, steps, batch, features),
        _floats(choose, n, gates * hidden, features),
        _floats(choose, n, gates * hidden, hidden),
        _maybe(choose, _floats(choose, n, 2 * gates * hidden), 0.7),
        _maybe(choose, np.array([choose.randint(1, steps) for _ in range(batch)], np.int32), 0.2),
        _maybe(choose, _floats(choose, n, batch, hidden)),
    ]
    if operator == "LSTM":
        inputs += [
            _maybe(choose, _floats(choose, n, batch, hidden)),
            _maybe(choose, _floats(choose, n, 3 * hidden), 0.2),
        ]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if choose.random() < 0.2:
        attributes["clip"] = choose.choice([0.5, 2.0])
    if operator == "GRU":
        attributes["linear_before_reset"] = choose.choice([0, 1])
    if choose.random() < 0.3:
        count = {"LSTM": 3, "GRU": 2, "RNN": 1}[operator] * n
        attributes["activations"] = [choose.choice(["Relu", "Tanh", "Sigmoid", "Softsign"]) for _ in range(count)]
    return operator, inputs, attributes, choose.choice([1, 2, 3] if operator == "LSTM" else [1, 2])


def attention(choose: random.Random, opset: int) -> Drawn:
    if opset < 23:
        return None
    batch, heads, steps, keys, width, depth = (choose.choice([1, 2, 3]) for _ in range(6))
    shared = choose.choice([1, 1, 2])
    q, k, v = (heads * shared, steps, width), (heads, keys, width), (heads, keys, depth)
    attributes: dict[str, Any] = {}
    if choose.random() < 0.4:
        arrays = [_floats(choose, batch, n, h * d) for h, n, d in (q, k, v)]
        attributes |= {"q_num_heads": q[0], "kv_num_heads": heads}
    else:
        arrays = [_floats(choose, batch, *s) for s in (q, k, v)]
    past = choose.choice([0, 0, 1, 2])
    mask: Any = None
    if choose.random() < 0.5:
        shape = choose.choice([(steps, keys + past), (batch, 1, steps, keys + past), (1, q[0], steps, keys + past)])
        mask = _floats(choose, *shape)
        if choose.random() < 0.5:
            mask = mask < 0.8
            mask[..., 0] = True
    arrays.append(mask)
    if past:
        arrays += [_floats(choose, batch, heads, past, width), _floats(choose, batch, heads, past, depth)]
    if choose.random() < 0.3:
        attributes["is_causal"] = 1
    if choose.random() < 0.3:
        attributes["scale"] = 0.7
    if choose.random() < 0.2:
        attributes["softcap"] = 2.0
    return "Attention", arrays, attributes, 3 if past else 1


def dft(choose: random.Random, opset: int) -> Drawn:
    if opset < 17:
        return None
    lead = [choose.choice([1, 2, 3, 4, 5, 8]) for _ in range(choose.choice([2, 2, 3]))]
    inverse, onesided = choose.choice([0, 1]), choose.choice([0, 0, 1])
    parts = 2 if inverse else 1 if onesided else choose.choice([1, 2])
    if inverse and opset < 20:
        onesided = 0
    elif inverse:
        onesided = 0
    axis = choose.choice([None, 1, -2])
    length = _maybe(choose, np.array(choose.choice([1, 2, 3, 5, 8]), np.int64), 0.3)
    attributes: dict[str, Any] = {"inverse": inverse, "onesided": onesided}
    inputs = [_floats(choose, *lead, parts), length]
    if opset >= 20:
        inputs.append(None if axis is None else np.array(axis, np.int64))
    elif axis is not None:
        attributes["axis"] = axis
    return "DFT", inputs, attributes, 1


def stft(choose: random.Random, opset: int) -> Drawn:
    if opset < 17:
        return None
    length, step = choose.choice([2, 3, 4, 8]), choose.choice([1, 2, 3])
    window = _maybe(choose, _floats(choose, length))
    signal = _floats(choose, choose.choice([1, 2]), length + choose.randrange(9), 1)
    given = None if window is not None and choose.random() < 0.5 else np.array(length, np.int64)
    return "STFT", [signal, np.array(step, np.int64), window, given], {"onesided": choose.choice([0, 1])}, 1


def mel(choose: random.Random, opset: int) -> Drawn:
    if opset < 17:
        return None
    low = choose.choice([0.0, 20.0])
    values: list[Any] = [np.array(n, np.int64) for n in (choose.choice([2, 4]), choose.choice([8, 16]), 8000)]
    return "MelWeightMatrix", [*values, np.array(low, F32), np.array(choose.choice([2000.0, 4000.0]), F32)], {}, 1


def roi_align(choose: random.Random, opset: int) -> Drawn:
    if opset < 10:
        return None
    batch, rois = choose.choice([1, 2]), choose.choice([0, 1, 3])
    corner = np.abs(_floats(choose, rois, 2)) * 3
    boxes = np.concatenate([corner, corner + np.abs(_floats(choose, rois, 2)) * 3], 1).astype(F32)
    which = np.array([choose.randrange(batch) for _ in range(rois)], np.int64)
    attributes: dict[str, Any] = {
        "output_height": choose.choice([1, 2, 3]), "output_width": choose.choice([1, 2]),
        "sampling_ratio": choose.choice([0, 1, 2]), "spatial_scale": choose.choice([1.0, 0.5]),
    }  # fmt: skip
    if opset >= 16:
        attributes["coordinate_transformation_mode"] = choose.choice(["half_pixel", "output_half_pixel"])
    return "RoiAlign", [_floats(choose, batch, 2, 5, 6), boxes, which], attributes, 1


def suppression(choose: random.Random, opset: int) -> Drawn:
    if opset < 10:
        return None
    batch, boxes, classes = choose.choice([1, 2]), choose.choice([1, 4, 6]), choose.choice([1, 2])
    corner = np.abs(_floats(choose, batch, boxes, 2))
    placed = np.concatenate([corner, corner + 0.5 + np.abs(_floats(choose, batch, boxes, 2))], 2).astype(F32)
    limit = np.array([choose.choice([0, 1, 3])], np.int64)
    inputs = [placed, _floats(choose, batch, classes, boxes), limit, np.array([0.4], F32)]
    return (
        "NonMaxSuppression",
        [*inputs, _maybe(choose, np.array([0.1], F32))],
        {"center_point_box": choose.choice([0, 1])},
        1,
    )


def unique(choose: random.Random, opset: int) -> Drawn:
    if opset < 11:
        return None
    shape = [choose.choice([1, 2, 4]) for _ in range(choose.choice([1, 2]))]
    values = (
        np.random.default_rng(choose.randrange(1 << 30)).integers(0, 3, shape).astype(choose.choice([F32, np.int64]))
    )
    attributes: dict[str, Any] = {"sorted": choose.choice([0, 1])}
    if choose.random() < 0.5:
        attributes["axis"] = choose.randrange(len(shape))
    return "Unique", [values], attributes, choose.choice([1, 4])


def deform_conv(choose: random.Random, opset: int) -> Drawn:
    if opset < 19:
        return None
    batch, channels, groups = choose.choice([1, 2]), 2, choose.choice([1, 2])
    kernel = [choose.choice([1, 2]), choose.choice([1, 3])]
    sizes, pads, strides = [5, 6], [choose.choice([0, 1]) for _ in range(4)], [choose.choice([1, 2]), 1]
    out = [(sizes[i] + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i in range(2)]
    offsets = choose.choice([1, 2])
    inputs = [
        _floats(choose, batch, channels, *sizes),
        _floats(choose, 2, channels // groups, *kernel),
        _floats(choose, batch, offsets * kernel[0] * kernel[1] * 2, *out),
        _maybe(choose, _floats(choose, 2)),
        _maybe(choose, _floats(choose, batch, offsets * kernel[0] * kernel[1], *out)),
    ]
    return "DeformConv", inputs, {
        "kernel_shape": kernel, "pads": pads, "strides": strides, "group": groups, "offset_group": offsets
    }, 1  # fmt: skip


def unpool(choose: random.Random, opset: int) -> Drawn:
    if opset < 9:
        return None
    width, side = choose.choice([2, 4]), choose.choice([2, 3])
    places = [choose.sample(range(4 * side), side * 2) for _ in range(width)]
    shape = (1, width, 2, side)
    return "MaxUnpool", [_floats(choose, *shape), np.array(places, np.int64).reshape(shape) + 0], {
        "kernel_shape": [1, 2], "strides": [1, 2]
    }, 1  # fmt: skip


def _graph(text: str) -> onnx.GraphProto:
    return parser.parse_graph(text)


def branch(choose: random.Random, opset: int) -> Drawn:
    """An If whose branches read a value of the graph around them; the condition is computed or constant."""
    bodies = [choose.choice(["Neg (i0)", "Add (i0, i0)", "Identity (i0)", "Relu (i0)"]) for _ in range(2)]
    graphs = [
        _graph(f"{name} () => (float[] {name}_y) {{ {name}_y = {body} }}")
        for name, body in zip("tf", bodies, strict=True)
    ]
    for graph in graphs:
        graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    condition = np.array(choose.random() < 0.5)
    attributes = {"then_branch": graphs[0], "else_branch": graphs[1]}
    return "If*", [_floats(choose, choose.choice([1, 3]), 2), condition], attributes, 1


def loop(choose: random.Random, opset: int) -> Drawn:
    """A Loop of a given number of rounds, or until a sum is large, with a value carried along and one collected."""
    if opset < 11:
        return None
    body = choose.choice(["Add (s, x)", "Mul (s, s)", "Sub (x, s)", "Relu (s)"]).replace("x", "i0")
    more = choose.choice(["Identity (k)", "Less (total, limit)"])
    graph = _graph(
        f"r (int64 n, bool k, float[2] s) => (bool m, float[2] t, float[2] p) <float limit = {{6.0}}> {{"
        f" t = {body} total = ReduceSum <keepdims: int = 0> (t) m = {more} q = Cast <to: int = 1> (n) p = Add (t, q) }}"
    )
    rounds = _maybe(choose, np.array(choose.choice([0, 1, 3, 5]), np.int64), 1.0 if "Identity" in more else 0.7)
    go = np.array(choose.random() < 0.9)
    if rounds is None:
        rounds = np.array(8, np.int64)
    return "Loop*", [_floats(choose, 2), rounds, _maybe(choose, go, 0.6), _floats(choose, 2)], {"body": graph}, 2


def scan(choose: random.Random, opset: int) -> Drawn:
    if opset < 9:
        return None
    step = choose.choice(["Add (s, e)", "Max (s, e)", "Mul (s, e)"])
    graph = _graph(f"r (float[2] s, float[2] e) => (float[2] t, float[2] p) {{ t = {step} p = Neg (t) }}")
    attributes: dict[str, Any] = {"body": graph, "num_scan_inputs": 1}
    if choose.random() < 0.5:
        attributes["scan_input_directions"] = [choose.choice([0, 1])]
        attributes["scan_output_directions"] = [choose.choice([0, 1])]
    axis = choose.choice([0, 1])
    sequence = _floats(choose, 3, 2) if axis == 0 else _floats(choose, 2, 3)
    if axis:
        attributes["scan_input_axes"] = [1]
        if choose.random() < 0.5:
            attributes["scan_output_axes"] = [choose.choice([1, -1])]
    return "Scan", [_floats(choose, 2), sequence], attributes, 2


WORDS = ["a", "B", "the", "", "Übung", "x-y", "a@b.de", "tokyo 東京", "12", "aB c"]


def _words(choose: random.Random, *shape: int) -> Any:
    return np.array([choose.choice(WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)


def strings(choose: random.Random, opset: int) -> Drawn:
    kind = choose.choice(["concat", "split", "match", "normalize", "counts", "equal"])
    n = choose.choice([1, 2, 4])
    if kind == "normalize" and opset >= 10:
        attributes: dict[str, Any] = {
            "case_change_action": choose.choice(["NONE", "LOWER", "UPPER"]),
            "is_case_sensitive": choose.choice([0, 1]),
        }
        if choose.random() < 0.6:
            attributes["stopwords"] = choose.sample(["a", "the", "B", "12"], 2)
        return "StringNormalizer", [_words(choose, n)], attributes, 1
    if kind == "counts" and opset >= 9:
        return "TfIdfVectorizer", [np.array([choose.randrange(5) for _ in range(6)], np.int64)], {
            "max_gram_length": choose.choice([1, 2]), "max_skip_count": choose.choice([0, 1]), "min_gram_length": 1,
            "mode": choose.choice(["TF", "IDF", "TFIDF"]), "ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4],
            "pool_int64s": [0, 2, 4, 1, 2, 3, 4], "weights": [1.0, 0.5, 2.0, 1.0, 3.0],
        }, 1  # fmt: skip
    if kind == "equal" and opset >= 19:
        return "Equal", [_words(choose, n), _words(choose, choose.choice([1, n]))], {}, 1
    if opset < 20:
        return None
    if kind == "concat":
        return "StringConcat", [_words(choose, 2, n), _words(choose, choose.choice([1, n]))], {}, 1
    if kind == "split":
        attributes = {"delimiter": choose.choice(["-", "@", "b", " "])} if choose.random() < 0.6 else {}
        if choose.random() < 0.4:
            attributes["maxsplit"] = choose.choice([0, 1, 2])
        return "StringSplit", [_words(choose, n)], attributes, 2
    pattern = choose.choice([r"[a-z]+", r"\d+", r".*@.*\.de", r"(a|B).*", r"[^ ]*"])
    return "RegexFullMatch", [_words(choose, n)], {"pattern": pattern}, 1


DRAWERS: tuple[Callable[[random.Random, int], Drawn], ...] = (
    recurrent, recurrent, attention, attention, dft, stft, mel, roi_align, suppression, unique, deform_conv, unpool,
    branch, loop, scan, strings, strings,
)  # fmt: skip
