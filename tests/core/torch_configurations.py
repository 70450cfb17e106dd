"""Random configurations of layers and functions and their arguments, drawn from NumPy's frozen generator.

fixtures/torch_configurations.py runs them through PyTorch once and keeps the results; test_torch_configurations.py runs
them through emberlet. A configuration is (kind, arrays, options).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np

EACH = 24  # configurations of a kind
KEPT = 96  # elements of a result that are kept, evenly spread over it
Draw = np.random.RandomState
Drawn = tuple[dict[str, Any], dict[str, Any]]
KINDS: dict[str, Callable[[Draw], Drawn]] = {}


def kind(function: Callable[..., Drawn], *args: Any, name: str | None = None) -> None:
    KINDS[name or function.__name__] = lambda r: function(r, *args)


def normal(r: Draw, *shape: int) -> Any:
    return r.randn(*shape).astype(np.float32)


def pick(r: Draw, *choices: Any) -> Any:
    return choices[r.randint(len(choices))]


def each(r: Draw, n: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(v) for v in r.randint(low, high, n))


def conv(r: Draw, n: int) -> Drawn:
    groups = pick(r, 1, 1, 2)
    kernel, dilation = each(r, n, 1, 4), each(r, n, 1, 3)
    sizes = [d * (k - 1) + 1 + int(r.randint(0, 4)) for k, d in zip(kernel, dilation, strict=True)]
    c, m = groups * int(r.randint(1, 3)), groups * int(r.randint(1, 3))
    arrays = {"x": normal(r, 2, c, *sizes), "weight": normal(r, m, c // groups, *kernel)}
    if pick(r, 0, 1):
        arrays["bias"] = normal(r, m)
    same = r.randint(6) == 0
    stride, padding = ((1,) * n, "same") if same else (each(r, n, 1, 4), each(r, n, 0, 3))
    return arrays, {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def conv_transpose(r: Draw, n: int) -> Drawn:
    groups = pick(r, 1, 1, 2)
    kernel, dilation, stride = each(r, n, 1, 4), each(r, n, 1, 3), each(r, n, 1, 4)
    c, m = groups * int(r.randint(1, 3)), int(r.randint(1, 3))
    arrays = {"x": normal(r, 2, c, *each(r, n, 2, 5)), "weight": normal(r, c, m, *kernel)}
    if pick(r, 0, 1):
        arrays["bias"] = normal(r, m * groups)
    padding = tuple(int(r.randint(0, d * (k - 1) // 2 + 1)) for k, d in zip(kernel, dilation, strict=True))
    out = tuple(int(r.randint(0, max(s, d))) for s, d in zip(stride, dilation, strict=True))
    return arrays, {
        "stride": stride, "padding": padding, "output_padding": out, "groups": groups, "dilation": dilation
    }  # fmt: skip


def pool(r: Draw, n: int, average: bool) -> Drawn:
    kernel, stride = each(r, n, 1, 4), each(r, n, 1, 4)
    options: dict[str, Any] = {
        "kernel_size": kernel, "stride": stride, "padding": tuple(int(r.randint(0, k // 2 + 1)) for k in kernel),
        "ceil_mode": bool(pick(r, 0, 1)),
    }  # fmt: skip
    if average:
        options["count_include_pad"] = bool(pick(r, 0, 1))
    else:
        options["dilation"] = each(r, n, 1, 3)
    return {"x": normal(r, 2, 2, *each(r, n, 6, 10))}, options


def adaptive(r: Draw, n: int) -> Drawn:
    sizes = each(r, n, 3, 9)
    return {"x": normal(r, 2, 2, *sizes)}, {"output_size": tuple(int(r.randint(1, s + 1)) for s in sizes)}


def resized(r: Draw, n: int) -> Drawn:
    modes = {1: ("nearest", "linear"), 2: ("nearest", "bilinear", "bicubic"), 3: ("nearest", "trilinear")}[n]
    mode = pick(r, *modes)
    options: dict[str, Any] = {"mode": mode}
    if pick(r, 0, 1):
        options["size"] = each(r, n, 1, 9)
    else:
        # Two axes by 1.3: the result of PyTorch's "nearest" depends on the size of the picture.
        little = 1.5 if (n, mode) == (2, "nearest") else 1.3
        options["scale_factor"] = tuple(float(pick(r, 0.5, 0.7, little, 1.7, 2.0, 2.6)) for _ in range(n))
    if mode != "nearest":
        options["align_corners"] = bool(pick(r, 0, 1))
    return {"x": normal(r, 1, 2, *each(r, n, 2, 7))}, options


def cut_length(r: Draw, n: int) -> Drawn:
    """`resized` by scales that leave some lengths as they are: 1.3 * 3 is 3 elements ("nearest": see there)."""
    modes = {1: ("nearest", "linear"), 2: ("bilinear", "bicubic"), 3: ("nearest", "trilinear")}[n]
    options: dict[str, Any] = {"mode": pick(r, *modes)}
    options["scale_factor"] = tuple(float(pick(r, 1.1, 1.15, 1.3, 1.45, 2.3)) for _ in range(n))
    if options["mode"] != "nearest":
        options["align_corners"] = bool(r.randint(4) == 0)
    return {"x": normal(r, 1, 2, *each(r, n, 2, 6))}, options


def grid_sample(r: Draw) -> Drawn:
    mode = pick(r, "nearest", "bilinear", "bicubic")
    arrays = {"x": normal(r, 2, 2, *each(r, 2, 2, 6)), "grid": r.uniform(-1.6, 1.6, (2, 3, 4, 2)).astype(np.float32)}
    padding = pick(r, "zeros", "border", "reflection")
    return arrays, {"mode": mode, "padding_mode": padding, "align_corners": bool(pick(r, 0, 1))}


def layer_norm(r: Draw) -> Drawn:
    shape, axes = each(r, 3, 2, 5), int(r.randint(1, 3))
    arrays = {"x": normal(r, *shape) * 3}
    if pick(r, 0, 1):
        arrays.update(weight=normal(r, *shape[-axes:]), bias=normal(r, *shape[-axes:]))
    return arrays, {"axes": axes, "epsilon": pick(r, 1e-5, 1e-3)}


def rms_norm(r: Draw) -> Drawn:
    shape = each(r, 3, 2, 6)
    arrays = {"x": normal(r, *shape)}
    if pick(r, 0, 1):
        arrays["weight"] = normal(r, shape[-1])
    return arrays, {"epsilon": pick(r, 1e-5, 1e-3)}


def group_norm(r: Draw) -> Drawn:
    groups = int(r.randint(1, 4))
    c = groups * int(r.randint(1, 4))
    arrays = {"x": normal(r, 2, c, *each(r, int(r.randint(1, 4)), 2, 4))}
    if pick(r, 0, 1):
        arrays.update(weight=normal(r, c), bias=normal(r, c))
    return arrays, {"groups": groups, "epsilon": pick(r, 1e-5, 1e-2)}


def batch_norm(r: Draw) -> Drawn:
    c = int(r.randint(1, 5))
    arrays = {"x": normal(r, 2, c, *each(r, int(r.randint(0, 4)), 2, 4)), "mean": normal(r, c)}
    arrays["var"] = r.uniform(0.1, 2, c).astype(np.float32)
    if pick(r, 0, 1):
        arrays.update(weight=normal(r, c), bias=normal(r, c))
    return arrays, {"epsilon": pick(r, 1e-5, 1e-2)}


def local_response_norm(r: Draw) -> Drawn:
    # Of an even number of channels PyTorch takes one more before, ONNX one more behind: odd ones only.
    options = {
        "size": pick(r, 1, 3, 5),
        "alpha": pick(r, 1e-4, 0.5),
        "beta": pick(r, 0.75, 1.5),
        "k": pick(r, 1.0, 2.0),
    }
    return {"x": normal(r, 2, int(r.randint(1, 7)), 3, 2)}, options


def normalize(r: Draw) -> Drawn:
    return {"x": normal(r, 3, 4, 2)}, {"p": pick(r, 1.0, 2.0, 3.0), "dim": int(r.randint(-3, 3))}


ACTIVATIONS: list[tuple[str, dict[str, Any]]] = [
    ("relu", {}), ("relu6", {}), ("leaky_relu", {"negative_slope": 0.3}), ("sigmoid", {}), ("tanh", {}), ("silu", {}),
    ("gelu", {"approximate": "none"}), ("gelu", {"approximate": "tanh"}), ("softplus", {"beta": 1.0}), ("mish", {}),
    ("softplus", {"beta": 2.5}), ("softsign", {}), ("log_sigmoid", {}), ("elu", {"alpha": 0.7}), ("selu", {}),
    ("celu", {"alpha": 1.8}), ("hardtanh", {"min_value": -0.5, "max_value": 1.5}), ("hard_swish", {}), ("erf", {}),
    ("hard_sigmoid", {}), ("shrink", {"lambd": 0.4}), ("softshrink", {"lambd": 0.4}), ("tanhshrink", {}), ("glu", {}),
    ("prelu", {}), ("threshold", {"alpha": 0.3}), ("expm1", {}), ("rsqrt", {}), ("log1p", {}), ("sinh", {}),
]  # fmt: skip


def activation(r: Draw) -> Drawn:
    name, options = ACTIVATIONS[r.randint(len(ACTIVATIONS))]
    x = normal(r, 2, 4, *each(r, 2, 1, 4)) * 3
    arrays = {"x": abs(x) + np.float32(0.1) if name in ("rsqrt", "log1p") else x}
    if name == "prelu":
        arrays["weight"] = normal(r, pick(r, 1, 4))
    return arrays, {"name": name, **options}


def softmax(r: Draw) -> Drawn:
    return {"x": normal(r, *each(r, 3, 1, 5)) * 4}, {"log": bool(pick(r, 0, 1)), "dim": int(r.randint(-3, 3))}


def classification(r: Draw) -> Drawn:
    n, c = int(r.randint(2, 5)), int(r.randint(2, 6))
    rest = each(r, int(r.randint(0, 3)), 1, 4)
    arrays = {"x": normal(r, n, c, *rest), "target": r.randint(0, c, (n, *rest)).astype(np.int64)}
    options: dict[str, Any] = {"loss": pick(r, "nll", "cross_entropy"), "reduction": pick(r, "none", "sum", "mean")}
    if pick(r, 0, 1):
        arrays["weight"] = r.uniform(0.2, 2, c).astype(np.float32)
    if pick(r, 0, 1):
        options["ignore_index"] = (
            int(arrays["target"].flat[0]) if (arrays["target"] != arrays["target"].flat[0]).any() else -7
        )
    return arrays, options


def regression(r: Draw) -> Drawn:
    shape = each(r, 2, 1, 6)
    loss = pick(r, "mse", "huber", "bce", "bce_logits")
    x, target = normal(r, *shape) * 2, normal(r, *shape)
    if loss.startswith("bce"):
        target = (target > 0).astype(np.float32)
        x = (1 / (1 + np.exp(-x))).astype(np.float32) if loss == "bce" else x
    return {"x": x, "target": target}, {"loss": loss, "reduction": pick(r, "sum", "mean"), "delta": pick(r, 0.5, 1.0)}


def embedding(r: Draw) -> Drawn:
    n = int(r.randint(1, 9))
    shape = each(r, int(r.randint(0, 3)), 1, 5)
    return {"x": r.randint(0, n, shape).astype(np.int64), "weight": normal(r, n, int(r.randint(1, 6)))}, {}


def linear(r: Draw) -> Drawn:
    d, m = each(r, 2, 1, 7)
    arrays = {"x": normal(r, *each(r, int(r.randint(0, 3)), 1, 4), d), "weight": normal(r, m, d)}
    if pick(r, 0, 1):
        arrays["bias"] = normal(r, m)
    return arrays, {}


def recurrent(r: Draw, gates: int) -> Drawn:
    steps, batch, d, hidden = each(r, 4, 1, 5)
    both = bool(pick(r, 0, 1))
    arrays = {"x": normal(r, steps, batch, d), "h": normal(r, 1 + both, batch, hidden)}
    if gates == 4:
        arrays["c"] = normal(r, 1 + both, batch, hidden)
    for i in range(1 + both):
        for name, columns in (("w", d), ("r", hidden)):
            arrays[f"{name}{i}"] = normal(r, gates * hidden, columns)
        arrays[f"bw{i}"], arrays[f"br{i}"] = normal(r, gates * hidden), normal(r, gates * hidden)
    return arrays, {"gates": gates, "both": both}


def attention(r: Draw) -> Drawn:
    b, heads, q, k, d, e = each(r, 6, 1, 5)
    arrays = {"q": normal(r, b, heads, q, d), "k": normal(r, b, heads, k, d), "v": normal(r, b, heads, k, e)}
    options: dict[str, Any] = {"is_causal": False, "scale": pick(r, None, 0.3)}
    how = pick(r, "plain", "causal", "float mask", "bool mask")
    if how == "causal" and q == k:
        options["is_causal"] = True
    elif how == "float mask":
        arrays["mask"] = normal(r, q, k)
    elif how == "bool mask":
        arrays["mask"] = r.rand(q, k) > 0.4
        arrays["mask"][:, 0] = True
    return arrays, options


def pad(r: Draw) -> Drawn:
    n = int(r.randint(1, 4))
    mode = pick(r, "constant", "reflect", "edge", "wrap")
    low = -1 if mode == "constant" else 0
    pads = [each(r, 2, low, 3) for _ in range(n)]
    return {"x": normal(r, 1, 2, *each(r, n, 3, 6))}, {"mode": mode, "pads": pads, "value": pick(r, 0.0, 1.5)}


def windows(r: Draw) -> Drawn:
    kernel, dilation = each(r, 2, 1, 4), each(r, 2, 1, 3)
    options = {"kernel_size": kernel, "stride": each(r, 2, 1, 3), "padding": each(r, 2, 0, 3), "dilation": dilation}
    return {"x": normal(r, 1, 2, *each(r, 2, 6, 9))}, {**options, "fold": bool(pick(r, 0, 1))}


def shuffle(r: Draw) -> Drawn:
    b, h, w = int(r.randint(1, 4)), *each(r, 2, 1, 4)
    down = bool(pick(r, 0, 1))
    shape = (2, 2, h * b, w * b) if down else (2, 2 * b * b, h, w)
    return {"x": normal(r, *shape)}, {"block": b, "down": down}


def lp_pool(r: Draw) -> Drawn:
    options = {"kernel_size": each(r, 2, 1, 4), "stride": each(r, 2, 1, 4), "p": pick(r, 1.0, 2.0, 3.0)}
    return {"x": abs(normal(r, 2, 2, *each(r, 2, 4, 8)))}, {**options, "ceil_mode": False}


REDUCTIONS = ("sum", "mean", "prod", "var", "std", "amax", "amin", "logsumexp", "norm", "cumsum", "cumprod", "argmax",
              "argmin", "sort", "argsort", "topk", "cummax", "any", "all", "median of three",
              "count_nonzero")  # fmt: skip


def reduction(r: Draw) -> Drawn:
    options = {
        "name": REDUCTIONS[r.randint(len(REDUCTIONS))],
        "dim": int(r.randint(-3, 3)),
        "keep": bool(pick(r, 0, 1)),
    }
    return {"x": normal(r, 3, *each(r, 2, 3, 6))}, {**options, "correction": pick(r, 0, 1)}


for _n in (1, 2, 3):
    kind(conv, _n, name=f"conv{_n}d")
    kind(conv_transpose, _n, name=f"conv_transpose{_n}d")
    kind(pool, _n, False, name=f"max_pool{_n}d")
    kind(pool, _n, True, name=f"avg_pool{_n}d")
    kind(resized, _n, name=f"interpolate{_n}d")
    kind(cut_length, _n, name=f"interpolate{_n}d with lengths cut")
for _n in (1, 2):
    kind(adaptive, _n, name=f"adaptive_avg_pool{_n}d")
    kind(adaptive, _n, name=f"adaptive_max_pool{_n}d")
for _name, _gates in (("rnn", 1), ("gru", 3), ("lstm", 4)):
    kind(recurrent, _gates, name=_name)
for _function in (
    grid_sample, layer_norm, rms_norm, group_norm, batch_norm, local_response_norm, normalize, activation, softmax,
    classification, regression, embedding, linear, attention, pad, windows, shuffle, lp_pool, reduction,
):  # fmt: skip
    kind(_function)


def configuration(name: str, i: int) -> Drawn:
    """The i-th configuration of a kind: always the same one."""
    return KINDS[name](np.random.RandomState(crc32(f"{name} {i}".encode())))


def kept(answer: Any) -> Any:
    """The elements of a result that are kept."""
    flat = np.asarray(answer).reshape(-1)
    return flat if flat.size <= KEPT else flat[np.linspace(0, flat.size - 1, KEPT).astype(int)]
