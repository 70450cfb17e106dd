"""Layers and functions in 1,056 random configurations, compared with PyTorch 2.13 (torch_configurations.py).

No configuration is drawn where ONNX's definition differs from PyTorch's: local_response_norm over an even number of
channels, and Resize's coordinates, which `resize` has but `interpolate` does not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend
from support.backends import NAMES

from .torch_configurations import EACH, KINDS, configuration, kept

FIXTURE = Path(__file__).parent / "fixtures" / "torch_configurations.npz"
# Only the first few of each kind on the GPU, which compiles a kernel for most of them.
ON_GPU = 3


@cache
def answers() -> list[tuple[str, int, Any, tuple[int, ...]]]:
    """(kind, number, kept elements, shape) of every configuration."""
    out = []
    with np.load(FIXTURE) as file:
        for name in KINDS:
            values, shapes = file[name + "/values"], file[name + "/shapes"]
            start = at = 0
            for i, (end, rank) in enumerate(zip(file[name + "/ends"], file[name + "/ranks"], strict=True)):
                out.append((name, i, values[start:end], tuple(int(n) for n in shapes[at : at + rank])))
                start, at = int(end), at + int(rank)
    return out


def activation(a: Any, o: Any) -> Any:
    x, name = a["x"], o.pop("name")
    if name == "prelu":
        return F.prelu(x, a["weight"].reshape((-1, 1, 1)))
    if name == "threshold":
        return F.thresholded_relu(x, o["alpha"])
    if name == "tanhshrink":
        return x - F.tanh(x)
    if name == "softshrink":
        return F.shrink(x, o["lambd"], o["lambd"])
    if name == "hard_sigmoid":
        return F.hard_sigmoid(x, 1 / 6, 0.5)
    if name == "glu":
        return F.glu(x, 1)
    return getattr(F, name)(x, **o)


def recurrent(a: Any, o: Any) -> Any:
    gates, hidden = o["gates"], a["h"].shape[2]
    # PyTorch's gates lie in the order i f g o (LSTM) and r z n (GRU), ONNX's in i o f c and z r h.
    order = {1: (0,), 3: (1, 0, 2), 4: (0, 3, 1, 2)}[gates]

    def turned(x: Any) -> Any:
        return F.concat([x[g * hidden : (g + 1) * hidden] for g in order])

    sides = range(1 + o["both"])
    w = F.stack([turned(a[f"w{i}"]) for i in sides])
    r = F.stack([turned(a[f"r{i}"]) for i in sides])
    b = F.stack([F.concat([turned(a[f"bw{i}"]), turned(a[f"br{i}"])]) for i in sides])
    options: dict[str, Any] = {"initial_h": a["h"], "direction": "bidirectional" if o["both"] else "forward"}
    if gates == 4:
        y, h, c = F.lstm(a["x"], w, r, b, initial_c=a["c"], **options)
    elif gates == 3:
        y, h = F.gru(a["x"], w, r, b, linear_before_reset=True, **options)
    else:
        y, h = F.rnn(a["x"], w, r, b, **options)
    y = F.permute_dims(y, (0, 2, 1, 3))
    return F.concat([v.reshape(-1) for v in ((y, h, c) if gates == 4 else (y, h))])


def reduction(a: Any, o: Any) -> Any:
    x, name, axis, keep = a["x"], o["name"], o["dim"], o["keep"]
    if name in ("var", "std"):
        return getattr(x, name)(axis, correction=o["correction"], keepdims=keep)
    if name in ("cumsum", "cumprod"):
        return getattr(F, {"cumsum": "cumulative_sum", "cumprod": "cumulative_prod"}[name])(x, axis=axis)
    if name == "cummax":
        return x.cummax(axis)
    if name in ("sort", "argsort"):
        return getattr(x, name)(axis=axis)
    if name == "topk":
        return x.topk(2, axis)
    if name == "median of three":
        return F.sort(x[:3], axis=0)[1]
    if name in ("any", "all"):
        return getattr(F, name)(x > 0, axis, keepdims=keep)
    if name == "count_nonzero":
        return F.count_nonzero(x > 0, axis)
    if name == "norm":
        return F.norm(x, 2, axis, keepdims=keep)
    return getattr(F, {"amax": "max", "amin": "min"}.get(name, name))(x, axis, keepdims=keep)


def pad(a: Any, o: Any) -> Any:
    return F.pad(a["x"], [(0, 0), (0, 0), *o["pads"]], o["value"], mode=o["mode"])


def windows(a: Any, o: Any) -> Any:
    fold = o.pop("fold")
    columns = F.unfold(a["x"], **o)
    return F.fold(columns, a["x"].shape[2:], **o) if fold else columns


def classification(a: Any, o: Any) -> Any:
    loss = o.pop("loss")
    x = F.log_softmax(a["x"], 1) if loss == "nll" else a["x"]
    return (F.nll_loss if loss == "nll" else F.cross_entropy)(x, a["target"], a.get("weight"), **o)


def regression(a: Any, o: Any) -> Any:
    loss = {
        "mse": nn.MseLoss, "huber": lambda: nn.HuberLoss(o["delta"]), "bce": nn.BinaryCrossEntropyLoss,
        "bce_logits": lambda: nn.BinaryCrossEntropyLoss(logits=True),
    }[o["loss"]]()  # fmt: skip
    return loss(a["x"], a["target"], reduction=o["reduction"])


def normalized(a: Any, o: Any) -> Any:
    return F.layer_norm(a["x"], a.get("weight"), a.get("bias"), o["epsilon"], -o["axes"])


def lrn(a: Any, o: Any) -> Any:
    return F.local_response_norm(a["x"], o["size"], o["alpha"], o["beta"], o["k"])


SPECIAL = {
    "activation": activation, "rnn": recurrent, "gru": recurrent, "lstm": recurrent, "reduction": reduction, "pad": pad,
    "windows": windows, "classification": classification, "regression": regression, "layer_norm": normalized,
    "local_response_norm": lrn,
    "batch_norm": lambda a, o: F.batch_norm(
        a["x"], a["mean"], a["var"], a.get("weight"), a.get("bias"), o["epsilon"]),
    "attention": lambda a, o: F.attention(
        a["q"], a["k"], a["v"], a.get("mask"), is_causal=o["is_causal"], scale=o["scale"]),
    "rms_norm": lambda a, o: F.rms_norm(a["x"], a.get("weight"), o["epsilon"]),
    "group_norm": lambda a, o: F.group_norm(a["x"], o["groups"], a.get("weight"), a.get("bias"), o["epsilon"]),
    "normalize": lambda a, o: F.lp_normalize(a["x"], o["p"], o["dim"], 1e-12),
    "softmax": lambda a, o: (F.log_softmax if o["log"] else F.softmax)(a["x"], o["dim"]),
    "shuffle": lambda a, o: unshuffled(a["x"], o["block"]) if o["down"] else F.depth_to_space(
        a["x"], o["block"], "CRD"),
    "grid_sample": lambda a, o: F.grid_sample(a["x"], a["grid"], **o),
    "linear": lambda a, o: F.linear(
        a["x"], a["weight"], a.get("bias"), layout="pytorch"),
    "embedding": lambda a, o: F.embedding(a["x"], a["weight"]),
    "lp_pool": lambda a, o: F.lp_pool(a["x"], o["kernel_size"], o["stride"], p=o["p"]),
}  # fmt: skip


def unshuffled(x: Any, b: int) -> Any:
    n, c, h, w = x.shape
    return F.permute_dims(x.reshape((n, c, h // b, b, w // b, b)), (0, 1, 3, 5, 2, 4)).reshape(
        (n, c * b * b, h // b, w // b)
    )


def answer(name: str, i: int, backend: Any) -> Any:
    arrays, options = configuration(name, i)
    a = {k: emberlet.asarray(np.ascontiguousarray(v), backend=backend).reshape(np.shape(v)) for k, v in arrays.items()}
    return computed(name, options, a)


def computed(name: str, options: dict[str, Any], a: dict[str, Any]) -> Any:
    """The result of a configuration for its arrays as tensors."""
    if name in SPECIAL:
        return SPECIAL[name](a, dict(options))
    if name.startswith("interpolate"):
        return F.interpolate(a["x"], **options)
    return getattr(F, name)(*a.values(), **options)


def differences(backend: Any, most: int) -> list[str]:
    out = []
    for name, i, expected, shape in answers():
        if i >= most:
            continue
        try:
            found = answer(name, i, backend)
            assert found.shape == shape, f"shape {found.shape}, PyTorch's is {shape}"
            values = kept(np.asarray(found)).astype(np.float64)
            np.testing.assert_allclose(values, expected, rtol=2e-4, atol=2e-5)
        except Exception as error:  # a failure names all that differ
            lines = [line for line in str(error).splitlines() if line.strip()]
            out.append(f"{name} {i} {configuration(name, i)[1]}: {type(error).__name__} {' '.join(lines[:4])[:200]}")
    return out


def test_the_configurations_are_many() -> None:
    assert len(answers()) == len(KINDS) * EACH >= 711


@pytest.mark.parametrize("name", NAMES)
def test_every_configuration_answers_as_pytorch_does(name: str) -> None:
    found = differences(get_backend(name), EACH)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)


@pytest.mark.usefixtures("wgpu_adapter")
def test_some_of_each_kind_answer_so_on_the_gpu() -> None:
    found = differences(get_backend("wgpu"), ON_GPU)
    assert not found, f"{len(found)} differ\n" + "\n".join(found)
