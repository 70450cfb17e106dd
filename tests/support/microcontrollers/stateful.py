"""Recurrent networks whose states are inputs and outputs, drawn at random."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from .onnx_models import Maker


def stateful(seed: int) -> tuple[onnx.ModelProto, list[str]]:
    """LSTM or GRU layers with states split from inputs and joined again, as torch's exporter writes them; the states'
    names."""
    m, rng = Maker(seed), np.random.default_rng(seed)
    op, gates, names = [("LSTM", 4, ["h0", "c0"]), ("GRU", 3, ["h0"])][seed % 2]
    layers, steps, hidden = int(rng.integers(1, 4)), int(rng.integers(1, 4)), 6
    at, width, after = "x", 5, []
    m.constant("ax", [0])
    m.constant("one", [1])
    for k in range(layers):
        m.constant(f"s{k}", [k])
        m.constant(f"e{k}", [k + 1 if k + 1 < layers else np.iinfo(np.int64).max])
        for name in names:
            m("Slice", f"{name} s{k} e{k} ax", f"{name}_{k}")
        m.weight(f"W{k}", 1, gates * hidden, width)
        m.weight(f"R{k}", 1, gates * hidden, hidden)
        m.weight(f"B{k}", 1, 2 * gates * hidden, scale=0.2)
        out = [f"y{k}", *(f"{name}_{k}n" for name in names)]
        states = " ".join(f"{name}_{k}" for name in names)
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        m(op, f"{at} W{k} R{k} B{k} _ {states}", " ".join(out), hidden_size=hidden, **more)
        m("Squeeze", f"y{k} one", f"z{k}")
        at, width = f"z{k}", hidden
    last = bool(rng.integers(0, 2))
    if last:
        m("Squeeze", f"h0_{layers - 1}n one", "v")
        at = "v"
    m.weight("w", hidden, 3)
    m("MatMul", f"{at} w", "y")
    for name in names:
        m("Concat", " ".join(f"{name}_{k}n" for k in range(layers)), f"{name}_new", axis=0)
        after.append(f"{name}_new")
    model = m.model([steps, 1, 5], " ".join(["y", *after]))
    model.graph.input.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, [layers, 1, hidden]) for n in names)
    return model, names
