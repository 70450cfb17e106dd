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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models.index import cases
from onnx import numpy_helper
from support.onnx_models import assert_same, generated, parse, with_constants
from support.rows import every

RANDOM = np.random.default_rng(5)
SLOW = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


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


# -- identity and idempotence -----------------------------------------------------------------------------------------


def test_shapes_that_only_the_file_knows_outlast_a_pass() -> None:
    """Reshape's result is known only once the Identity is removed, so the node is inferred again."""
    model = parse("""g (float[6] x, int64[2] s) => (float[2, 3] y) <float[2, 3] r, float[3, 2] t> {
        i = Identity(x)  r = Reshape(i, s)  t = Transpose<perm = [1, 0]>(r)  y = Transpose<perm = [1, 0]>(t)
    }""")
    graph = after(model, "identity")
    assert operators(graph) == ["Reshape", "Transpose", "Transpose"]
    types = [node.outputs[0].type for node in graph.nodes]
    assert [t.shape for t in types if isinstance(t, TensorType)] == [(2, 3), (3, 2), (2, 3)]


def test_casts_that_lose_nothing_are_joined_and_others_kept() -> None:
    model = parse(
        """g (float16[5] x, float[5] w) => (float16[5] a, double[5] b, float[5] c) {
            p = Cast<to = 1>(x)  a = Cast<to = 10>(p)  b = Cast<to = 11>(p)
            q = Cast<to = 10>(w)  c = Cast<to = 1>(q)
        }"""
    )
    inputs = [floats(5).astype(np.float16), floats(5)]
    assert operators(after(model, "idempotent")) == ["Cast", "Cast", "Cast"]
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]))


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


@pytest.mark.parametrize(("more", "taken"), [("six", "Neg"), ("four", "Exp")])
def test_an_if_whose_condition_is_folded_is_the_branch_taken(more: str, taken: str) -> None:
    model = parse(
        f"""g (float[2, 3] x) => (float[2, 3] y, float[2, 3] w)
            <float five = {{5.0}}> {{
            total = ReduceSum<keepdims = 0>({more})  c = Greater(total, five)
            z, w, unused = If (c) <
                then_branch = t () => (float[2, 3] a, float[2, 3] d, float[2, 3] f) {{
                    a = Neg(x)  d = Sin(x)  f = Cos(x) }},
                else_branch = u () => (float[2, 3] b, float[2, 3] e, float[2, 3] h) {{
                    b = Exp(x)  e = Tan(x)  h = Tanh(x) }}>
            y = Abs(z)
        }}"""
    )
    # more elements than the reader works out itself
    held = {"four": np.zeros(9000, np.float32), "six": np.ones(9000, np.float32)}[more]
    model.graph.initializer.append(numpy_helper.from_array(held, more))
    rest = {"Neg": ["Neg", "Sin", "Abs"], "Exp": ["Exp", "Tan", "Abs"]}[taken]
    check(model, ["fold", "constant-if", "dead"], rest, floats(2, 3))
    (said,) = [line for line in run_passes(read_model(model).graph)[1] if line.startswith("constant-if")]
    assert said == "constant-if: replaced 1 constant If by the branch taken"


# -- shapes and moves -------------------------------------------------------------------------------------------------


def test_named_sizes_are_read_from_the_inputs() -> None:
    model = parse(
        """g (float[batch, length, 6] x) => (float[batch, length, 2, 3] y)
        <int64[2] tail = {2, 3}, int64 i = {0}, int64 j = {1}> {
            a = Exp(x)  s = Shape(a)  b = Gather(s, i)  r = Relu(a)  q = Shape(r)  l = Gather(q, j)
            b1 = Unsqueeze(b, axes)  l1 = Unsqueeze(l, axes)  t = Concat<axis = 0>(b1, l1, tail)  y = Reshape(r, t)
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "axes"))
    check(model, ["shapes"], ["InputSize", "InputSize", "Exp", "Relu", "Sizes", "Reshape"], floats(2, 5, 6))
    text = translate(model, "net")[1].source
    assert "batch = x.shape[0]" not in text or "y = y.reshape((batch, length, 2, 3))" in text
    assert ".reshape((x.shape[0], x.shape[1], 2, 3))" in text or ".reshape((batch, length, 2, 3))" in text


@SLOW
@given(data=st.data())
def test_axes_of_1_are_removed_before_any_permutation(data: st.DataObject) -> None:
    """A reshape makes axes of 1, a permutation moves them, and a squeeze removes one or all."""
    sizes = data.draw(st.permutations([1, 2, 3, 4])) + data.draw(st.sampled_from([[], [1]]))
    rank = len(sizes)
    perm = data.draw(st.permutations(range(rank)))
    ones = [i for i, p in enumerate(perm) if sizes[p] == 1]
    removed = data.draw(st.lists(st.sampled_from(ones), min_size=1, unique=True))
    axes = [i - rank if data.draw(st.booleans()) else i for i in removed]
    model = with_constants(
        f"g (float[24] x) => (float[{', '.join('ABCD'[: rank - len(axes)])}] y)"
        f"{{ a = Reshape(x, s)  b = Transpose<perm = {perm}>(a)  c = Squeeze(b, axes)  y = Relu(c) }}",
        s=np.array(sizes),
        axes=np.array(axes),
    )
    x = floats(24)
    turned = x.reshape(sizes).transpose(perm)
    assert_same(generated(model, [x], passes=["moves", "dead"]), [np.maximum(turned.squeeze(tuple(axes)), 0)])
    assert operators(after(model, "moves")) == ["Reshape", "Transpose", "Relu"]


@SLOW
@given(data=st.data())
def test_axes_merged_around_an_exchange_are_left_where_they_differ(data: st.DataObject) -> None:
    """Leading axes merged, two exchanged, and the leading ones restored or not: the same numbers in every case."""
    lead = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    other = data.draw(st.one_of(st.just(lead), st.permutations(lead), st.just([*lead, 1]), st.just(lead[::-1])))
    m, n = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    perm = data.draw(st.sampled_from([[0, 2, 1], [1, 0, 2], [2, 1, 0]]))
    merged = [int(np.prod(lead)), m, n]
    ends = [merged[p] for p in perm]
    last = data.draw(st.sampled_from([[*other, *ends[1:]], [ends[0], *other, *ends[2:]]]))
    if np.prod(last) != np.prod(merged):
        last = [*other, m, n]
    named = data.draw(st.booleans())  # the first of the leading axes has a name
    model = with_constants(
        f"g (float[{', '.join(map(str, ['N' if named else lead[0], *lead[1:], m, n]))}] x) => "
        f"(float[{', '.join('ABCDEF'[: len(last)])}] y)"
        f"{{ a = Reshape(x, s)  b = Transpose<perm = {perm}>(a)  c = Reshape(b, t)  y = Relu(c) }}",
        s=np.array([-1 if named else merged[0], m, n]),
        t=np.array(last),
    )
    x = floats(*lead, m, n)
    want = np.maximum(x.reshape(merged).transpose(perm).reshape(last), 0)
    assert_same(generated(model, [x], passes=["moves", "dead"]), [want])


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


LAYERS = {
    "Conv": ("float[1, 4, 8, 8]", (6, 4, 3, 3), (1, 6, 6, 6)),
    "ConvTranspose": ("float[1, 4, 8, 8]", (4, 6, 3, 3), (1, 6, 10, 10)),
    "Gemm": ("float[3, 4]", (4, 6), (3, 6)),
    "MatMul": ("float[3, 4]", (4, 6), (3, 6)),
}


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    ("layer", "inputs"),
    [(name, given) for name in LAYERS for given in ("w", "b", "wb") if name != "MatMul" or given == "w"],
)
def test_a_batch_norm_beside_a_weight_or_bias_that_is_given_stays(layer: str, behind: bool, inputs: str) -> None:
    """Only constants can be folded into constants: here the weight, the bias or both are inputs of the model."""
    x, weight, y = LAYERS[layer]
    names = ["w"] if layer == "MatMul" else ["w", "b"]
    arrays = {"w": floats(*weight), "b": floats(6)}
    types = {n: f"float[{', '.join(map(str, arrays[n].shape))}] {n}" for n in inputs}
    texts = {
        False: f"n = BatchNormalization(x, g, s, m, v)  y = {layer}(n, {', '.join(names)})",
        True: f"n = {layer}(x, {', '.join(names)})  y = BatchNormalization(n, g, s, m, v)",
    }
    model = with_constants(
        f"g ({', '.join([x + ' x', *types.values()])}) => (float[{', '.join(map(str, y))}] y) {{ {texts[behind]} }}",
        **{n: a for n, a in arrays.items() if n in names and n not in inputs},
        **norm(6 if behind else 4),
    )
    left = [layer, "BatchNormalization"] if behind else ["BatchNormalization", layer]
    shape = [int(d) for d in x[6:-1].split(",")]
    check(model, ["batch-norm"], left, floats(*shape), *[arrays[n] for n in inputs], atol=1e-4)


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


ATTENTION = """g (float[N, H, S, 8] q, float[N, H, T, 8] k, float[N, H, T, 8] v{more}) => (float[N, H, S, 8] y)
<float c = {{0.35355338}}, float half = {{0.5}}, float low = {{-inf}}> {{
    {scores}
    p = Softmax(s)
    y = MatMul(p, v)
}}"""


def test_a_mask_that_may_be_broadcast_along_the_keys_is_left() -> None:
    """Its single column applies to every key; as an attention mask it would apply to the first only."""
    scores = "t = Transpose<perm = [0, 1, 3, 2]>(k)  a = MatMul(q, t)  s = Add(a, mask)"
    text = ATTENTION.format(scores=scores, more=", float[N, 1, S, 1] mask").replace("{-inf}", "{-1.0}")
    inputs = [floats(2, 3, 5, 8), floats(2, 3, 7, 8), floats(2, 3, 7, 8), floats(2, 1, 5, 1)]
    assert "Attention" not in operators(after(parse(text), *PASSES))
    assert_same(generated(parse(text), inputs), generated(parse(text), inputs, passes=[]))


# -- spelt-out layers -------------------------------------------------------------------------------------------------


# -- one change each ---------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[Any, ...]] = {
    "nodes that hand on their input are removed": (
     "g (float[N, 4] x) => (float[N, 4] y) <float zero = {0.0}, float[1] one = {1.0}, int64[2] same = {0, -1}> { "
     "a = Identity(x)  b = Add(a, zero)  c = Mul(one, b)  d = Div(c, one)  e = Cast<to = 1>(d) "
     "f = Reshape(e, same)  g = Transpose<perm = [0, 1]>(f)  h = Dropout(g)  i = Concat<axis = 0>(h) "
     "j = Sub(i, zero)  y = Relu(j) }",
     21, {}, "identity", "Relu", [floats(3, 4)], 1e-5),
    "a neutral constant that adds an axis is kept": (
     "g (float[4] x) => (float[1, 4] y) <float[1, 1] zero = {0.0}> { y = Add(x, zero) }",
     21, {}, "identity", "Add", [floats(4)], 1e-5),
    "a pad that shifts is kept": (
     "g (float[4] x) => (float[4] y) <int64[2] pads = {1, -1}> { y = Pad(x, pads) }",
     21, {}, "identity", "Pad", [floats(4)], 1e-5),
    "a slice backwards is kept": (
     "g (float[4] x) => (float[4] y) <int64[1] first = {-1}, int64[1] end = {-9}, int64[1] axis = {0}, "
     "int64[1] step = {-1}> { y = Slice(x, first, end, axis, step) }",
     21, {}, "identity", "Slice", [floats(4)], 1e-5),
    "functions of what they change no more are removed": (
     "g (float[5] x) => (float[5] y, float[5] z, float[5] w) <float low = {-1.0}, float high = {6.0}, float less = "
     "{-2.0}> { "
     "a = Relu(x)  b = Relu(a)  y = Abs(b)  c = Floor(x)  d = Round(c)  e = Neg(d)  z = Neg(e) "
     "f = Clip(x, low, high)  w = Clip(f, less, high) }",
     21, {}, "idempotent", "Relu Floor Clip", [floats(5) * 4], 1e-5),
    "a narrower clip behind a wider one is kept": (
     "g (float[5] x) => (float[5] y) <float low = {-2.0}, float high = {2.0}, float one = {1.0}> { "
     "a = Clip(x, low, high)  y = Clip(a, low, one) }",
     21, {}, "idempotent", "Clip Clip", [floats(5) * 4], 1e-5),
    "nodes on constants are folded": (
     "g (float[3, 40] x) => (float[3, 64] y) { t = Transpose<perm = [1, 0]>(w)  y = MatMul(x, t) }",
     21, {"w": floats(64, 40)}, "fold", "MatMul", [floats(3, 40)], 1e-5),
    "folding that would make the weights larger is left": (
     "g (float[1000, 100] x) => (float[1000, 100] y) <int64[2] s = {1000, 100}> { e = Expand(w, s)  y = Add(x, e) }",
     21, {"w": floats(1, 100)}, "fold", "Expand Add", [floats(1000, 100)], 1e-5),
    "a large constant is folded into one of its size": (
     "g (float[300, 500] x) => (float[300, 500] y) { e = Exp(w)  y = Add(x, e) }",
     21, {"w": floats(300, 500)}, "fold", "Add", [floats(300, 500)], 1e-5),
    "a large constant is not folded into several": (
     "g (float[150, 500] x) => (float[150, 500] y) { "
     "a, b = Split<num_outputs = 2>(w)  c = Add(x, a)  y = Mul(c, b) }",
     21, {"w": floats(300, 500)}, "fold", "Split Add Mul", [floats(150, 500)], 1e-5),
    "an if whose condition turns out constant is the branch taken": (
     "g (float[2, 3] x) => (float[2, 3] y) { "
     "s = Shape(x)  two = Constant<value_int = 2>()  r = Size(s)  even = Equal(r, two) "
     "z = If (even) <then_branch = t () => (float[2, 3] a) { a = Neg(x) }, "
     "else_branch = f () => (float[2, 3] b) { b = Exp(x) }> "
     "y = Abs(z) }",
     21, {}, "constant-if", "Neg Abs", [floats(2, 3)], 1e-5),
    "permutations and reshapes are joined": (
     "g (float[2, 3, 4] x) => (float[4, 2, 3] y, float[24] z) <int64[2] s = {6, 4}, int64[1] t = {-1}> { "
     "a = Transpose<perm = [1, 2, 0]>(x)  y = Transpose<perm = [1, 2, 0]>(a)  b = Reshape(x, s)  z = Reshape(b, t) }",
     21, {}, "moves", "Transpose Reshape", [floats(2, 3, 4)], 1e-5),
    "permutations that undo each other are gone": (
     "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { "
     "a = Transpose<perm = [1, 2, 0]>(x)  b = Transpose<perm = [2, 0, 1]>(a)  y = Exp(b) }",
     21, {}, "moves identity", "Exp", [floats(2, 3, 4)], 1e-5),
    "axes merged around an exchange are seen through": (
     "g (float[N, 4, 6, 8] x) => (float[N, 4, 8, 6] y) <int64[3] m = {-1, 6, 8}, int64[4] r = {-1, 4, 8, 6}> { "
     "a = Reshape(x, m)  b = Transpose<perm = [0, 2, 1]>(a)  y = Reshape(b, r) }",
     21, {}, "moves", "Transpose", [floats(2, 4, 6, 8)], 1e-5),
    "a batch norm before a padded convolution stays": (
     "g (float[1, 4, 8, 8] x) => (float[1, 6, 8, 8] y) { "
     "n = BatchNormalization(x, g, s, m, v)  y = Conv<pads = [1, 1, 1, 1]>(n, w) }",
     21, {"w": floats(6, 4, 3, 3), **norm(4)}, "batch-norm", "BatchNormalization Conv", [floats(1, 4, 8, 8)], 1e-5),
    "a product and its bias are one layer": (
     "g (float[N, 3, 5] x) => (float[N, 3, 7] y) { p = MatMul(x, w)  y = Add(b, p) }",
     21, {"w": floats(5, 7), "b": floats(7)}, "linear", "Linear", [floats(2, 3, 5)], 1e-5),
    "a product whose result is used twice is no layer": (
     "g (float[N, 5] x) => (float[N, 7] y, float[N, 7] p) { p = MatMul(x, w)  y = Add(p, b) }",
     21, {"w": floats(5, 7), "b": floats(7)}, "linear", "MatMul Add", [floats(2, 5)], 1e-5),
    "a layer on merged axes takes them as they are": (
     "g (float[N, 3, 5] x) => (float[N, 3, 7] y) <int64[2] m = {-1, 5}, int64[3] r = {-1, 3, 7}> { "
     "a = Reshape(x, m)  p = Gemm(a, w, b)  y = Reshape(p, r) }",
     21, {"w": floats(5, 7), "b": floats(7)}, "linear", "Linear", [floats(2, 3, 5)], 1e-5),
    "a layer norm in parts is one": (
     "g (float[N, 3, 8] x) => (float[N, 3, 8] y) <float two = {2.0}, float e = {0.00001}> { "
     "m = ReduceMean<axes = [-1]>(x)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean<axes = [-1]>(q) "
     "a = Add(v, e)  r = Sqrt(a)  n = Div(d, r)  p = Mul(n, w)  y = Add(p, b) }",
     17, {"w": floats(8), "b": floats(8)}, "norms", "LayerNormalization", [floats(2, 3, 8)], 0.0001),
    "a root mean square norm in parts is one": (
     "g (float[N, 3, 8] x) => (float[N, 3, 8] y) <float e = {0.00001}> { "
     "q = Mul(x, x)  v = ReduceMean<axes = [-1]>(q)  a = Add(e, v)  r = Sqrt(a)  i = Reciprocal(r)  n = Mul(x, i) "
     "y = Mul(w, n) }",
     17, {"w": floats(8)}, "norms", "RMSNormalization", [floats(2, 3, 8)], 0.0001),
    "a group norm in parts is one": (
     "g (float[N, 6, 4, 4] x) => (float[N, 6, 4, 4] y) <int64[3] cut = {0, 3, -1}, int64[4] back = {-1, 6, 4, 4}, "
     "float[3] one = {1, 1, 1}, float[3] zero = {0, 0, 0}> { "
     "a = Reshape(x, cut)  n = InstanceNormalization(a, one, zero)  r = Reshape(n, back)  p = Mul(r, w) "
     "y = Add(p, b) }",
     21, {"w": floats(6, 1, 1), "b": floats(6, 1, 1)}, "norms", "GroupNormalization", [floats(2, 6, 4, 4)], 0.0001),
}  # fmt: skip


@every("what", CHANGES)
def test_a_pass_changes_what_it_should_and_nothing_else(what: str) -> None:
    text, opset, constants, passes, left, inputs, atol = CHANGES[what]
    check(with_constants(text, opset, **constants), passes.split(), left.split(), *inputs, atol=atol)


# -- all of them ------------------------------------------------------------------------------------------------------


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
