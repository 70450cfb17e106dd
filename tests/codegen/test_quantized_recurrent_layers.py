"""DynamicQuantizeLSTM becomes a layer wherever emberlet.nn has one: it gives what the function and onnxruntime do."""

from __future__ import annotations

import random
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.host.numpy_backend.compile import compile
from onnx import helper, numpy_helper
from support.onnx_models import assert_same, expected, generated, source

HIDDEN, FEATURES = 4, 3


class Drawn:
    """A model with a dynamically quantized LSTM, in options drawn at random.

    layer: whether emberlet.nn has a layer with them; x: its input; sequences: how many.
    """

    def __init__(self, seed: int) -> None:
        choose, arrays = random.Random(seed), np.random.default_rng(seed)
        direction = choose.choice(["forward", "reverse", "bidirectional"])
        n = 2 if direction == "bidirectional" else 1
        self.sequences = choose.choice([1, 3])
        self.x = arrays.normal(size=(5, self.sequences, FEATURES)).astype(np.float32)
        held: dict[str, Any] = {}
        dtype = choose.choice([np.int8, np.uint8])
        by_column = choose.random() < 0.5
        # onnxruntime takes zero points beside the middle only of uint8 with one for each direction
        middle = 0 if dtype is np.int8 else 128 if by_column else choose.choice([128, 120])
        parts = (n, 4 * HIDDEN) if by_column else (n,)
        for name, rows in (("w", FEATURES), ("r", HIDDEN)):
            low = -127 if dtype is np.int8 else 0
            held[name] = arrays.integers(low, low + 255, (n, rows, 4 * HIDDEN)).astype(dtype)
            held[name + "_scale"] = arrays.uniform(0.002, 0.008, parts).astype(np.float32)
            held[name + "_zero"] = np.full(parts, middle, dtype)
        given = ["x", "w", "r", "", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"]
        optional = {
            "b": (3, 0.8, arrays.normal(size=(n, 8 * HIDDEN))),
            "h": (5, 0.4, arrays.normal(size=(n, self.sequences, HIDDEN))),
            "c": (6, 0.4, arrays.normal(size=(n, self.sequences, HIDDEN))),
            "p": (7, 0.15, arrays.normal(size=(n, 3 * HIDDEN))),
        }
        for name, (i, share, value) in optional.items():
            if choose.random() < share:
                given[i], held[name] = name, value.astype(np.float32)
        self.layer = "p" not in held
        attributes: dict[str, Any] = {"hidden_size": HIDDEN, "direction": direction}
        if choose.random() < 0.2:
            attributes["clip"] = 0.7
        if choose.random() < 0.3:
            names = choose.choice([["Sigmoid", "Tanh", "Tanh"], ["HardSigmoid", "Tanh", "Relu"]])
            attributes["activations"] = names * n
            self.layer = self.layer and names[0] == "Sigmoid"
        outputs = ["y", "y_h", "y_c"][: choose.choice([1, 2, 3])]
        nodes = [helper.make_node("DynamicQuantizeLSTM", given, outputs, domain="com.microsoft", **attributes)]
        if choose.random() < 0.3:
            self.x = self.x.transpose(1, 0, 2).copy()
            nodes.insert(0, helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]))
            nodes[1].input[0] = "turned"
        graph = helper.make_graph(
            nodes, "drawn", [helper.make_tensor_value_info("x", 1, self.x.shape)],
            [helper.make_tensor_value_info(o, 1, None) for o in outputs],
            [numpy_helper.from_array(value, name) for name, value in held.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        self.model = helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize(("backend", "count"), [("numpy", 40), ("python", 40), ("wasm", 6), ("native", 6)])
def test_drawn_nodes_are_layers_and_give_what_the_function_gives(backend: str, count: int) -> None:
    """To the bit, since both quantize the same values. onnxruntime quantizes the sequences of one thread together, so
    it is asked for one sequence."""
    kinds = set()
    for seed in range(count):
        drawn = Drawn(seed)
        found = generated(drawn.model, [drawn.x], backend)
        function = generated(drawn.model, [drawn.x], backend, passes=())
        for a, b in zip(found, function, strict=True):
            assert np.array_equal(np.asarray(a), np.asarray(b)), seed
        if drawn.sequences == 1:
            assert_same(found, expected(drawn.model, {"x": drawn.x}), atol=2e-6)
        text = source(drawn.model)
        assert ("F.dynamic_quantize_lstm(" not in text) is drawn.layer, (seed, text)
        assert ("nn.Quantized" in text) is drawn.layer
        kinds.add((drawn.layer, drawn.sequences, "affine=True" in text, "BiLstm" in text))
    assert len(kinds) >= (8 if count == 40 else 3)


@pytest.mark.parametrize("sequences", [1, 3])
def test_the_layer_holds_the_integers_of_the_file(sequences: int, tmp_path: Any) -> None:
    """A byte for each weight; saved and loaded it computes the same, also compiled."""
    from emberlet import codegen

    drawn = next(d for d in map(Drawn, range(100)) if d.layer and d.sequences == sequences)
    model = codegen.load(drawn.model, "numpy")
    record = model.to_record()
    levels = [x for name, x in record.items() if name.endswith(".values")]
    assert {x.dtype.name for x in levels} == {"uint8"}
    w, r = (next(t for t in drawn.model.graph.initializer if t.name == name) for name in "wr")
    assert sum(x.size for x in levels) == np.prod(w.dims) + np.prod(r.dims)
    model.save_file(tmp_path / "net.bpk")
    other = type(model)("numpy").load_file(tmp_path / "net.bpk")
    wanted = model(drawn.x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for run in (other, other.compile(backend="numpy"), other.fork("native").compile(backend="native")):
        found = run(drawn.x) if run is not other else other(drawn.x)
        found = found if isinstance(found, tuple) else (found,)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-6)


@pytest.mark.parametrize("largest", [127, 255])
@pytest.mark.parametrize("directions", ["reverse", "bidirectional"])
def test_all_steps_at_once_are_the_steps(directions: str, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, also where sums are too large for float32."""
    draw, n, width = np.random.default_rng(2), 2 if directions == "bidirectional" else 1, 300
    x = (draw.normal(size=(4, 2, 3)) * [[[1]], [[0]], [[8]], [[1e-3]]]).astype(np.float32)
    held = [x]
    for rows in (3, width):
        levels = draw.integers(largest - 127, largest + 1, (n, rows, 4 * width)).astype(np.uint8)
        held += [
            levels,
            draw.uniform(1e-4, 1e-3, (n, 4 * width)).astype(np.float32),
            np.zeros((n, 4 * width), np.uint8),
        ]

    def run(*given: Any) -> Any:
        return F.dynamic_quantize_lstm(*given, direction=directions)

    given = [emberlet.asarray(a, device="numpy") for a in held]
    found = [np.asarray(a) for fast in (run, compile(run, *given)) for a in fast(*given)]
    monkeypatch.delattr(type(given[0].backend), "quantized_lstm_steps")
    for a, b in zip(found, [np.asarray(a) for a in run(*given)] * 2, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3)])
def test_no_sequences_and_no_steps_give_what_float_layers_give(shape: tuple[int, ...]) -> None:
    x = emberlet.asarray(np.zeros(shape, np.float32))
    for ours, floats in ((nn.QuantizedLstm, nn.Lstm), (nn.QuantizedBiLstm, nn.BiLstm)):
        assert ours(3, 4)(x)[0].shape == floats(3, 4)(x)[0].shape
