"""The caches of a language model: one value per layer inside the code, the file's own inputs and outputs outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import generate, load
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError, ShapeError
from onnx import TensorProto, helper, numpy_helper
from support.rows import every

SIZE = 4
FORMS = {
    "optimum": ("past_key_values.{n}.{p}", "present.{n}.{p}"),
    "letters": ("{p}_in_{n}", "{p}_out_{n}"),
    "torch": ("past_{p}_{n}", "{p}.{m}"),
}


def network(layers: int, parts: tuple[str, ...] = ("key", "value"), form: str = "optimum", where: str = "last") -> Any:
    """A model whose layers each append to their caches. where: their place among the inputs and outputs; in the middle
    there is another input and output after them."""
    before, after = FORMS[form]
    random = np.random.default_rng(layers)
    nodes, weights = [], []
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", SIZE])]
    made = []
    held, kept = [], []
    x = "x"
    for n in range(layers):
        scope = f"layers.{n}.attn"
        mixed = []
        for p in parts:
            weight = f"{scope}.{p}.weight"
            weights.append(numpy_helper.from_array(random.standard_normal((SIZE, SIZE)).astype(np.float32), weight))
            past, new = before.format(n=n, p=p), after.format(n=n, p=p, m=4 * n + 1)
            nodes.append(helper.make_node("MatMul", [x, weight], [f"{scope}.{p}.new"], f"/layers.{n}/attn/{p}/MatMul"))
            nodes.append(
                helper.make_node("Concat", [past, f"{scope}.{p}.new"], [new], f"/layers.{n}/attn/Concat_{p}", axis=1)
            )
            nodes.append(helper.make_node("ReduceMean", [new, "one"], [f"{scope}.{p}.m"], f"/layers.{n}/attn/Mean_{p}"))
            mixed.append(f"{scope}.{p}.m")
            held.append(helper.make_tensor_value_info(past, TensorProto.FLOAT, ["batch", "past", SIZE]))
            kept.append(helper.make_tensor_value_info(new, TensorProto.FLOAT, ["batch", "past + length", SIZE]))
        nodes.append(helper.make_node("Sum", mixed, [f"{scope}.sum"], f"/layers.{n}/attn/Sum"))
        weight = f"layers.{n}.fc.weight"
        weights.append(numpy_helper.from_array(random.standard_normal((SIZE, SIZE)).astype(np.float32), weight))
        nodes.append(helper.make_node("MatMul", [f"{scope}.sum", weight], [f"fc{n}"], f"/layers.{n}/fc/MatMul"))
        nodes.append(helper.make_node("Tanh", [f"fc{n}"], [f"tanh{n}"], f"/layers.{n}/Tanh"))
        nodes.append(helper.make_node("Add", [x, f"tanh{n}"], [f"x{n}"], f"/layers.{n}/Add"))
        x = f"x{n}"
    weights.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
    weights.append(numpy_helper.from_array(np.eye(SIZE, dtype=np.float32), "head.weight"))
    nodes.append(helper.make_node("MatMul", [x, "head.weight"], ["logits"], "/head/MatMul"))
    made = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", SIZE])]
    inputs, outputs = ([*held, *given], [*kept, *made]) if where == "first" else ([*given, *held], [*made, *kept])
    if where == "middle":
        nodes.append(helper.make_node("Mul", ["logits", "temperature"], ["scaled"]))
        inputs.append(helper.make_tensor_value_info("temperature", TensorProto.FLOAT, []))
        outputs.append(helper.make_tensor_value_info("scaled", TensorProto.FLOAT, ["batch", "length", SIZE]))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def inputs_of(model: Any, past: int = 3, length: int = 2) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    sizes = {"batch": 2, "length": length, "past": past}
    return {
        i.name: random.standard_normal(
            [d.dim_value or sizes[d.dim_param] for d in i.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for i in model.graph.input
    }


def arrays(results: Any) -> list[bytes]:
    return [bytes(r.backend.to_bytes(r)) + repr(r.shape).encode() for r in results]


@pytest.mark.parametrize("where", ["last", "first", "middle"])
@pytest.mark.parametrize("form", sorted(FORMS))
@every(("parts", "layers"), [(("key", "value"), 2), (("key", "value"), 5), (("key",), 3), (("k", "v", "m"), 2)])
def test_the_caches_of_a_layer_are_one_value(parts: tuple[str, ...], layers: int, form: str, where: str) -> None:
    """Inputs, outputs, states and results are the same as without the pass, whatever the caches' names and
    positions."""
    model = network(layers, parts, form, where)
    recovered, flat = load(model, "numpy"), load(model, "numpy", flat=True)
    for held in ("INPUTS", "OUTPUTS", "STATE"):
        assert getattr(recovered, held) == getattr(flat, held)
    assert len(recovered.STATE) == layers * len(parts)
    source = translate(model, "net")[1].source
    assert "for layer, cache in zip(self.layers, caches):" in source or parts == ("key",)
    given = inputs_of(model)
    want = arrays(flat(*given.values()))
    assert arrays(recovered(*given.values())) == want
    assert arrays(recovered(given)) == want
    assert arrays(recovered(**{name.replace(".", "_"): x for name, x in given.items()})) == want


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("parts", [("key",), ("key", "value")])
def test_caches_that_are_the_only_results_or_given_twice_are_named_one_by_one(
    parts: tuple[str, ...], twice: bool
) -> None:
    model = network(2, parts)
    kept = list(model.graph.output)[1:]
    del model.graph.output[:]
    model.graph.output.extend([*kept, *(kept[:1] if twice else [])])
    recovered, flat = load(model, "numpy"), load(model, "numpy", flat=True)
    given = inputs_of(model)
    assert getattr(recovered, "STATE", None) == getattr(flat, "STATE", None)
    assert arrays(recovered(*given.values())) == arrays(flat(*given.values()))


@pytest.mark.parametrize("constant", [0, 1, 2])
def test_new_caches_that_are_constants_are_named_one_by_one(constant: int) -> None:
    """The caller says that they are states; `constant` of the two are the same for every call."""
    model = network(2, ("key",))
    names = [f"present.{n}.key" for n in range(2)]
    for name in names[:constant]:
        for node in model.graph.node:
            node.input[:] = ["other " + i if i == name else i for i in node.input]
            node.output[:] = ["other " + o if o == name else o for o in node.output]
        model.graph.node.append(helper.make_node("Identity", ["zeros"], [name]))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((2, 5, SIZE), np.float32), "zeros"))
    state = [f"past_key_values.{n}.key={name}:1" for n, name in enumerate(names)]
    given = inputs_of(model)
    recovered, flat = (load(model, "numpy", flat=f, state=state) for f in (False, True))
    assert len(recovered.STATE) == 2
    assert arrays(recovered(*given.values())) == arrays(flat(*given.values()))
    source = translate(model, "net", state=state)[1].source
    assert ("present += " in source) is (constant == 0)


@pytest.mark.parametrize("where", ["last", "first", "middle"])
def test_the_layers_may_be_in_several_modules(where: str) -> None:
    model = network(5, where=where)

    def staged(name: str) -> str:
        for n in range(5):
            name = name.replace(f"layers.{n}", f"stage{n // 2}.layers.{n % 2}")
        return name

    for node in model.graph.node:
        node.name = staged(node.name)
        node.input[:], node.output[:] = map(staged, node.input), map(staged, node.output)
    for weight in model.graph.initializer:
        weight.name = staged(weight.name)
    assert "self.stage1 = " in translate(model, "net")[1].source
    given = inputs_of(model)
    assert arrays(load(model, "numpy")(given)) == arrays(load(model, "numpy", flat=True)(given))


def test_the_code_is_as_long_for_any_number_of_layers() -> None:
    """Except for names without consecutive numbers."""
    lines = {n: len(translate(network(n), "net")[1].source.splitlines()) for n in (2, 3, 12, 40)}
    assert len(set(lines.values())) == 1, lines


def test_one_layer_is_no_list() -> None:
    model = network(1)
    assert "*" not in translate(model, "net")[1].source.partition("def forward")[2]
    given = inputs_of(model)
    assert arrays(load(model, "numpy")(given)) == arrays(load(model, "numpy", flat=True)(given))


def test_a_session_keeps_the_caches() -> None:
    model = load(network(3), "numpy")
    session = model.session()
    x = np.random.default_rng(0).standard_normal((2, 5, SIZE)).astype(np.float32)
    steps = [session.step(x[:, :2]), session.step(x=x[:, 2:3]), session.step(x[:, 3:])]
    empty = {e[0]: np.zeros((2, 0, SIZE), np.float32) for e in model.INPUTS[1:]}
    past: Any = model({"x": x[:, :2], **empty})
    assert arrays([past[0]]) == arrays([steps[0]])
    past = model(x[:, 2:3], *past[1:])
    assert arrays([past[0]]) == arrays([steps[1]])
    past = model(x=x[:, 3:], **dict(zip(empty, past[1:], strict=True)))
    assert arrays([past[0]]) == arrays([steps[2]])
    assert session.length == 5


def test_a_wrong_call_says_which_inputs_there_are() -> None:
    model = load(network(2), "numpy")
    given = inputs_of(network(2))
    short = {k: v for k, v in given.items() if k != "past_key_values.1.key"}
    with pytest.raises(EmberletError, match=r"'past_key_values\.1\.key' missing"):
        model(short)
    with pytest.raises(EmberletError, match="found 6 inputs"):
        model(*given.values(), given["x"])
    with pytest.raises(ShapeError, match=r"past_key_values\.1\.value"):
        model({**given, "past_key_values.1.value": np.zeros((2, 3, SIZE + 1), np.float32)})


def test_a_generated_file_is_run_and_compiled_by_name(tmp_path: Path) -> None:
    from emberlet.host.cli.model import load as open_model

    model = network(2)
    path = generate(model, tmp_path, "net").module
    opened = open_model(str(path), "numpy")
    assert [i.name for i in opened.inputs] == [i.name for i in model.graph.input]
    assert [i.parameter for i in opened.inputs][1:3] == ["past_key_values_0_key", "past_key_values_0_value"]
    given = inputs_of(model)
    want = opened.model(*given.values())
    compiled = opened.model.compile(backend="numpy")
    for got in (compiled(**given), compiled(*given.values())):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(np.array(g.tolist()), np.array(w.tolist()), atol=1e-5)


def test_the_code_runs_under_micropython(tmp_path: Path) -> None:
    from tools import components
    from tools.micropython import unix_port

    try:
        port = unix_port()
    except components.Missing as missing:
        pytest.skip(str(missing))
    model = network(2)
    generate(model, tmp_path, "net")
    given = inputs_of(model)
    want = load(model, "python")(given)[2].tolist()
    script = f"""
import sys
sys.path.append({str(tmp_path)!r})
import net
import emberlet.functional as F
model = net.Net.from_file({str(tmp_path / "net.bpk")!r})
given = {[x.tolist() for x in given.values()]!r}
print(model.forward(*[F.asarray(x) for x in given])[2].tolist())
print(model.INPUTS[4][0], len(model.STATE))
"""
    done = port.run(script, heap="4M").check().stdout.splitlines()
    np.testing.assert_allclose(np.array(eval(done[0])), np.array(want), atol=1e-6)
    assert done[1] == "past_key_values.1.value 4"
