"""Patterns that have a name are called by it, and compute what their parts did."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.ir import sizes
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.passes import PASSES, run_passes
from emberlet.codegen.reader import read_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from support.onnx_models import assert_same, generated, parse

SLOW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def with_constants(text: str, opset: int = 21, **constants: np.ndarray) -> onnx.ModelProto:
    model = parse(text, opset)
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    return model


def graph_of(model: onnx.ModelProto) -> Graph:
    return run_passes(read_model(model).graph)[0]


def same(model: onnx.ModelProto, *inputs: np.ndarray, atol: float = 2e-5) -> list[str]:
    """All passes leave the results as they were; the operators that are left."""
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]), atol=atol)
    return [n.op() for n in graph_of(model).nodes]


# -- sizes ------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "batch", "?0123456789abcdef", "min(7, a)"])
SIZES = st.one_of(st.integers(0, 9), NAMES)


@given(st.lists(SIZES, max_size=5), st.lists(SIZES, max_size=5))
def test_sums_of_sizes_are_those_of_numbers(left: list[int | str], right: list[int | str]) -> None:
    """Whatever the names stand for."""
    values = {"a": 3, "b": 5, "batch": 2, "?0123456789abcdef": 11, "min(7, a)": 3}

    def number(d: int | str | None) -> int | None:
        found = sizes.terms(d)
        return None if found is None else sum(n * (values[k] if k else 1) for k, n in found.items())

    def total(items: list[int | str]) -> int | str | None:
        out: int | str | None = 0
        for item in items:
            out = sizes.plus(out, item)
        return out

    x, y = total(left), total(right)
    assert number(x) == sum(values[d] if isinstance(d, str) else d for d in left)
    assert x == total(left[::-1])
    assert sizes.minus(sizes.plus(x, y), y) == x
    found = sizes.minus(x, y)
    assert found is None or number(found) == number(x) - number(y)  # type: ignore[operator]


def test_an_unknown_size_equals_itself() -> None:
    model = parse(
        """g (float[A, B] x, int64[2] s) => (float[C, D] y) {
            r = Reshape(x, s)  h = Shape(r)  t = Relu(r)  z = Reshape(t, h)  y = Exp(z)
        }"""
    )
    x = np.ones((2, 6), np.float32)
    assert same(model, x, np.array([3, 4])) == ["Reshape", "Relu", "Exp"]


def test_sizes_in_a_round_are_not_the_next_rounds() -> None:
    """What one round has as its size differs in the next, so that a reshape to it stays behind the loop."""
    model = parse(
        """g (float[N] x, int64 n) => (float[M] y, float[K] z) {
            y = Loop(n, , x) <body = b (int64 i, bool c, float[S] s) => (bool d, float[T] t) {
                d = Identity(c)  t = Concat<axis = 0>(s, s)
            }>
            h = Shape(x)
            r = Relu(y)
            m = Constant<value = int64[1] {-1}>()
            z = Reshape(r, m)
        }"""
    )
    x = np.array([1.0, -2.0], np.float32)
    same(model, x, np.array(2, np.int64))
    assert generated(model, (x, np.array(3, np.int64)))[0].shape == (16,)


@pytest.mark.parametrize("fixed", [False, True])
def test_the_choice_between_a_size_and_minus_one_is_gone(fixed: bool) -> None:
    """TorchScript's exporter writes Where(shape == -1, 1, shape) around what is expanded."""
    first = "one" if fixed else "n"
    model = with_constants(
        f"""g (float[N, M] x, float[1, 1] w) => (float[A, B] y) <int64[1] zero = {{0}}, int64[1] last = {{1}}> {{
            h = Shape(x)  n = Gather<axis = 0>(h, zero)  m = Gather<axis = 0>(h, last)
            s = Concat<axis = 0>({first}, m)  c = Reshape(s, flat)  o = ConstantOfShape<value = int64[1] {{1}}>(two)
            k = Mul(o, one)  e = Equal(c, k)  p = Where(e, o, c)  z = Expand(w, p)  y = Add(x, z)
        }}""",
        flat=np.array([-1]),
        two=np.array([2]),
        one=np.array([-1]),
    )
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert "Where" not in same(model, x, np.ones((1, 1), np.float32))


def test_a_choice_that_may_be_minus_one_stays() -> None:
    model = with_constants(
        """g (float[N, M] x, int64[2] s) => (float[A, B] y) {
            e = Equal(s, one)  o = Neg(one)  p = Where(e, o, s)  y = Expand(x, p)
        }""",
        one=np.array([-1, -1]),
    )
    same(model, np.ones((1, 3), np.float32), np.array([-1, 3]))


def test_a_slice_up_to_a_size_is_as_long_as_what_it_is_added_to() -> None:
    model = with_constants(
        """g (float[batch, length, 4] x) => (float[A, B, C] y) <int64[1] one = {1}, int64[1] zero = {0}> {
            h = Shape(x)  n = Gather<axis = 0>(h, one)  p = Slice(table, zero, n, zero)  y = Add(x, p)
        }""",
        table=np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32),
    )
    assert graph_of(model).outputs[0].type.shape == ("batch", "length", 4)  # type: ignore[union-attr]
    same(model, np.ones((2, 5, 4), np.float32))


# -- normalization ----------------------------------------------------------------------------------------------------


def test_a_norm_as_a_product_with_one_over_a_root_is_one() -> None:
    model = with_constants(
        """g (float[N, 6] x) => (float[N, 6] y) <int64[1] last = {-1}, float two = {2}, float e = {0.01},
                float i = {1}> {
            s = Pow(x, two)  m = ReduceMean(s, last)  a = Add(m, e)  r = Sqrt(a)  d = Div(i, r)  n = Mul(x, d)
            y = Mul(w, n)
        }""",
        w=np.linspace(1, 2, 6, dtype=np.float32),
    )
    assert same(model, np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)) == ["RMSNormalization"]


# -- rotary embedding -------------------------------------------------------------------------------------------------

HALVES = (
    "lo = Slice(part, zero, half, three)  hi = Slice(part, half, far, three)  m = Neg(hi)  r = Concat<axis=-1>(m, lo)"
)
NEIGHBORS = """lo = Slice(part, zero, far, three, two)  hi = Slice(part, one, far, three, two)  m = Neg(hi)
    a = Unsqueeze(m, four)  b = Unsqueeze(lo, four)  k = Concat<axis=4>(a, b)  sp = Shape(part)  r = Reshape(k, sp)"""


def rotary(
    size: int, turned: int, neighbors: bool, batches: int | str, at: int, expand: bool = False
) -> onnx.ModelProto:
    """A rotary embedding as exporters write it: of `turned` elements of heads of `size`."""
    table = "f = Concat<axis=-1>(t, t)"
    if neighbors:
        table = f"u = Unsqueeze(t, three)  {'k2 = Expand(u, twice)' if expand else 'k2 = Concat<axis=3>(u, u)'}"
        table += "  f = Reshape(k2, wide)"
    whole = turned == size
    cut = "part = Identity(x)" if whole else "part = Slice(x, zero, stop, three)  rest = Slice(x, stop, far, three)"
    end = "y = Identity(o)" if whole else "y = Concat<axis=3>(o, rest)"
    cos = "cos = Unsqueeze(c, one)  sin = Unsqueeze(s, one)"
    products = ["p = Mul(part, cos)  q = Mul(r, sin)", "p = Mul(cos, part)  q = Mul(sin, r)"][at]
    return with_constants(
        f"""g (float[B, 3, L, {size}] x, float[{batches}, L, {turned // 2}] t) => (float[B, 3, L, {size}] y) {{
            {table}  cc = Cos(f)  ss = Sin(f)  c = Mul(cc, scale)  s = Mul(ss, scale)  {cos}  {cut}
            {NEIGHBORS if neighbors else HALVES}  {products}  o = Add(p, q)  {end}
        }}""",
        zero=np.array([0]),
        one=np.array([1]),
        two=np.array([2]),
        three=np.array([3]),
        four=np.array([4]),
        half=np.array([turned // 2]),
        stop=np.array([turned]),
        far=np.array([(1 << 63) - 1]),
        wide=np.array([0, 0, turned]),
        twice=np.array([1, 1, 1, 2]),
        scale=np.float32(0.5),
    )


@SLOW
@given(
    pairs=st.integers(1, 4),
    rest=st.sampled_from([0, 0, 2, 3]),
    neighbors=st.booleans(),
    batch=st.integers(1, 3),
    own=st.booleans(),
    length=st.integers(1, 5),
    at=st.integers(0, 1),
    expand=st.booleans(),
)
def test_a_rotary_embedding_in_parts_is_one_call(
    pairs: int, rest: int, neighbors: bool, batch: int, own: bool, length: int, at: int, expand: bool
) -> None:
    batches = batch if own else 1
    model = rotary(2 * pairs + rest, 2 * pairs, neighbors, "B" if own else 1, at, expand)
    random = np.random.default_rng(pairs)
    x = random.standard_normal((batch, 3, length, 2 * pairs + rest)).astype(np.float32)
    t = random.standard_normal((batches, length, pairs)).astype(np.float32)
    left = same(model, x, t)
    assert left.count("RotaryEmbedding") == 1 and "Neg" not in left


@pytest.mark.parametrize("change", ["other halves", "another table", "no negation", "other order"])
def test_what_is_nearly_a_rotary_embedding_stays(change: str) -> None:
    model = rotary(4, 4, False, 1, 0)
    nodes = {n.output[0]: n for n in model.graph.node}
    if change == "other halves":
        nodes["hi"].input[1] = "one"
        nodes["hi"].input[2] = "wide3"
        model.graph.initializer.append(numpy_helper.from_array(np.array([3]), "wide3"))
    elif change == "another table":
        nodes["f"].input[1] = "t2"
        extra = onnx.helper.make_node("Neg", ["t"], ["t2"])
        model.graph.node.insert(0, extra)
    elif change == "no negation":
        nodes["m"].op_type = "Abs"
    else:
        nodes["r"].input[:] = ["lo", "m"]
    random = np.random.default_rng(0)
    x, t = (random.standard_normal(s).astype(np.float32) for s in ((2, 3, 5, 4), (1, 5, 2)))
    assert "RotaryEmbedding" not in same(model, x, t)


# -- attention --------------------------------------------------------------------------------------------------------


def grouped(heads: int, shared: int, wrong: bool = False) -> onnx.ModelProto:
    """Attention whose keys and values are repeated for the heads that share them."""
    axis = 1 if wrong else 2
    return with_constants(
        f"""g (float[B, {heads}, L, 4] q, float[B, {shared}, K, 4] k, float[B, {shared}, K, 4] v)
             => (float[B, {heads}, L, 4] y) {{
            ks = Shape(k)  b = Gather<axis=0>(ks, zero)  n = Gather<axis=0>(ks, two)
            e = Concat<axis=0>({"b, many, few, n, four" if wrong else "b, few, many, n, four"})
            f = Concat<axis=0>(b, heads, n, four)
            k1 = Unsqueeze(k, axis)  k2 = Expand(k1, e)  k3 = Reshape(k2, f)
            v1 = Unsqueeze(v, axis)  v2 = Expand(v1, e)  v3 = Reshape(v2, f)
            kt = Transpose<perm = [0, 1, 3, 2]>(k3)  m = MatMul(q, kt)  s = Mul(m, half)  p = Softmax<axis=-1>(s)
            y = MatMul(p, v3)
        }}""",
        zero=np.array([0]),
        two=np.array([2]),
        four=np.array([4]),
        few=np.array([shared]),
        many=np.array([heads // shared]),
        heads=np.array([heads]),
        axis=np.array([axis]),
        half=np.float32(0.5),
    )


@pytest.mark.parametrize(("heads", "shared"), [(4, 2), (6, 3), (4, 1), (6, 2)])
def test_keys_that_heads_share_are_not_repeated(heads: int, shared: int) -> None:
    random = np.random.default_rng(heads)
    q, k, v = (
        random.standard_normal((2, n, s, 4)).astype(np.float32) for n, s in ((heads, 3), (shared, 5), (shared, 5))
    )
    assert same(grouped(heads, shared), q, k, v) == ["Attention"]


def test_keys_repeated_in_another_order_stay() -> None:
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((2, n, s, 4)).astype(np.float32) for n, s in ((4, 3), (2, 5), (2, 5)))
    assert "Expand" in same(grouped(4, 2, wrong=True), q, k, v)


def test_each_idiom_has_a_switch() -> None:
    model = rotary(4, 4, False, 1, 0)
    assert "rotary_embedding" in translate(model)[1].source
    others = [name for name in PASSES if name != "rotary"]
    assert "rotary_embedding" not in translate(model, passes=others)[1].source
