"""rnn, gru and lstm against onnxruntime, in all their options."""

from __future__ import annotations

from typing import Any

import emberlet as el
import numpy as np
import pytest
from emberlet import functional as F
from support.backends import tensor
from support.every_backend import EVERY
from support.onnxruntime_node import run_node
from support.rows import every

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, D_INPUT, D_HIDDEN = 5, 3, 4, 6

COMMON = [
    {},
    {"direction": "reverse"},
    {"direction": "bidirectional"},
    {"direction": "bidirectional", "lengths": True, "state": True},
    {"direction": "reverse", "lengths": True},
    {"bias": False},
    {"clip": 0.2, "state": True},
]
OWN = {
    "RNN": [
        {"activations": ["LeakyRelu"], "activation_alpha": [0.3]},
        {"activations": ["Relu", "Softsign"], "direction": "bidirectional"},
        {
            "activations": ["HardSigmoid", "Affine"],
            "activation_alpha": [0.4, 0.7],
            "activation_beta": [0.3, 0.1],
            "direction": "bidirectional",
        },
    ],
    "GRU": [
        {"linear_before_reset": 1},
        {"linear_before_reset": 1, "bias": False},
        {"linear_before_reset": 1, "direction": "bidirectional", "clip": 0.3, "lengths": True},
        {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]},
    ],
    "LSTM": [
        {"peepholes": True},
        {"peepholes": True, "direction": "bidirectional", "lengths": True, "state": True, "clip": 0.4},
        {"input_forget": 1},
        {"peepholes": True, "input_forget": 1},
        {
            "activations": ["HardSigmoid", "ScaledTanh", "Elu"],
            "activation_alpha": [0.3, 1.5, 0.8],
            "activation_beta": [0.4, 0.6],
        },
        {
            "activations": ["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Softsign", "Relu"],
            "direction": "bidirectional",
            "state": True,
        },
    ],
}
CASES = [(op, options) for op in GATES for options in COMMON + OWN[op]]


def arrays(op: str, options: dict[str, Any]) -> list[np.ndarray[Any, Any] | None]:
    """Inputs in ONNX's order; None for those left out."""
    rng = np.random.default_rng(3)
    directions = 2 if options.get("direction") == "bidirectional" else 1
    gates = GATES[op] * D_HIDDEN

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return (rng.normal(size=shape) * 0.6).astype(np.float32)

    state = options.get("state")
    out: list[np.ndarray[Any, Any] | None] = [
        normal(STEPS, BATCH, D_INPUT),
        normal(directions, gates, D_INPUT),
        normal(directions, gates, D_HIDDEN),
        normal(directions, 2 * gates) if options.get("bias", True) else None,
        np.array([5, 2, 3], np.int32) if options.get("lengths") else None,
        normal(directions, BATCH, D_HIDDEN) if state else None,
    ]
    if op == "LSTM":
        out.append(normal(directions, BATCH, D_HIDDEN) if state else None)
        out.append(normal(directions, 3 * D_HIDDEN) if options.get("peepholes") else None)
    return out


def by_onnxruntime(op: str, options: dict[str, Any], inputs: list[Any]) -> list[Any]:
    attributes = {k: v for k, v in options.items() if k not in ("bias", "lengths", "state", "peepholes")}
    return run_node(op, inputs, 3 if op == "LSTM" else 2, opset=14, hidden_size=D_HIDDEN, **attributes)


def keywords(op: str, options: dict[str, Any], inputs: list[Any]) -> dict[str, Any]:
    own = ("direction", "clip", "linear_before_reset", "input_forget", "activations")
    out = {k: options[k] for k in own if k in options}
    out["alphas"], out["betas"] = options.get("activation_alpha", ()), options.get("activation_beta", ())
    out["sequence_lens"], out["initial_h"] = inputs[4:6]
    if op == "LSTM":
        out["initial_c"], out["peepholes"] = inputs[6:8]
    return out


def call(op: str, options: dict[str, Any], inputs: list[Any], **more: Any) -> list[np.ndarray[Any, Any]]:
    function = getattr(F, op.lower())
    return [np.asarray(x) for x in function(*inputs[:4], **keywords(op, options, inputs), **more)]


@pytest.mark.parametrize("backend", EVERY)
@every(("op", "options"), CASES)
def test_equals_onnxruntime(op: str, options: dict[str, Any], backend: str) -> None:
    inputs = arrays(op, options)
    tensors = [None if x is None else tensor(x, backend) for x in inputs]
    for found, expected in zip(call(op, options, tensors), by_onnxruntime(op, options, inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_batch_first_moves_the_batch_of_everything_but_weights(op: str, direction: str) -> None:
    options = {"direction": direction, "state": True}
    inputs = arrays(op, options)
    usual = [None if x is None else tensor(x, "numpy") for x in inputs]
    moved = [t if t is None or i not in (0, 5, 6) else t.permute_dims((1, 0, 2)) for i, t in enumerate(usual)]
    expected = call(op, options, usual)
    y, *states = call(op, options, moved, batch_first=True)
    np.testing.assert_array_equal(y, expected[0].transpose(2, 0, 1, 3))
    for found, state in zip(states, expected[1:], strict=True):
        np.testing.assert_array_equal(found, state.transpose(1, 0, 2))


def test_functions_may_stand_for_names_of_activations() -> None:
    inputs = [None if x is None else tensor(x, "numpy") for x in arrays("RNN", {})]
    named = F.rnn(*inputs[:4], activations=["Relu"])
    own = F.rnn(*inputs[:4], activations=[F.relu])
    np.testing.assert_array_equal(np.asarray(named[0]), np.asarray(own[0]))


def test_usual_activations_take_the_backend_s_own_loop_by_name_and_as_functions(monkeypatch: Any) -> None:
    """F.tanh is wrapped once somebody asks for it; that must not cost the fast loop."""
    numpy = el.get_backend("numpy")
    calls: list[int] = []
    loop = type(numpy).gru_steps
    monkeypatch.setattr(type(numpy), "gru_steps", lambda *args: calls.append(1) or loop(*args))
    shapes = ((5, 2, 3), (1, 12, 3), (1, 12, 4))
    given = [el.asarray(np.random.default_rng(0).normal(size=s).astype(np.float32), backend=numpy) for s in shapes]
    for activations in (None, ("Sigmoid", "Tanh"), (F.sigmoid, F.tanh)):
        F.gru(*given, activations=activations)
    F.gru(*given, activations=(F.sigmoid, F.relu))
    assert len(calls) == 3
