"""STATE: the inputs that return as outputs, found or given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from emberlet.codegen import generate, load
from emberlet.codegen.generation import translate
from emberlet.errors import ModelError
from models.index import HERE
from onnx import TensorProto, helper
from support.onnx_models import parse
from support.rows import every

GROWS = {f"{what}{n}": (f"{what}{n}_out", "append", 2) for n in (0, 1) for what in ("key", "value")}
HAVE = {
    "llama": GROWS,
    "llama_opset23": GROWS,
    "transformer_decoder": GROWS,
    "lstm_step": {"h": ("h_out", "replace", None), "c": ("c_out", "replace", None)},
    "gru_stack": {"state": ("last", "replace", None)},
}
MODELS = sorted(path.parent.relative_to(HERE).as_posix() for path in HERE.rglob("model.onnx"))


def states(model: Any, **options: Any) -> dict[str, tuple[str, str, int | None]]:
    found = getattr(load(model, "numpy", **options), "STATE", ())
    return {i: (o, kind, axis) for i, o, kind, axis in found}


@every("name", MODELS)
def test_every_committed_model_has_its_states_and_no_others(name: str) -> None:
    """Some are caches of a fixed length, which the model returns changed."""
    assert states(HERE / name / "model.onnx") == HAVE.get(name, {})


def test_silero(shared: Path) -> None:
    found = states(shared / "models" / "silero_vad.onnx", freeze={"sr": 16000})
    assert found == {"state": ("stateN", "replace", None)}


def cache(before: str, after: str) -> Any:
    """A model whose cache is only recognizable by name and shape."""
    model = parse("""
        g (float[b, n, 4] x, float[b, past, 4] p) => (float[b, n, 4] y, float[b, total, 4] q)
        {
            joined = Concat <axis = 1> (p, x)
            half = Cast <to = 10> (joined)
            q = Cast <to = 1> (half)
            m = ReduceMax <keepdims = 1> (q)
            y = Add (x, m)
        }
    """)
    return renamed(model, {"p": before, "q": after})


def renamed(model: Any, names: dict[str, str]) -> Any:
    """The model with other names for its values."""
    for value in (*model.graph.input, *model.graph.output):
        value.name = names.get(value.name, value.name)
    for node in model.graph.node:
        node.input[:] = [names.get(n, n) for n in node.input]
        node.output[:] = [names.get(n, n) for n in node.output]
    return model


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.11.decoder.value", "present.11.decoder.value"),
        ("past_key_values_0_key", "present_key_values_0_key"),
        ("past_0", "present_0"),
        ("past_key_self_3", "present_key_self_3"),
        ("k_cache_0", "k_cache_0_out"),
        ("cache.in.7", "cache.out.7"),
        ("kv", "new_kv"),
    ],
)
def test_caches_by_their_names(before: str, after: str) -> None:
    assert states(cache(before, after)) == {before: (after, "append", 1)}


def test_a_cache_of_two_names_in_one_tensor() -> None:
    """Stacked keys and values, as in GPT-2's export: the output is computed from parts of the input."""
    model = parse("""
        g (float[b, n, 4] x, float[2, b, past, 4] past_0) => (float[b, n, 4] y, float[2, b, present, 4] present_0)
        <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}>
        {
            k = Gather <axis = 0> (past_0, zero)
            v = Gather <axis = 0> (past_0, one)
            ks = Concat <axis = 1> (k, x)
            vs = Concat <axis = 1> (v, x)
            k1 = Unsqueeze (ks, first)
            v1 = Unsqueeze (vs, first)
            present_0 = Concat <axis = 0> (k1, v1)
            s = Transpose <perm = [0, 2, 1]> (ks)
            w = MatMul (x, s)
            p = Softmax (w)
            y = MatMul (p, vs)
        }
    """)
    assert states(model) == {"past_0": ("present_0", "append", 2)}


def recurrent(before: str, after: str) -> Any:
    model = parse("""
        g (float[b, 4] x, float[1, b, 4] s_in) => (float[b, 4] y, float[1, b, 4] s_out)
        <int64[1] zero = {0}>
        { r = Squeeze (s_in, zero) z = Add (r, x) y = Tanh (z) s_out = Unsqueeze (y, zero) }
    """)
    return renamed(model, {"s_in": before, "s_out": after})


@pytest.mark.parametrize(
    ("before", "after"),
    [("h0", "hn"), ("h_0", "h_n"), ("h", "hn"), ("state", "stateN"), ("hidden_in", "hidden_out"),
     ("rnn.state", "rnn.next_state"), ("prev_state", "new_state"), ("cell", "cell_out"), ("context", "context_next"),
     ("in_state", "out_state"), ("old_c", "new_c"), ("initial_h", "final_h"), ("last_h", "current_h"),
     ("RNNState", "RNNStateOut"), ("state0", "staten")],
)  # fmt: skip
def test_replaced_states_by_their_names(before: str, after: str) -> None:
    assert states(recurrent(before, after)) == {before: (after, "replace", None)}


@pytest.mark.parametrize(
    ("before", "after"),
    [("latent", "latent_out"), ("image", "image_out"), ("h1", "hn"), ("state", "status"), ("a_state", "b_state"),
     ("input", "output"), ("key", "monkey"), ("h0", "h1"), ("past.3.h", "present.4.h"), ("out_state", "in_state")],
)  # fmt: skip
def test_what_may_be_something_else_is_left_out(before: str, after: str) -> None:
    assert states(recurrent(before, after)) == {}


def test_a_state_of_another_shape_or_dtype_is_none() -> None:
    wide = parse("""
        g (float[b, 4] x, float[b, 4] state) => (float[b, 4] y, float[b, 8] state_out)
        { y = Add (x, state) state_out = Concat <axis = 1> (y, y) }
    """)
    assert states(wide) == {}
    model = recurrent("state", "state_out")
    model.graph.output[1].type.tensor_type.elem_type = TensorProto.FLOAT16
    cast = helper.make_node("Cast", ["s"], ["state_out"], to=TensorProto.FLOAT16)
    model.graph.node[-1].output[0] = "s"
    model.graph.node.append(cast)
    assert states(model) == {}


def test_joining_two_inputs_is_no_state() -> None:
    """The concatenation is the only thing that the model does with its first input."""
    model = parse("""
        g (float[b, n, 4] x, float[b, m, 4] z) => (float[b, total, 4] joined, float[b, m, 4] y)
        { w = Tanh (z) joined = Concat <axis = 1> (x, w) y = Relu (z) }
    """)
    assert states(model) == {}


def test_states_can_be_said(tmp_path: Path) -> None:
    model = recurrent("latent", "result")
    assert states(model, state=["latent=result"]) == {"latent": ("result", "replace", None)}
    llama = HERE / "llama" / "model.onnx"
    assert states(llama, state=["none"]) == {}
    assert states(llama, state=["none", "key0=key0_out:2"]) == {"key0": ("key0_out", "append", 2)}
    assert states(llama, state=["none", "key0=value0_out"]) == {"key0": ("value0_out", "append", 2)}
    assert states(llama, state=["key0=value0_out:-2", "value0=key0_out"]) == {
        **GROWS, "key0": ("value0_out", "append", 2), "value0": ("key0_out", "append", 2)
    }  # fmt: skip
    made = generate(llama, tmp_path)
    assert '    STATE = tuple((i[0], o[0], "append", 2) for i, o in' in made.module.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("key0", "state 'key0': expected INPUT=OUTPUT, INPUT=OUTPUT:AXIS or none"),
        ("kei0=key0_out", "there is no input 'kei0' (did you mean 'key0'?); the model has 'tokens', 'key0'"),
        ("key0=key0_ou", "there is no output 'key0_ou' (did you mean 'key0_out'?); the model has 'logits'"),
        ("key0=logits", "state 'key0=logits': the input has rank 4, the output 3"),
        ("tokens=logits", "state 'tokens=logits': the input is int64, the output float32"),
        ("key0=key0_out:4", "axis 4 is outside [-4, 4)"),
        ("key0=key0_out:1", "the input has 4 along axis 1, always, and cannot grow there"),
    ],
)
def test_mistakes_are_said(word: str, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        translate(HERE / "llama" / "model.onnx", state=[word])
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "word", "says"),
    [
        ("float[2, 3]", "float[2, 4]", "p=q", "the input has 3 along axis 1, always, and cannot grow there"),
        ("float[2, 3]", "float[4, 5]", "p=q", "the input has 2 along axis 0, the output 4"),
        ("float[a, 3]", "float[b, 5]", "p=q", "the input has 3 along axis 1, the output 5"),
        ("float[a, 3]", "float[b, 5]", "p=q:0", "the input has 3 along axis 1, the output 5"),
        ("float[a, 3]", "float[b, 3]", "p=q:2", "axis 2 is outside [-2, 2)"),
        ("float[a, 3]", "float[b, 3]", "p=q:-3", "axis -3 is outside [-2, 2)"),
        ("float[a, 3]", "float[b, 3]", "p=q:-2", ("q", "append", 0)),
        ("float[a, 3]", "float[b, 3]", "p=q", ("q", "append", 0)),
        ("float[a, 3]", "float[a, 3]", "p=q:0", ("q", "append", 0)),
        ("float[a, 3]", "float[a, 3]", "p=q", ("q", "replace", None)),
        ("float[2, 3]", "float[2, 3]", "p=q", ("q", "replace", None)),
        ("float[2, 3]", "double[2, 3]", "p=q", "the input is float32, the output float64"),
        ("seq(float[2])", "seq(float[2])", "p=q", "only tensors can be states"),
    ],
)
def test_a_state_that_is_given_fits_or_is_refused(before: str, after: str, word: str, says: Any) -> None:
    how = "q = Identity(p)"
    if before != after:  # of any shape
        how = f"r = Reshape(p, h)  q = Cast<to = {TensorProto.DOUBLE if 'double' in after else TensorProto.FLOAT}>(r)"
    model = parse(f"g (float[a, 3] x, {before} p, int64[2] h) => (float[a, 3] y, {after} q) {{ y = Neg(x)  {how} }}")
    if isinstance(says, str):
        with pytest.raises(ModelError) as caught:
            translate(model, state=[word])
        assert says in str(caught.value)
    else:
        assert states(model, state=[word])["p"] == says
