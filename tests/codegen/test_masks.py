"""Attention masks: derived facts about their elements hold."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from emberlet.codegen.passes import PASSES, run_passes
from emberlet.codegen.passes.masks.formulas import All, Compared, Element, Negated, Number, Part, Term
from emberlet.codegen.passes.masks.index_terms import Terms
from emberlet.codegen.passes.rewriting import Walk, rewrite
from emberlet.codegen.reader import read_model
from onnx import numpy_helper
from support.onnx_models import assert_same, generated, parse
from support.rows import every

SIZES = {"A": 3, "B": 4}


def at(t: Term | Part, place: tuple[int, ...], arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> int | bool:
    """A term's value at one position."""
    match t:
        case Number(parts):
            total = 0
            for m, n in parts:
                for f in m:
                    n *= place[f] if isinstance(f, int) else sizes[f]
                total += n
            return total
        case Part(number, divisor, remainder):
            q, r = divmod(at(number, place, arrays, sizes), at(divisor, place, arrays, sizes))
            return r if remainder else q
        case Element(name, places):
            return bool(arrays[name][tuple(at(p, place, arrays, sizes) for p in places)])
        case Compared(number, equal):
            value = at(number, place, arrays, sizes)
            return value == 0 if equal else value >= 0
        case All(items):
            return all(at(i, place, arrays, sizes) for i in items)
        case Negated(item):
            return not at(item, place, arrays, sizes)
        case other:
            assert isinstance(other, bool)
            return other


def inputs_of(length: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((3, 2, length, 4)).astype(np.float32) for _ in range(3)]


TABLES: dict[str, np.ndarray] = {
    "grid": np.array([[0, 1, 2, 3], [10, 11, 12, 13]]),
    "uneven": np.array([[0, 1], [2, 4]]),
    "column": np.array([[[5]], [[7]]]),
    "fives": np.full((3, 2), 5),
    "row": np.array([3, 1, -1]),
    "yes": np.ones((2, 2), bool),
    "mixed": np.array([True, False]),
    "halves": np.array([0.5, 0.5]),
    "i0": np.array([0]), "i1": np.array([1]), "i2": np.array([2]), "last": np.array([-1]), "second": np.array([-2]),
    "far": np.array([1 << 40]), "n0": np.array(0), "n1": np.array(1), "n2": np.array(2), "n3": np.array(3),
    "n4": np.array(4), "minus": np.array(-1), "both": np.array([0, 1]), "whole": np.array([3, 2, 4]),
    "wide": np.array([3, 4]), "flat": np.array([-1]), "on": np.array(True), "h1": np.array([3, 1, 4]),
    "h4": np.array([2, 6]), "m2": np.arange(12).reshape(3, 4) % 3, "n00": np.zeros((3, 1), np.int64),
    "x0": np.float32(0), "x1": np.float32(1), "x3": np.float32(3), "whole2": np.array([3, 4]),
}  # fmt: skip
# Nodes behind `p = 0 … A` (A is 3), `r = 0 … B` (B is 4) and the bools m (A, B); whether a term of y is known.
TERMS = [
    ("y = Identity(grid)", True), ("y = Identity(uneven)", False), ("y = Identity(column)", True),
    ("y = Identity(fives)", True), ("y = Identity(row)", True), ("y = Identity(yes)", True),
    ("y = Identity(m)", True), ("y = Not(m)", True), ("t = Not(m)  y = Not(t)", True), ("y = And(m, m)", True),
    ("t = Not(m)  y = And(m, t)", True), ("t = Not(m)  y = Or(m, t)", True), ("y = And(m, on)", True),
    ("y = Or(m, on)", True), ("y = Transpose<perm = [1, 0]>(m)", True),
    ("t = Transpose<perm = [1, 0]>(m)  y = Transpose<perm = [1, 0]>(t)", True),
    ("y = Slice(r, i1, far, i0)", True), ("y = Slice(r, second, far, i0)", True), ("y = Slice(r, i0, i2, i0)", True),
    ("y = Slice(r, i0, far, i0, i2)", False), ("y = Slice(m, i1, far, last)", True),
    ("y = Slice(m, last, far, i0)", True), ("y = Slice(r, last, far, last, last)", False),
    ("y = Add(r, n2)", True), ("y = Sub(n2, r)", True), ("y = Mul(r, n3)", True), ("y = Neg(r)", False),
    ("u = Unsqueeze(p, i1)  y = Add(u, r)", True), ("u = Unsqueeze(p, i1)  y = Mul(u, r)", True),
    ("u = Unsqueeze(p, i1)  y = Less(r, u)", True), ("u = Unsqueeze(p, i1)  y = LessOrEqual(r, u)", True),
    ("u = Unsqueeze(p, i1)  y = Greater(r, u)", True), ("u = Unsqueeze(p, i1)  y = GreaterOrEqual(r, u)", True),
    ("u = Unsqueeze(p, i1)  y = Equal(r, u)", True), ("y = Equal(r, r)", True), ("y = Less(r, r)", True),
    ("y = Less(r, n4)", True), ("y = GreaterOrEqual(r, n0)", True), ("y = Greater(r, n3)", True),
    ("u = Unsqueeze(p, last)  y = Expand(u, h)", True), ("u = Unsqueeze(m, i1)  y = Expand(u, whole)", True),
    ("u = Unsqueeze(m, i1)  y = Squeeze(u, i1)", True), ("u = Unsqueeze(m, both)  y = Squeeze(u, both)", True),
    ("y = Cast<to = 7>(r)", True), ("y = Cast<to = 6>(r)", True), ("y = Cast<to = 9>(m)", True),
    ("y = Cast<to = 7>(m)", False), ("y = Cast<to = 9>(r)", True), ("y = Cast<to = 7>(yes)", True),
    ("y = Reshape(m, flat)", True), ("y = Reshape(r, flat)", True),
    ("y = Gather<axis = 0>(m, p)", True), ("y = Gather<axis = 1>(m, r)", True), ("y = Gather<axis = 0>(m, n1)", True),
    ("y = Gather<axis = 1>(m, n2)", True), ("y = Gather<axis = -1>(m, n2)", True), ("y = Gather(r, p)", True),
    ("y = Gather<axis = 0>(m, minus)", True), ("u = Unsqueeze(p, i1)  y = Gather<axis = 0>(m, u)", True),
    ("y = Concat<axis = 0>(r, r)", False), ("t = Add(r, n4)  y = Concat<axis = 0>(r, t)", False),
    ("y = Concat<axis = 0>(i0, i1, i2)", True), ("y = Concat<axis = 0>(i0, i2, i1)", False),
    ("t = Add(r, n1)  y = Concat<axis = 0>(i0, t)", True), ("t = Add(r, n2)  y = Concat<axis = 0>(i0, t)", False),
    ("y = Range(n2, n4, n1)", True), ("y = Range(n4, n0, minus)", True), ("y = Range(n0, n4, n2)", True),
    ("y = CumSum(fives, n1)", True), ("y = Mod(r, n2)", False), ("y = Div(r, n2)", False), ("y = Abs(r)", False),
    ("y = Where(m, n1, n0)", False), ("y = Not(mixed)", False),
    # sizes that are unknown or have several names, and numbers of which one is a product
    ("y = Equal(r, n1)", True), ("y = Equal(r, n4)", True), ("t = Add(r, n1)  y = Equal(t, n0)", True),
    ("y = Less(r, n0)", True), ("y = LessOrEqual(r, n2)", True), ("y = GreaterOrEqual(r, n4)", True),
    ("t = Sub(r, b)  y = Less(t, n0)", True), ("t = Sub(b, r)  y = Greater(t, n0)", True),
    ("t = Mul(r, b)  y = GreaterOrEqual(t, r)", True), ("t = Mul(r, r)  y = GreaterOrEqual(t, r)", True),
    ("t = Mul(r, r)  u = Sub(t, r)  y = GreaterOrEqual(u, n0)", True), ("u = Sub(b, a)  y = Less(r, u)", True),
    ("t = Cast<to = 9>(r)  y = Not(t)", True), ("t = Cast<to = 9>(yes)  y = Not(t)", True),
    ("t = Cast<to = 7>(m)  y = Add(t, r)", False), ("t = Cast<to = 1>(r)  y = Cast<to = 7>(t)", False),
    ("t = Cast<to = 9>(m)  y = Or(t, m)", True),
    ("u = Less(p, n2)  w = Unsqueeze(u, i1)  y = And(m, w)", True), ("u = Less(r, n2)  y = Or(m, u)", True),
    ("u = Less(r, n2)  v = Not(u)  y = And(v, m)", True), ("u = And(m, m)  y = Or(u, m)", True),
    ("u = Less(r, n2)  v = And(u, m)  y = Not(v)", True), ("u = Less(r, n2)  v = And(u, m)  y = And(v, u)", True),
    # what is known of nothing, at each operand
    ("w = Abs(r)  y = Add(w, r)", False), ("w = Abs(r)  y = Sub(r, w)", False), ("w = Abs(r)  y = Less(w, r)", True),
    ("w = Abs(r)  y = Equal(r, w)", True), ("w = Abs(r)  y = Cast<to = 6>(w)", False),
    ("w = Abs(r)  y = Unsqueeze(w, i0)", False), ("w = Abs(r)  y = Expand(w, h)", False),
    ("u = Unsqueeze(r, i0)  w = Abs(u)  y = Transpose<perm = [1, 0]>(w)", False),
    ("w = Abs(r)  y = Slice(w, i0, i2, i0)", False),
    ("w = Abs(r)  y = Concat<axis = 0>(r, w)", False), ("w = Abs(r)  y = Concat<axis = 0>(w, r)", False),
    ("w = Abs(r)  y = Gather(w, p)", False), ("w = Abs(p)  y = Gather(r, w)", False),
    ("w = Abs(r)  y = CumSum(w, n0)", False), ("t = Mul(r, n0)  y = CumSum(t, n0)", True),
    ("w = Abs(r)  t = Gather(w, n0)  y = Range(t, n4, n1)", False), ("y = Range(b, n0, minus)", True),
    ("y = Range(n0, n4, b)", True), ("y = Range(n0, b, a)", True), ("y = Range(x0, x3, x1)", False),
    # of unknown rank, and of unknown sizes
    ("z = Reshape(m, s)  y = Not(z)", False), ("z = Reshape(m, s)  y = And(z, z)", False),
    ("z = Reshape(m, s)  y = Slice(z, i0, i2, i0)", False),
    ("z = Reshape(m, s)  y = Reshape(z, flat)", True), ("z = Reshape(m, s)  y = Cast<to = 9>(z)", False),
    ("z = Reshape(m, s)  y = Gather(z, n0)", False), ("z = Reshape(m, s)  y = Unsqueeze(z, i0)", False),
    ("z = Reshape(r, s)  y = Add(z, n1)", False), ("z = Reshape(r, s)  y = Less(z, n1)", False),
    ("z = Reshape(m, s)  y = Expand(z, s)", False), ("z = Reshape(r, s)  y = Concat<axis = 0>(z, z)", False),
    ("z = Expand(r, s)  y = Add(z, r)", False), ("z = NonZero(m)  y = Transpose(z)", False),
    ("z = NonZero(m)  y = Add(z, n1)", False), ("z = NonZero(m)  t = Transpose(z)  y = GatherND(m, t)", True),
    ("h2 = Slice(h, i1, far)  y = Slice(r, i0, h2, i0)", True),
    ("h2 = Slice(h, i0, i1)  y = Slice(r, h2, far, i0)", True),
    ("h2 = Slice(h, i1, far)  t = Sub(i0, h2)  y = Slice(r, t, far, i0)", False),
    ("y = Slice(r, s, far, i0)", False), ("y = Slice(r, i0, s, i0)", True), ("y = Slice(p, far, far, i0)", True),
    ("t = Unsqueeze(p, i1)  y = Slice(t, i1, far, last)", True), ("y = Slice(m, both, whole2, both)", True),
    # gathers of several places
    ("u = Unsqueeze(p, i1)  v = Concat<axis = -1>(u, u)  y = GatherND(m, v)", True),
    ("u = Unsqueeze(p, i1)  v = Concat<axis = 1>(u, u)  y = GatherND(m, v)", True),
    ("u = Unsqueeze(p, i1)  y = GatherND(m, u)", True),
    ("u = Unsqueeze(p, i1)  v = Concat<axis = 1>(u)  y = GatherND(m, v)", True),
    ("u = Unsqueeze(p, i1)  w = Abs(u)  v = Concat<axis = 1>(u, w)  y = GatherND(m, v)", True),
    ("u = Unsqueeze(p, i1)  w = Sub(u, n1)  v = Concat<axis = 1>(w, u)  y = GatherND(m, v)", True),
    ("u = Unsqueeze(p, i1)  v = Concat<axis = 0>(u, u)  y = GatherND(m, v)", True),
    ("t = Unsqueeze(m, i0)  q = Unsqueeze(p, i1)  u = Unsqueeze(q, i0)  v = Concat<axis = 2>(u)  "
     "y = GatherND<batch_dims = 1>(t, v)", True),
    ("u = Unsqueeze(p, i1)  v = Concat<axis = 1>(n00, u)  y = GatherND(m, v)", True),
    # reshapes
    ("t = Reshape(m, flat)  y = Reshape(t, h)", True),
    ("t = Reshape(m, flat)  q = Unsqueeze(t, i0)  y = Squeeze(q, i0)", True),
    ("t = Unsqueeze(m, both)  y = Reshape(t, h)", True), ("t = Reshape(m, h4)  y = Reshape(t, flat)", True),
    ("t = Reshape(m, h4)  y = Reshape(t, h)", True), ("t = Reshape(m, h4)  y = Reshape(t, h1)", True),
    ("t = Transpose<perm = [1, 0]>(m)  y = Reshape(t, flat)", True), ("y = Flatten<axis = 0>(m)", True),
    ("y = Flatten<axis = 1>(m)", True), ("t = Less(m2, n2)  y = Reshape(t, flat)", False),
    ("t = Unsqueeze(m, i1)  y = Reshape(t, flat)", True),
    ("t = Reshape(r, flat)  q = Add(t, n1)  y = Unsqueeze(q, i1)", True),
    # joined parts
    ("t = Slice(r, i0, i1, i0)  u = Slice(r, i1, far, i0)  y = Concat<axis = 0>(t, u)", True),
    ("t = Sub(r, b)  y = Concat<axis = 0>(t, r)", True), ("t = Add(r, b)  y = Concat<axis = -1>(r, t)", True),
    ("u = Unsqueeze(r, i0)  t = Add(u, n1)  y = Concat<axis = 0>(u, t)", False), ("y = Concat<axis = 0>(m, m)", True),
    ("y = Concat<axis = 0>(i1, i1)", True), ("y = Concat<axis = 0>(i1, i2, i2)", False),
    ("y = Concat<axis = 0>(i1)", True),
    ("u = Unsqueeze(r, i0)  y = Concat<axis = 1>(u, u)", False),
    ("z = Reshape(r, s)  y = Concat<axis = 0>(r, z)", False),
    ("z = Expand(i1, s)  y = Concat<axis = 1>(z, z)", False),
]  # fmt: skip


@every(("nodes", "known"), TERMS)
def test_the_term_of_each_operator_says_what_its_elements_are(nodes: str, known: bool) -> None:
    model = parse(f"""g (bool[A, B] m, int64[K] s) => (int64 y) {{
        h = Shape(m)  a = Gather(h, n0)  b = Gather(h, n1)  p = Range(n0, a, n1)  r = Range(n0, b, n1)  {nodes} }}""")
    model.graph.output[0].type.Clear()
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in TABLES.items())
    m = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 0, 1]], bool)
    s = np.array([4] if "Reshape(r, s)" in nodes else [1] if "Slice(r" in nodes else [3, 4])
    made = {o: None for n in model.graph.node for o in n.output}
    for o in made:
        model.graph.output.append(onnx.ValueInfoProto(name=o))
    made.update(zip(made, generated(model, [m, s], passes=[])[1:], strict=True))
    del model.graph.output[1:]
    want = made["y"]
    graph = PASSES["sizes"](read_model(model).graph)[0]
    walks: list[Walk] = []
    rewrite(graph, lambda node, walk: walks.append(walk))
    term = Terms(walks[0]).of(graph.outputs[0])
    assert (term is not None) == known
    arrays = {"m": m, **TABLES, **made}
    for place in np.ndindex(want.shape) if term is not None else ():
        assert at(term, place, arrays, SIZES) == want[place], (place, term)


@pytest.mark.parametrize("see", ["see = GreaterOrEqual(all, zero)", "see = LessOrEqual(all, rows)"])
def test_a_mask_of_fewer_keys_than_there_are_stays(see: str) -> None:
    """The keys behind a short mask are hidden (Attention since opset 24)."""
    model = parse(
        f"""g (float[N, 2, L, 4] q, float[N, 2, L, 4] k, float[N, 2, L, 4] v, float[N, 2, P, 4] pk,
            float[N, 2, P, 4] pv)
        => (float[N, 2, L, 4] y, float[N, 2, t, 4] nk, float[N, 2, t, 4] nv)
        <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, float none = {{0.0}}> {{
        qs = Shape(q)  l = Gather<axis = 0>(qs, two)  ps = Shape(pk)  p = Gather<axis = 0>(ps, two)  t1 = Add(p, l)
        at = Range(p, t1, one)  rows = Unsqueeze(at, last)  r = Range(zero, l, one)  all = Add(r, nothing)  {see}
        m = Where(see, none, low)  y, nk, nv = Attention(q, k, v, m, pk, pv) }}""",
        24,
    )
    held = {"low": np.float32(-np.inf), "nothing": np.zeros((1, 1), np.int64), "last": np.array([1])}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in held.items())
    inputs = [*inputs_of(3), *inputs_of(2)[1:]]
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]), atol=2e-6)
    assert "Where" in [n.op() for n in run_passes(read_model(model).graph)[0].nodes]
