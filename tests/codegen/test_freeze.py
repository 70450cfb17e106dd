"""Inputs that get their value when the code is generated."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import generate, load
from emberlet.codegen.generation import translate
from emberlet.errors import ModelError
from hypothesis import given, settings
from hypothesis import strategies as st
from support.deciding_model import DECIDES, arrays
from support.onnx_models import assert_same, expected, parse


@given(
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([16000, 8000]),
    st.floats(-2, 2, width=32),
    st.booleans(),
    st.sets(st.sampled_from(["x", "state", "sr", "gain", "loud", "shape"])),
    st.data(),
)
@settings(max_examples=40)
def test_any_inputs_can_be_frozen(
    batch: int, samples: int, sr: int, gain: float, loud: bool, names: set[str], data: st.DataObject
) -> None:
    """The results equal onnxruntime's, whichever inputs are frozen and however the values are passed."""
    model = parse(DECIDES)
    inputs = arrays(batch, samples)
    inputs |= {"sr": np.array(sr), "gain": np.array([gain], np.float32), "loud": np.array(loud)}
    inputs["shape"] = np.array(data.draw(st.sampled_from([(-1, 1), (samples, batch), (1, -1)])))
    freeze = {n: inputs[n].tolist() if data.draw(st.booleans()) else inputs[n] for n in names}

    instance = load(model, "numpy", freeze=freeze)

    free = {n: x for n, x in inputs.items() if n not in names}
    assert [e[0] for e in instance.INPUTS] == list(free)
    got = instance(**free)
    assert_same([np.asarray(x) for x in got], expected(model, inputs))


def test_the_branch_that_is_not_taken_is_gone(tmp_path: Any) -> None:
    generate(parse(DECIDES), tmp_path, "detector", freeze={"sr": 16000, "loud": True, "gain": 0.5})
    source = (tmp_path / "detector.py").read_text(encoding="utf-8")
    assert "if " not in source
    assert "sr" not in source.partition("INPUTS")[2].partition("def forward")[2].partition('"""')[0]
    assert "# Frozen when it was generated: sr = 16000 (int64)\n" in source
    assert "# Frozen when it was generated: gain = [0.5] (float32 (1,))\n" in source
    assert "# Frozen when it was generated: loud = True (bool)\n" in source


def test_another_value_replaces_the_module(tmp_path: Any) -> None:
    """The module belongs to the same model, so that --force is not needed."""
    for sr in (16000, 8000):
        generate(parse(DECIDES), tmp_path, "detector", freeze={"sr": sr})
    assert "sr = 8000" in (tmp_path / "detector.py").read_text(encoding="utf-8")


def test_a_size_that_a_frozen_input_fixes_is_known_everywhere() -> None:
    model = translate(parse(DECIDES), freeze={"x": np.zeros((3, 2), np.float32)})[0]
    assert [a.type.shape for a in model.graph.inputs if a.name == "state"] == [(2, 3, 4)]
    with pytest.raises(ModelError, match=r"its shape is \(2, 3, 4\), but the given value has \(2, 1, 4\)"):
        translate(parse(DECIDES), freeze={"x": np.zeros((3, 2), np.float32), "state": np.zeros((2, 1, 4), np.float32)})


def test_an_input_with_a_default_can_be_frozen_too() -> None:
    """Such an input is already a constant; freezing it replaces its value."""
    model = parse("g (float[2] x, float[2] bias = {1, 2}) => (float[2] y) { y = Add(x, bias) }")
    x = np.zeros(2, np.float32)
    assert np.asarray(load(model, "numpy")(x)).tolist() == [1, 2]
    assert np.asarray(load(model, "numpy", freeze={"bias": [3, 4]})(x)).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("freeze", "says"),
    [
        (
            {"srr": 1},
            "there is no input 'srr' to freeze (did you mean 'sr'?); the model has 'x', 'state', 'sr', 'gain'",
        ),
        ({"quantum": 1}, "there is no input 'quantum' to freeze; the model has 'x'"),
        ({"sr": 16000.0}, "input 'sr' cannot be frozen: its dtype is int64, found 16000.0"),
        ({"sr": 1 << 70}, "input 'sr' cannot be frozen: its dtype is int64: "),
        ({"gain": [1.0, 2.0]}, "input 'gain' cannot be frozen: its shape is (1,), but the given value has (2,)"),
        ({"state": [[1.0], [1.0, 2.0]]}, "input 'state' cannot be frozen: its dtype is float32: nested lists of"),
    ],
)
def test_what_does_not_fit_is_said(freeze: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError) as caught:
        translate(parse(DECIDES), freeze=freeze)
    assert says in str(caught.value)


def test_every_problem_is_in_one_error() -> None:
    with pytest.raises(ModelError, match="has 2 problems") as caught:
        translate(parse(DECIDES), freeze={"srr": 1, "loud": "no"})
    assert "'srr'" in str(caught.value) and "'loud'" in str(caught.value)


def test_a_text_can_be_frozen() -> None:
    model = parse("g (string word, string[2] x) => (bool[2] y) { y = Equal(x, word) }", 19)
    assert np.asarray(load(model, "numpy", freeze={"word": "no"})(["yes", "no"])).tolist() == [False, True]


def test_only_tensors_can_be_frozen() -> None:
    kind = onnx.helper.make_sequence_type_proto(onnx.helper.make_tensor_type_proto(1, [2]))
    node = onnx.helper.make_node("SequenceLength", ["xs"], ["n"])
    n = onnx.helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [onnx.helper.make_value_info("xs", kind)], [n]))
    with pytest.raises(ModelError, match="float32"):
        translate(model, freeze={"xs": [1]})
