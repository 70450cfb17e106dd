"""Recovered modules: code with a class for each module gives the flat code's values."""

import ast
import builtins
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet import dtypes, get_backend
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from hypothesis import given, settings
from hypothesis import strategies as st
from models.index import HERE, Case, cases
from support.draws import draw
from support.loaded import loaded
from support.onnx_models import check, parse
from support.rows import every

from tools import components

SLOW = settings(max_examples=12)
BACKENDS = ["numpy", "python", *(["wgpu"] if components.get("gpu-driver").find() else [])]


def _arrays(model: Path, case: Case, backend: str, flat: bool) -> list[bytes]:
    home = get_backend(backend)
    given = case.inputs()
    order = [i.name for i in onnx.load(model).graph.input if i.name in given]
    tensors = [home.from_bytes(given[n].tobytes(), dtypes.dtype(given[n].dtype.name), given[n].shape) for n in order]
    results = loaded(model, backend, flat=flat)(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    return [bytes(home.to_bytes(r)) + repr((r.dtype, r.shape)).encode() for r in results]


@every("case", list(cases(contrib=False)), share=8)
def test_the_modules_compute_what_the_flat_code_does(case: Case) -> None:
    backend = draw(case.name).choice(BACKENDS)
    assert _arrays(case.model, case, backend, False) == _arrays(case.model, case, backend, True), backend


# -- models of which the source's state_dict is known -----------------------------------------------------------------

MODULES = sorted(p.name for p in (HERE / "modules").iterdir())
BUFFERS = {"llama": ["model.rotary_emb.inv_freq"]}  # which a state_dict does not have


def _model(name: str) -> Path:
    return HERE / ("modules" if name in MODULES else "") / name / "model.onnx"


def _architecture(name: str) -> bytes:
    return gzip.decompress((HERE / "architectures" / f"{name}.onnx.gz").read_bytes())


def _checkpoint(name: str) -> tuple[dict[str, np.ndarray], list[np.ndarray], np.ndarray]:
    with np.load(HERE / "modules" / name / "checkpoint.npz") as held:
        arrays = {k: held[k] for k in held.files}
    inputs = [arrays.pop(k) for k in sorted(arrays) if k.startswith("in_")]
    return arrays, inputs, arrays.pop("out_first")


@pytest.mark.parametrize("name", MODULES)
def test_a_checkpoint_of_the_architecture_loads_by_name(name: str) -> None:
    state, inputs, want = _checkpoint(name)
    home = get_backend("numpy")
    model = load(_model(name), backend="numpy")
    tensors: Any = {k: home.from_bytes(v.tobytes(), dtypes.dtype(v.dtype.name), v.shape) for k, v in state.items()}
    for missing in BUFFERS.get(name, []):
        tensors[missing] = dict(model.named_params())[missing].val()
    model.load_record(tensors, layout="pytorch")
    assert sorted(k for k, _ in model.named_params()) == sorted(tensors)
    got = model(*inputs)
    got = got[0] if isinstance(got, tuple) else got
    np.testing.assert_allclose(np.array(got.tolist()), want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", MODULES)
def test_the_exported_modules_compute_what_the_flat_code_does(name: str) -> None:
    _, inputs, _ = _checkpoint(name)
    results = []
    for flat in (False, True):
        got = load(_model(name), backend="numpy", flat=flat)(*inputs)
        results.append([bytes(r.backend.to_bytes(r)) for r in (got if isinstance(got, tuple) else (got,))])
    assert results[0] == results[1]


def test_a_list_of_equal_modules_is_one_class_and_a_loop() -> None:
    nodes = " ".join(
        f"[n{i}a] h{i} = MatMul(x{i}, w{i}) [n{i}b] r{i} = Tanh(h{i}) [n{i}c] x{i + 1} = MatMul(r{i}, v{i})"
        for i in range(3)
    )
    model = parse(f"g (float[N, 4] x0) => (float[N, 2] y) {{ {nodes} [n3] y = MatMul(x3, u) }}")
    random = np.random.default_rng(0)
    for i in range(3):
        for node, name in zip(model.graph.node[3 * i : 3 * i + 3 : 2], ("fc", "out"), strict=True):
            node.input[1] = f"layers.{i}.{name}.weight"
            array = random.standard_normal((4, 5 + i) if name == "fc" else (5 + i, 4)).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, node.input[1]))
    model.graph.node[-1].input[1] = "head.weight"
    head = random.standard_normal((4, 2)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(head, "head.weight"))
    written = translate(model, "net")[1]
    source, record = written.source, written.record
    assert source.count("\nclass ") == 2 and "for layer in self.layers:" in source
    assert "[Layer(n, backend=backend) for n in range(5, 8)]" in source
    assert sorted(record) == ["head.weight", *(f"layers.{i}.{n}.weight" for i in range(3) for n in ("fc", "out"))]
    check(model, random.standard_normal((2, 4)).astype(np.float32))


def test_swin_is_nested_as_its_source() -> None:
    """Stages of blocks with and without shifted windows. One class would have fewer lines here, where every stage has
    two blocks, but nearly all in one function."""
    written = translate(_architecture("swin_traced"), "swin", weights_name="w.bpk")[1]
    source = written.source
    kinds = [line[6:].partition("(")[0] for line in source.splitlines() if line.startswith("class ")]
    assert {"Attention", "Mlp", "Block", "Downsample", "Layer", "Swin"} <= set(kinds) and len(kinds) <= 9
    assert len(source.splitlines()) <= 205
    assert "F.roll(hidden, (-2, -2), axis=(1, 2))" in source and "x[:, ::2, 1::2]" in source
    assert "num_heads=self.num_heads" in source and ".reshape(x.shape)" in source
    assert "return x if self.downsample is None else self.downsample(x)" in source
    assert "encoder.layers.0.blocks.1.attention.q_proj.weight" in written.record


@pytest.mark.parametrize("name", ["speech_encoder", "speech_encoder_traced"])
def test_an_exported_encoder_takes_its_lengths(name: str) -> None:
    source = translate(HERE / name / "model.onnx", "net")[1].source
    assert "kv_lengths=lengths, num_heads=4)" in source and "        for layer in self.layers:\n" in source
    assert "F.where" not in source and "mask" not in source


def _sharing(op: str) -> str:
    """The code of four layers that all read a value which the first computes from an input."""
    layers = " ".join(
        f"h{i} = MatMul(x{i}, w{i}) m{i} = Mul(h{i}, t) r{i} = Tanh(m{i}) x{i + 1} = MatMul(r{i}, v{i})"
        for i in range(4)
    )
    model = parse(f"g (float[N, 4] x0, float[N, 4] a) => (float[N, 4] x4) {{ t = {op}(a) {layers} }}")
    random = np.random.default_rng(0)
    for n, node in enumerate(model.graph.node):
        node.name = f"/layers.{max(n - 1, 0) // 4}/{node.op_type}_{n}"
        if node.op_type == "MatMul":
            node.input[1] = f"layers.{(n - 1) // 4}.{'fc' if node.input[1][0] == 'w' else 'out'}.weight"
            array = random.standard_normal((4, 4)).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, node.input[1]))
    if op == "Sin":
        check(model, *random.standard_normal((2, 2, 4)).astype(np.float32))
    return translate(model, "net")[1].source


def test_what_all_layers_of_a_list_read_is_computed_before_the_loop() -> None:
    model = _sharing("Sin").partition("class Net(")[2]
    assert "sin = F.sin(a)" in model and model.index("F.sin(a)") < model.index("for layer in self.layers:")


def test_random_numbers_of_a_layer_stay_in_it() -> None:
    layers, _, model = _sharing("RandomNormalLike").partition("class Net(")
    assert "F.normal(" in layers and "F.normal(" not in model


def test_a_loop_that_only_its_condition_ends_is_a_while() -> None:
    model = parse(
        """g (float[1] x) => (float[1] y) <int64 most = {9223372036854775807}, bool go = {1}> {
            y = Loop(most, go, x) <body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t) {
                two = Constant<value = float[1] {2.0}>()
                t = Mul(s, two)
                top = Constant<value = float[1] {100.0}>()
                e = Less(t, top)
                d = Squeeze(e)
            }>
        }"""
    )
    source = translate(model, "net")[1].source
    assert "while keep_on:" in source and "9223372036854775807" not in source
    check(model, np.array([3.0], np.float32))


@pytest.mark.parametrize("flat", [False, True])
def test_no_local_hides_a_builtin(flat: bool) -> None:
    """For any number of live values and any operator names."""
    ops = ("Slice", "Pow", "Round", "Abs", "Sum", "Max", "Min")
    inputs = {"Slice": "x, zero, one", "Pow": "x, two", "Sum": "x, x", "Max": "x, two", "Min": "x, two"}
    nodes = " ".join(
        f"v{i} = {op}({inputs.get(op, 'x')}) w{i} = {op}({inputs.get(op, 'x')})" for i, op in enumerate(ops)
    )
    nodes += " all = Exp(x) filter = Sin(all) hash = Add(all, filter) set = Mul(hash, filter)"
    more = " ".join(f"u{i} = Mul(v{i}, t{i}) t{i + 1} = Add(u{i}, w{i})" for i in range(len(ops)))
    model = parse(
        f"""g (float[1] x, float[1] t0) => (float[1] t{len(ops)}, float[1] set) <
            int64[1] zero = {{0}}, int64[1] one = {{1}},
            float two = {{2.0}}> {{ {nodes} {more} }}"""
    )
    source = translate(model, "net", flat=flat, passes=[])[1].source
    names = {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    assert not [n for n in names if hasattr(builtins, n) or n.endswith("_")]


@SLOW
@given(
    projected=st.permutations([True, True, False, False]).map(lambda p: [*p, False]),
    named=st.booleans(),
    first=st.booleans(),
)
def test_blocks_with_and_without_a_part_are_one_class(projected: list[bool], named: bool, first: bool) -> None:
    """A shortcut with a layer or without one; an optional addition at the end."""
    random = np.random.default_rng(0)
    nodes, weights = [], {}
    for i, on in enumerate(projected):
        w = [f"layers.{i}.{n}.weight" for n in ("a", "b", "side")] if named else [f"w{i}a", f"w{i}b", f"w{i}c"]
        nodes.append(f'h{i} = MatMul(x{i}, "{w[0]}") r{i} = Relu(h{i}) m{i} = MatMul(r{i}, "{w[1]}")')
        if first:
            nodes.append(f'p{i} = MatMul(x{i}, "{w[2]}") s{i} = Add(m{i}, p{i})' if on else f"s{i} = Add(m{i}, x{i})")
        else:
            nodes.append(f"s{i} = Add(x{i}, m{i})" if on else f"s{i} = Identity(m{i})")
        nodes.append(f"x{i + 1} = Tanh(s{i})")
        for name in w[: 3 if first and on else 2]:
            weights[name] = random.standard_normal((20, 20)).astype(np.float32) / 5
    text = " ".join(nodes).replace('"', "").replace(".", "_")
    model = parse(f"g (float[N, 20] x0) => (float[N, 20] y) {{ {text} y = Exp(x{len(projected)}) }}")
    for name, array in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    for node in model.graph.node:
        for k, name in enumerate(node.input):
            node.input[k] = next((w for w in weights if w.replace(".", "_") == name), name)
    source = translate(model, "net")[1].source
    if named:
        option = "side" if first else "residual"
        assert f"{option}=True" in source and f"{option}=False" in source
    check(model, random.standard_normal((2, 20)).astype(np.float32))
