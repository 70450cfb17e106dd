"""Named patterns become a single call, with the results of their parts."""

from __future__ import annotations

import math
from typing import Any

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
from support.onnx_models import assert_same, generated, parse, with_constants

SLOW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def graph_of(model: onnx.ModelProto) -> Graph:
    return run_passes(read_model(model).graph)[0]


def same(model: onnx.ModelProto, *inputs: np.ndarray, atol: float = 2e-5) -> list[str]:
    """Check that the passes do not change the results; returns the remaining operators."""
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
        return (
            None if found is None else sum(n * math.prod(values[name] for name in names) for names, n in found.items())
        )

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
    """The size differs between iterations, so a reshape to it stays after the loop."""
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
    """TorchScript's exporter writes Where(shape == -1, 1, shape) before an Expand."""
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
    pairs=st.integers(1, 4), rest=st.sampled_from([0, 0, 2, 3]), neighbors=st.booleans(), batch=st.integers(1, 3),
    own=st.booleans(), length=st.integers(1, 5), at=st.integers(0, 1), expand=st.booleans(),
)  # fmt: skip
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


@pytest.mark.parametrize("perm", [None, (0, 1, 3, 2), (0, 2, 3, 1), (0, 2, 1, 3), (3, 1, 0, 2)])
def test_keys_in_any_order_of_axes_are_found(perm: tuple[int, ...] | None) -> None:
    """Attention multiplies with keys whose axes are batch, heads, length, size, however the file has them."""
    sizes = (2, 3, 8, 5)  # of the operand: batch, heads, size, length
    given = list(sizes)
    if perm is not None:
        for axis, source in enumerate(perm):
            given[source] = sizes[axis]
    turned = "" if perm is None else f"kt = Transpose<perm = {list(perm)}>(k)"
    model = with_constants(
        f"""g (float[2, 3, 4, 8] q, float[{", ".join(map(str, given))}] k, float[2, 3, 5, 6] v)
             => (float[2, 3, 4, 6] y) {{
            {turned}  m = MatMul(q, {"k" if perm is None else "kt"})  s = Mul(m, half)  p = Softmax<axis=-1>(s)
            y = MatMul(p, v)
        }}""",
        half=np.float32(0.5),
    )
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal(s).astype(np.float32) for s in ((2, 3, 4, 8), given, (2, 3, 5, 6)))
    assert same(model, q, k, v).count("Attention") == 1


@pytest.mark.parametrize(("heads", "shared"), [(4, 2), (6, 3), (4, 1), (6, 2)])
def test_keys_that_heads_share_are_not_repeated(heads: int, shared: int) -> None:
    random = np.random.default_rng(heads)
    q, k, v = (
        random.standard_normal((2, n, s, 4)).astype(np.float32) for n, s in ((heads, 3), (shared, 5), (shared, 5))
    )
    assert same(grouped(heads, shared), q, k, v) == ["Attention"]
    assert "Expand" in same(grouped(heads, shared, wrong=True), q, k, v)  # keys repeated in another order


KEYS = [(2, 1, 5, 8), (2, 4, 5, 8), (1, 1, 5, 8), (4, 5, 8), (5, 8)]


@pytest.mark.parametrize(("given", "known"), [*[(shape, True) for shape in KEYS], *[(shape, False) for shape in KEYS]])
def test_keys_that_are_expanded_give_the_same_whatever_is_known_of_them(given: tuple[int, ...], known: bool) -> None:
    """Attention broadcasts a single shared head; other axes, and tensors of unknown rank, are not folded."""
    declared = ", ".join(map(str, given)) if known else ""
    model = with_constants(
        f"""g (float[2, 4, 3, 8] q, float[{declared}] k, float[{declared}] v) => (float[2, 4, 3, 8] y) {{
            k1 = Expand(k, whole)  v1 = Expand(v, whole)
            kt = Transpose<perm = [0, 1, 3, 2]>(k1)  m = MatMul(q, kt)  p = Softmax<axis=-1>(m)  y = MatMul(p, v1)
        }}""",
        whole=np.array([2, 4, 5, 8]),
    )
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal(s).astype(np.float32) for s in ((2, 4, 3, 8), given, given))
    left = same(model, q, k, v)
    assert ("Expand" not in left) == (known and given in KEYS[:2])


def test_each_idiom_has_a_switch() -> None:
    model = rotary(4, 4, False, 1, 0)
    assert "rotary_embedding" in translate(model)[1].source
    others = [name for name in PASSES if name != "rotary"]
    assert "rotary_embedding" not in translate(model, passes=others)[1].source


# -- attention of several heads ---------------------------------------------------------------------------------------


@SLOW
@given(
    heads=st.sampled_from([(1, 1), (2, 2), (4, 2), (6, 1)]), size=st.sampled_from([2, 4]), first=st.booleans(),
    turned=st.sampled_from(["", "q", "qk"]), causal=st.booleans(), masked=st.booleans(),
    lengths=st.tuples(st.integers(1, 3), st.integers(1, 5)),
)  # fmt: skip
def test_attention_takes_heads_side_by_side(
    heads: tuple[int, int], size: int, first: bool, turned: str, causal: bool, masked: bool, lengths: tuple[int, int]
) -> None:
    """Reshapes and permutations around an attention are removed, whether tokens or sequences come first."""
    into, back = ((1, 2, 0, 3), (2, 0, 1, 3)) if first else ((0, 2, 1, 3), (0, 2, 1, 3))
    lead = "L, B" if first else "B, L"
    width = {"q": heads[0] * size, "k": heads[1] * size, "v": heads[1] * size}
    lines = []
    for x in "qkv":
        out = f"{x}2" if x in turned else f"{x}3"
        lines.append(f"{x}1 = Reshape({x}, split)  {out} = Transpose<perm={list(into)}>({x}1)")
        if x in turned:
            lines.append(f"{x}3 = RotaryEmbedding({x}2, c, s)")
    mask = ", m" if masked else ""
    lines.append(f"o = Attention<is_causal={int(causal)}>(q3, k3, v3{mask})  p = Transpose<perm={list(back)}>(o)")
    table = f"float[B, L, {size // 2}]"
    inputs = [f"float[{lead}, {width[x]}] {x}" for x in "qkv"]
    inputs += [f"{table} c, {table} s"] if turned else []
    inputs += ["float[B, 1, L, L] m"] if masked else []
    model = with_constants(
        f"""g ({", ".join(inputs)}) => (float[{lead}, {width["q"]}] y) {{ {" ".join(lines)}  y = Reshape(p, join) }}""",
        opset=24,
        split=np.array([0, 0, -1, size]),
        join=np.array([0, 0, width["q"]]),
    )
    random = np.random.default_rng(size + heads[0])
    batch, length = lengths
    shape = (length, batch) if first else (batch, length)
    given = [random.standard_normal((*shape, width[x])).astype(np.float32) for x in "qkv"]
    given += [random.standard_normal((batch, length, size // 2)).astype(np.float32) for _ in range(2 * bool(turned))]
    given += [random.standard_normal((batch, 1, length, length)).astype(np.float32)] if masked else []
    left = same(model, *given, atol=0)
    assert "Reshape" not in left and left.count("Attention") == 1
    assert left.count("Transpose") == (4 if first else 0)


@pytest.mark.parametrize("what", ["o", "q2", "k1"])
def test_heads_that_something_else_reads_stay_apart(what: str) -> None:
    model = with_constants(
        f"""g (float[B, L, 4] q, float[B, L, 4] k, float[B, L, 4] v) => (float[B, L, 4] y, float[a, b, c, d] z) {{
            q1 = Reshape(q, split)  q2 = Transpose<perm=[0, 2, 1, 3]>(q1)
            k1 = Reshape(k, split)  k2 = Transpose<perm=[0, 2, 1, 3]>(k1)
            v1 = Reshape(v, split)  v2 = Transpose<perm=[0, 2, 1, 3]>(v1)
            o = Attention(q2, k2, v2)  p = Transpose<perm=[0, 2, 1, 3]>(o)  y = Reshape(p, join)  z = Exp({what})
        }}""",
        opset=24,
        split=np.array([0, 0, 2, 2]),
        join=np.array([0, 0, 4]),
    )
    random = np.random.default_rng(1)
    assert "Reshape" in same(model, *(random.standard_normal((2, 3, 4)).astype(np.float32) for _ in range(3)))


# -- parts of what one layer gives ------------------------------------------------------------------------------------


@SLOW
@given(
    lead=st.lists(st.sampled_from("BL"), min_size=1, max_size=2, unique=True), parts=st.integers(2, 4),
    rest=st.lists(st.integers(2, 3), min_size=1, max_size=2), order=st.randoms(use_true_random=False),
    how=st.sampled_from(["Gather", "Slice", "Split"]),
)  # fmt: skip
def test_parts_of_a_layers_result_are_split(lead: list[str], parts: int, rest: list[int], order: Any, how: str) -> None:
    """For any order of the other axes, and any node that splits the parts."""
    axes = [i for i in range(len(lead) + 1 + len(rest)) if i != len(lead)]
    order.shuffle(axes)
    width = parts * int(np.prod(rest))
    take = [f"p{i} = Gather<axis=0>(t, i{i})  y{i} = Exp(p{i})" for i in range(parts)]
    if how == "Slice":
        take = [f"p{i} = Slice(t, s{i}, s{i + 1}, s0)  y{i} = Exp(p{i})" for i in range(parts)]
    if how == "Split":
        names = ", ".join(f"p{i}" for i in range(parts))
        take = [f"{names} = Split<axis=0, num_outputs={parts}>(t)", *(f"y{i} = Exp(p{i})" for i in range(parts))]
    outputs = ", ".join(f"float[{', '.join('abcdef'[: len(axes) + (how != 'Gather')])}] y{i}" for i in range(parts))
    random = np.random.default_rng(width)
    model = with_constants(
        f"""g (float[{", ".join(lead)}, 5] x) => ({outputs}) {{
            a = MatMul(x, w)  b = Add(a, c)  r = Reshape(b, shape)
            t = Transpose<perm={[len(lead), *axes]}>(r)  {"  ".join(take)}
        }}""",
        w=random.standard_normal((5, width)).astype(np.float32),
        c=random.standard_normal(width).astype(np.float32),
        shape=np.array([0] * len(lead) + [parts, *rest]),
        **{f"i{i}": np.array(i) for i in range(parts)},
        **{f"s{i}": np.array([i]) for i in range(parts + 1)},
    )
    left = same(model, random.standard_normal((*(2 + i for i in range(len(lead))), 5)).astype(np.float32), atol=1e-6)
    assert left.count("Split") == 1 and not {"Gather", "Slice"} & set(left)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_one_layer_for_its_inputs_has_no_permutations(masked: bool) -> None:
    """PyTorch's exported MultiheadAttention computes with the length as the first axis."""
    mask = "  s2 = Add(s, m)  s3 = Softmax<axis=-1>(s2)" if masked else "  s3 = Softmax<axis=-1>(s)"
    given = ", float[B, 1, L, L] m" if masked else ""
    model = with_constants(
        f"""g (float[B, L, 8] x{given}) => (float[B, L, 8] y) {{
            t = Transpose<perm=[1, 0, 2]>(x)  a = MatMul(t, w)  b = Add(a, c)
            r = Reshape(b, parts)  f = Transpose<perm=[2, 0, 1, 3]>(r)
            q0 = Gather<axis=0>(f, i0)  k0 = Gather<axis=0>(f, i1)  v0 = Gather<axis=0>(f, i2)
            q1 = Reshape(q0, split)  q = Transpose<perm=[1, 2, 0, 3]>(q1)
            k1 = Reshape(k0, split)  k = Transpose<perm=[1, 2, 3, 0]>(k1)
            v1 = Reshape(v0, split)  v = Transpose<perm=[1, 2, 0, 3]>(v1)
            s0 = MatMul(q, k)  s = Mul(s0, half){mask}  o = MatMul(s3, v)
            p = Transpose<perm=[2, 0, 1, 3]>(o)  j = Reshape(p, join)  l = MatMul(j, z)
            y = Transpose<perm=[1, 0, 2]>(l)
        }}""",
        w=np.random.default_rng(0).standard_normal((8, 24)).astype(np.float32),
        c=np.random.default_rng(1).standard_normal(24).astype(np.float32),
        z=np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32),
        parts=np.array([0, 0, 3, 8]),
        split=np.array([0, 0, 2, 4]),
        join=np.array([0, 0, 8]),
        half=np.array(0.5, np.float32),
        **{f"i{i}": np.array(i) for i in range(3)},
    )
    random = np.random.default_rng(3)
    inputs = [random.standard_normal((2, 5, 8)).astype(np.float32)]
    inputs += [random.standard_normal((2, 1, 5, 5)).astype(np.float32)] if masked else []
    assert same(model, *inputs) == ["Linear", "Split", "Attention", "MatMul"]


@pytest.mark.parametrize("how", ["Gather", "Slice", "Split"])
def test_parts_of_a_tensor_of_unknown_rank_are_taken_as_before(how: str) -> None:
    """The input's rank is known only at run time, so the axis of the parts is unknown."""
    take = {"Gather": "Gather<axis=0>(t, i)", "Slice": "Slice(t, low, high, zero)", "Split": "Split<axis=0>(t, sizes)"}
    outputs = {"Gather": "y", "Slice": "y", "Split": "y, y1, y2"}[how]
    model = with_constants(
        f"""g (float[A] flat, int64[R] given) => (float[{"C, D, E" if how == "Gather" else "B, C, D, E"}] y) {{
            x = Reshape(flat, given)  a = MatMul(x, w)  b = Add(a, c)  h = Reshape(b, shape)
            t = Transpose<perm=[2, 0, 1, 3]>(h)  {outputs} = {take[how]}
        }}""",
        w=np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32),
        c=np.random.default_rng(1).standard_normal(6).astype(np.float32),
        shape=np.array([0, 0, 3, 2]),
        i=np.array(1),
        low=np.array([1]),
        high=np.array([2]),
        zero=np.array([0]),
        sizes=np.array([1, 1, 1]),
    )
    left = same(model, np.random.default_rng(2).standard_normal(60).astype(np.float32), np.array([3, 4, 5]), atol=1e-6)
    assert left == ["Reshape", "MatMul", "Add", "Reshape", "Transpose", how]


@pytest.mark.parametrize("split", [False, True])
def test_permutations_around_a_layer_of_unknown_rank_stay(split: bool) -> None:
    parts = "p, q = Split<axis=-1, num_outputs=2>(a)" if split else "p = Identity(a)"
    model = with_constants(
        f"""g (float[A] flat, int64[R] given) => (float[B, C, D] y) {{
            x = Reshape(flat, given)  t = Transpose<perm=[1, 0, 2]>(x)  a = MatMul(t, w)  {parts}
            y = Transpose<perm=[1, 0, 2]>(p)
        }}""",
        w=np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32),
    )
    left = same(model, np.random.default_rng(1).standard_normal(60).astype(np.float32), np.array([3, 4, 5]), atol=1e-6)
    assert left.count("Transpose") == 2


def test_a_layer_whose_parts_are_read_otherwise_too_keeps_its_permutations() -> None:
    model = with_constants(
        """g (float[B, L, 4] x) => (float[B, L, 4] y, float[L, B, 4] z) {
            t = Transpose<perm=[1, 0, 2]>(x)  a = MatMul(t, w)  p, q = Split<axis=-1, num_outputs=2>(a)
            y = Transpose<perm=[1, 0, 2]>(p)  z = Exp(q)
        }""",
        w=np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32),
    )
    assert same(model, np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)).count("MatMul") == 1


# -- a mask with a finite number --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_a_finite_mask_hides_as_minus_infinity_if_each_query_sees_its_first_key(seen: bool, turned: bool) -> None:
    table = np.tril(np.ones((6, 6), bool))
    if not seen:
        table[3] = False
    test = "Where(n, least, s)" if turned else "Where(m, s, least)"
    model = with_constants(
        f"""g (float[B, 2, L, 4] q, float[B, 2, 4, L] k, float[B, 2, L, 4] v) => (float[B, 2, L, 4] y) {{
            h = Shape<start=2, end=3>(q)  m0 = Slice(table, zero, h, zero)  m = Slice(m0, zero, h, one)
            n = Not(m)  s = MatMul(q, k)  w = {test}  p = Softmax<axis=-1>(w)  y = MatMul(p, v)
        }}""",
        table=table,
        zero=np.array([0]),
        one=np.array([1]),
        least=np.array(np.finfo(np.float32).min),
    )
    random = np.random.default_rng(0)
    q, v = (random.standard_normal((2, 2, 5, 4)).astype(np.float32) for _ in range(2))
    left = same(model, q, random.standard_normal((2, 2, 4, 5)).astype(np.float32), v)
    assert ("Attention" in left) == seen


# -- what a selection reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (0, 2), (2, 1), (1, 0, 2)])
def test_columns_that_are_read_one_by_one_are_read_together(order: tuple[int, ...]) -> None:
    columns = "  ".join(f"c{i} = Gather<axis=1>(rows, i{i})  d{i} = Unsqueeze(c{i}, last)" for i in sorted(set(order)))
    joined = ", ".join(f"d{i}" for i in order)
    model = with_constants(
        f"""g (float[A, B, C] x, int64[N, 3] rows)
             => (float[a, b, c] y, float[{", ".join("de"[: 4 - len(order)])}] z) {{
            y = Transpose<perm=[0, 2, 1]>(x)
            {columns}  at = Concat<axis=-1>({joined})  z = GatherND(x, at)
        }}""",
        last=np.array([-1]),
        **{f"i{i}": np.array(i) for i in range(3)},
    )
    random = np.random.default_rng(0)
    x = random.standard_normal((4, 4, 4)).astype(np.float32)
    left = same(model, x, random.integers(0, 4, (5, 3)), atol=0)
    assert "Concat" not in left and "Unsqueeze" not in left
    assert ("Gather" in left or "Slice" in left) == (order not in ((0, 1, 2), (0, 2, 1)))
