"""Each pass makes its change and alters no result beyond rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen.emit.instance import instantiate
from emberlet.codegen.emit.module import ModuleWriter
from emberlet.codegen.generation import translate
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.ir.types import TensorType
from emberlet.codegen.ir.value import Inline, Stored, Transposed
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.codegen.passes import PASSES, classes_of, run_passes
from emberlet.codegen.reader import read_model
from emberlet.codegen.weights import tensors
from emberlet.errors import ModelError
from models.index import cases
from support.onnx_models import assert_same, generated, parse, with_constants
from support.rows import every

RANDOM = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def after(model: onnx.ModelProto, *names: str) -> Graph:
    """The graph after only these passes and dead-code elimination."""
    return run_passes(read_model(model).graph, [*names, "dead"])[0]


def operators(graph: Graph) -> list[str]:
    return [n.op() for n in graph.nodes]


def check(
    model: onnx.ModelProto, names: Sequence[str], left: Sequence[str], *inputs: np.ndarray, atol: float = 1e-5
) -> None:
    """The passes leave these operators and do not change the outputs."""
    assert operators(after(model, *names)) == list(left)
    plain = generated(model, inputs, passes=[])
    assert_same(generated(model, inputs, passes=[*names, "dead"]), plain, atol=atol)
    assert_same(generated(model, inputs), plain, atol=atol)


def test_shapes_that_only_the_file_knows_outlast_a_pass() -> None:
    """Reshape's result is known only once the Identity is removed, so the node is inferred again."""
    model = parse("""g (float[6] x, int64[2] s) => (float[2, 3] y) <float[2, 3] r, float[3, 2] t> {
        i = Identity(x)  r = Reshape(i, s)  t = Transpose<perm = [1, 0]>(r)  y = Transpose<perm = [1, 0]>(t)
    }""")
    graph = after(model, "identity")
    assert operators(graph) == ["Reshape", "Transpose", "Transpose"]
    types = [node.outputs[0].type for node in graph.nodes]
    assert [t.shape for t in types if isinstance(t, TensorType)] == [(2, 3), (3, 2), (2, 3)]


# -- constants --------------------------------------------------------------------------------------------------------


def test_large_constants_are_folded_when_they_are_read() -> None:
    w = floats(300, 500)
    model = with_constants("g (float[2, 500] x) => (float[2, 300] y) { t = Transpose(w)  y = MatMul(x, t) }", w=w)
    graph = after(model, "fold")
    assert operators(graph) == ["MatMul"]
    value = graph.nodes[0].value(1)
    assert value is not None and isinstance(value.source, Transposed)
    assert bytes(value.raw()) == np.ascontiguousarray(w.T).tobytes()


@pytest.mark.parametrize(("rows", "left"), [(128, ["Add"]), (129, ["Expand", "Add"])])
def test_a_small_constant_is_folded_into_more_of_up_to_64_kib(rows: int, left: list[str]) -> None:
    model = with_constants(
        "g (float[R, 128] x) => (float[R, 128] y) { e = Expand(w, s)  y = Add(x, e) }",
        w=floats(128),
        s=np.array([rows, 128]),
    )
    check(model, ["fold"], left, floats(rows, 128))


@pytest.mark.parametrize(("extra", "source"), [(0, Inline), (1, Stored)])
def test_constants_of_up_to_4_mib_are_folded_at_once_into_small_ones(extra: int, source: type) -> None:
    model = with_constants(
        "g (float[64] x) => (float[64] y) { e = ReduceMax<axes = [0], keepdims = 0>(w)  y = Add(x, e) }",
        opset=17,
        w=floats((1 << 14) + extra, 64),
    )
    graph = after(model, "fold")
    assert operators(graph) == ["Add"]
    value = graph.nodes[0].value(1)
    assert value is not None and isinstance(value.source, source)
    x = floats(64)
    assert_same(generated(model, [x]), generated(model, [x], passes=[]))


def test_what_is_random_is_never_folded_or_merged() -> None:
    model = parse(
        """g (float[4] x) => (float[4] y) <float[4] p = {0.5, 0.5, 0.5, 0.5}> {
            a = Bernoulli(p)  b = Bernoulli(p)  c = Add(a, b)  y = Add(x, c)
        }"""
    )
    assert operators(after(model, *PASSES)).count("Bernoulli") == 2


def test_equal_nodes_are_merged_and_a_branchs_own_are_not_read_outside() -> None:
    model = parse(
        """g (float[4] x, bool c) => (float[4] y) {
            z = If (c) <then_branch = t () => (float[4] a) { p = Exp(x)  a = Neg(p) },
                        else_branch = f () => (float[4] b) { q = Exp(x)  r = Exp(x)  b = Add(q, r) }>
            u = Exp(x)  v = Exp(x)  w = Add(u, v)  y = Add(w, z)
        }"""
    )
    graph = after(model, "common")
    assert operators(graph) == ["If", "Exp", "Add", "Add"]
    assert [operators(g) for g in graph.nodes[0].graphs()] == [["Exp", "Neg"], ["Exp", "Add"]]
    for c in (True, False):
        inputs = [floats(4), np.array(c)]
        assert_same(generated(model, inputs), generated(model, inputs, passes=[]))


# -- layers -----------------------------------------------------------------------------------------------------------


def norm(n: int) -> dict[str, np.ndarray]:
    return {"g": floats(n), "s": floats(n), "m": floats(n), "v": np.abs(floats(n)) + 0.1}


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    ("x", "weight", "y"),
    [((2, 4, 5), (5, 4), (2, 4, 4)), ((3, 4), (2, 4, 6), (2, 3, 6)), ((2, 4, 4), (2, 4, 6), (2, 4, 6))],
)
def test_a_batch_norm_over_another_axis_than_the_products_stays(
    x: tuple[int, ...], weight: tuple[int, ...], y: tuple[int, ...], behind: bool
) -> None:
    """The normalization's channels are axis 1; those of a product are the last axis of both."""
    types = [f"float[{', '.join(map(str, shape))}]" for shape in (x, y)]
    text = "n = MatMul(x, w) y = BatchNormalization(n, g, s, m, v)"
    if not behind:
        text = "n = BatchNormalization(x, g, s, m, v) y = MatMul(n, w)"
    model = with_constants(
        f"g ({types[0]} x) => ({types[1]} y) {{ {text} }}", w=floats(*weight), **norm((y if behind else x)[1])
    )
    left = ["MatMul", "BatchNormalization"] if behind else ["BatchNormalization", "MatMul"]
    check(model, ["batch-norm"], left, floats(*x), atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_a_bias_of_more_axes_than_the_product_gives_its_own_rank(rank: int, axes: int) -> None:
    shape = (2, 3, 5)[3 - rank :]
    model = with_constants(
        f"g (float[{', '.join(map(str, shape))}] x) => (float[{', '.join('ABCD'[: max(rank, axes)])}] y) "
        "{ p = MatMul(x, w)  y = Add(p, b) }",
        w=floats(5, 7),
        b=floats(*(1,) * (axes - 1), 7),
    )
    check(model, ["linear"], ["MatMul", "Add"] if axes > rank else ["Linear"], floats(*shape))


# -- one change each ---------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[Any, ...]] = {
    "a neutral constant that adds an axis is kept": (
     "g (float[4] x) => (float[1, 4] y) <float[1, 1] zero = {0.0}> { y = Add(x, zero) }",
     {}, "identity", "Add", [floats(4)]),
    "a pad that shifts is kept": (
     "g (float[4] x) => (float[4] y) <int64[2] pads = {1, -1}> { y = Pad(x, pads) }",
     {}, "identity", "Pad", [floats(4)]),
    "a slice backwards is kept": (
     "g (float[4] x) => (float[4] y) <int64[1] first = {-1}, int64[1] end = {-9}, int64[1] axis = {0}, "
     "int64[1] step = {-1}> { y = Slice(x, first, end, axis, step) }",
     {}, "identity", "Slice", [floats(4)]),
    "a narrower clip behind a wider one is kept": (
     "g (float[5] x) => (float[5] y) <float low = {-2.0}, float high = {2.0}, float one = {1.0}> { "
     "a = Clip(x, low, high)  y = Clip(a, low, one) }",
     {}, "idempotent", "Clip Clip", [floats(5) * 4]),
    "nodes on constants are folded": (
     "g (float[3, 40] x) => (float[3, 64] y) { t = Transpose<perm = [1, 0]>(w)  y = MatMul(x, t) }",
     {"w": floats(64, 40)}, "fold", "MatMul", [floats(3, 40)]),
    "folding that would make the weights larger is left": (
     "g (float[1000, 100] x) => (float[1000, 100] y) <int64[2] s = {1000, 100}> { e = Expand(w, s)  y = Add(x, e) }",
     {"w": floats(1, 100)}, "fold", "Expand Add", [floats(1000, 100)]),
    "a large constant is folded into one of its size": (
     "g (float[300, 500] x) => (float[300, 500] y) { e = Exp(w)  y = Add(x, e) }",
     {"w": floats(300, 500)}, "fold", "Add", [floats(300, 500)]),
    "a large constant is not folded into several": (
     "g (float[150, 500] x) => (float[150, 500] y) { "
     "a, b = Split<num_outputs = 2>(w)  c = Add(x, a)  y = Mul(c, b) }",
     {"w": floats(300, 500)}, "fold", "Split Add Mul", [floats(150, 500)]),
    "a batch norm before a padded convolution stays": (
     "g (float[1, 4, 8, 8] x) => (float[1, 6, 8, 8] y) { "
     "n = BatchNormalization(x, g, s, m, v)  y = Conv<pads = [1, 1, 1, 1]>(n, w) }",
     {"w": floats(6, 4, 3, 3), **norm(4)}, "batch-norm", "BatchNormalization Conv", [floats(1, 4, 8, 8)]),
    "a product whose result is used twice is no layer": (
     "g (float[N, 5] x) => (float[N, 7] y, float[N, 7] p) { p = MatMul(x, w)  y = Add(p, b) }",
     {"w": floats(5, 7), "b": floats(7)}, "linear", "MatMul Add", [floats(2, 5)]),
}  # fmt: skip


@every("what", CHANGES)
def test_a_pass_changes_what_it_should_and_nothing_else(what: str) -> None:
    text, constants, passes, left, inputs = CHANGES[what]
    check(with_constants(text, **constants), passes.split(), left.split(), *inputs)


# -- all of them ------------------------------------------------------------------------------------------------------


def test_outputs_keep_the_types_of_the_file() -> None:
    """An output that was a node's own result is now the input, of which less is known."""
    model = parse("g (float[N, 4] x) => (float[2, 4] y) { a = Identity(x)  y = Identity(a) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    graph = run_passes(read_model(model).graph)[0]
    assert graph.outputs[0].type.shape == (2, 4)  # type: ignore[union-attr]
    constant = parse("g (float[4] x) => (float[1] y) <float[1] c = {2.0}> { y = Identity(c) }")
    assert run_passes(read_model(constant).graph)[0].outputs[0].value is not None


def test_a_name_no_pass_has_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no pass 'magic'; there are sizes, constant-if, fold, .*, dead"):
        translate(parse("g (float x) => (float y) { y = Neg(x) }"), passes=["magic"])


def test_explain_lists_what_the_passes_did() -> None:
    model = parse(
        """g (float[4] x) => (float[4] y) { a = Identity(x)  b = Identity(a)  c = Relu(b)  d = Exp(x)  y = Neg(c) }"""
    )
    assert translate(model)[2] == (
        "identity: removed 2 nodes that return their input",
        "dead: removed 1 unused node",
    )


def results(graph: Graph, model: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
    from dataclasses import replace

    written = ModuleWriter(replace(model, graph=graph)).write()
    assert not written.problems
    instance = instantiate(written, "net", "numpy")
    instance.load_record(tensors(written.record, "numpy"), layout="burn")
    out = instance(*(to_tensor(x, "numpy") for x in inputs))
    return [to_array(o) for o in (out if isinstance(out, tuple) else (out,))]


REAL = {c.name: c for c in cases() if not c.name.startswith("contrib")}


@every("case", REAL.values())
def test_no_pass_alone_changes_what_a_real_model_computes(case: Any) -> None:
    model, inputs = read_model(case.model), list(case.inputs().values())
    plain = run_passes(model.graph, ["dead"])[0]
    want = results(plain, model, inputs)
    for name in PASSES:
        graph, notes = run_passes(model.graph, [name, "dead"])
        if any(n.startswith(name) for n in notes) and name != "dead":
            got = results(graph, model, inputs)
            for g, w in zip(got, want, strict=True):
                assert (g.dtype, g.shape) == (w.dtype, w.shape), name
                close = (
                    {"atol": 10 * case.atol, "rtol": 10 * case.rtol} if w.dtype.kind == "f" else {"atol": 1, "rtol": 0}
                )
                np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), err_msg=name, **close)


@every("case", REAL.values())
def test_a_pass_without_what_it_starts_at_finds_nothing(case: Any) -> None:
    """`run_passes` does not import it then. Each pass sees the graph as read, and after all the others."""
    read = read_model(case.model).graph
    for graph in (PASSES["sizes"](read)[0], run_passes(read)[0]):
        found = classes_of(graph)
        for name, run in PASSES.items():
            if run.starts is not None and not run.starts & found:
                after, done = run(graph)
                assert after is graph and not done, name
