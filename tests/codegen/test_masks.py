"""Attention masks: derived facts about their elements hold, and attention without a removed mask is the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest
from emberlet.codegen.generation import translate
from emberlet.codegen.ir.graph import Graph
from emberlet.codegen.passes import PASSES, run_passes
from emberlet.codegen.passes.masks import formulas
from emberlet.codegen.passes.masks.formulas import All, Compared, Element, Negated, Number, Part, Term
from emberlet.codegen.passes.masks.index_terms import Terms
from emberlet.codegen.passes.rewriting import Walk, rewrite
from emberlet.codegen.reader import read_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import assert_same, generated, parse
from support.rows import every

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
SIZES = {"A": 3, "B": 4}


# -- terms ------------------------------------------------------------------------------------------------------------


@dataclass
class Builder:
    """Nodes of integers and bools, each with the value it has."""

    draw: st.DrawFn
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, value: object) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, np.int64)
        return name

    def node(self, op: str, inputs: list[str], value: np.ndarray, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        self.values[name] = value
        return name

    def pick(self, kind: str = "i") -> str | None:
        found = sorted(n for n, v in self.values.items() if v.dtype.kind == kind)
        return self.draw(st.sampled_from(found)) if found else None

    def start(self) -> None:
        """Ranges up to the sizes of the input, and its own bools."""
        self.values["m"] = np.random.default_rng(0).integers(0, 2, tuple(SIZES.values())).astype(bool)
        shape = self.node("Shape", ["m"], np.array(list(SIZES.values())))
        for i, n in enumerate(SIZES.values()):
            size = self.node("Gather", [shape, self.scalar(i)], np.array(n), axis=0)
            self.node("Range", [self.scalar(0), size, self.scalar(1)], np.arange(n))
            del self.values[size]
        del self.values[shape]

    def scalar(self, n: int) -> str:
        name = self.constant(n)
        self.constants[name] = np.array(n, np.int64)
        return name

    def step(self) -> None:
        kind = self.draw(st.sampled_from(KINDS))
        x = self.pick("b" if kind in ("logic", "not", "move bools", "flatten") else "i")
        if x is None:
            return
        v = self.values[x]
        if kind in ("move", "move bools"):
            self.move(x, v)
        elif kind == "number":
            n = self.draw(st.integers(-2, 3))
            op = self.draw(st.sampled_from(["Add", "Sub", "Mul"]))
            ufunc = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
            self.node(op, [x, self.scalar(n)], ufunc(v, n))
        elif kind in ("pair", "compare", "logic"):
            self.pair(x, v, kind)
        elif kind == "not":
            self.node("Not", [x], ~v)
        elif kind == "slice" and v.ndim and v.shape[0] > 1:
            start = self.draw(st.integers(0, v.shape[0] - 1))
            ends = [self.constant([start]), self.constant([1 << 40]), self.constant([0])]
            self.node("Slice", [x, *ends], v[start:])
        elif kind == "shift" and v.ndim and v.shape[-1] > 1:
            axis = self.constant([v.ndim - 1])
            first = self.node("Slice", [x, self.constant([0]), self.constant([1]), axis], v[..., :1])
            less = self.node("Sub", [first, self.scalar(1)], v[..., :1] - 1)
            self.node("Concat", [less, x], np.concatenate([v[..., :1] - 1, v], -1), axis=-1)
        elif kind == "sum":
            if v.ndim:
                self.node("CumSum", [x, self.scalar(v.ndim - 1)], np.cumsum(v, -1))
        elif kind == "gather":
            self.gather(x, v)
        elif kind == "flatten" and v.ndim == 2:
            self.node("Reshape", [x, self.constant([-1])], v.reshape(-1))

    def move(self, x: str, v: np.ndarray) -> None:
        axis = self.draw(st.integers(0, v.ndim))
        if self.draw(st.booleans()) and v.ndim < 4:
            self.node("Unsqueeze", [x, self.constant([axis])], np.expand_dims(v, axis))
        elif v.ndim > 1:
            perm = self.draw(st.permutations(range(v.ndim)))
            self.node("Transpose", [x], v.transpose(perm), perm=list(perm))

    def pair(self, x: str, v: np.ndarray, kind: str) -> None:
        y = self.pick(v.dtype.kind)
        assert y is not None
        try:
            np.broadcast_shapes(v.shape, self.values[y].shape)
        except ValueError:
            return
        ops = {
            "pair": {"Add": np.add, "Sub": np.subtract},
            "logic": {"And": np.logical_and, "Or": np.logical_or},
            "compare": {
                "Less": np.less,
                "LessOrEqual": np.less_equal,
                "Greater": np.greater,
                "GreaterOrEqual": np.greater_equal,
                "Equal": np.equal,
            },
        }[kind]
        op = self.draw(st.sampled_from(sorted(ops)))
        self.node(op, [x, y], ops[op](v, self.values[y]))

    def gather(self, x: str, v: np.ndarray) -> None:
        data = self.draw(st.sampled_from(sorted(self.values)))
        d = self.values[data]
        if d.ndim and v.size and v.min() >= 0 and v.max() < d.shape[0]:
            self.node("Gather", [data, x], d[v], axis=0)


KINDS = ["move", "move", "move bools", "number", "pair", "compare", "compare", "logic", "not", "slice", "shift", "sum",
         "gather", "flatten"]  # fmt: skip


@st.composite
def graphs(draw: st.DrawFn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    builder = Builder(draw)
    builder.start()
    for _ in range(draw(st.integers(1, 12))):
        builder.step()
    graph = helper.make_graph(
        builder.nodes,
        "g",
        [helper.make_tensor_value_info("m", TensorProto.BOOL, list(SIZES))],
        [
            helper.make_tensor_value_info(n, TensorProto.BOOL if v.dtype.kind == "b" else TensorProto.INT64, None)
            for n, v in builder.values.items()
            if n != "m"
        ],
        [numpy_helper.from_array(v, k) for k, v in builder.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, builder.values


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


def named_sizes(graph: Graph, arrays: dict[str, np.ndarray]) -> dict[str, int]:
    """The names and values of all sizes."""
    out = dict(SIZES)
    for node in graph.walk():
        for o in node.outputs:
            shape = getattr(o.type, "shape", None)
            if o.name in arrays and shape is not None:
                out |= {d: n for d, n in zip(shape, arrays[o.name].shape, strict=True) if isinstance(d, str)}
    return out


@SLOW
@given(graphs())
def test_terms_say_what_elements_are(case: tuple[onnx.ModelProto, dict[str, np.ndarray]]) -> None:
    model, arrays = case
    graph = PASSES["sizes"](read_model(model).graph)[0]
    sizes = named_sizes(graph, arrays)
    walks: list[Walk] = []
    rewrite(graph, lambda node, walk: walks.append(walk))
    terms = Terms(walks[0])
    for o in (o for node in graph.nodes for o in node.outputs if o.name in arrays):
        term, want = terms.of(o), arrays[o.name]
        for place in np.ndindex(want.shape) if term is not None else ():
            assert at(term, place, arrays, sizes) == want[place], (o.name, term)


def test_numbers_are_polynomials() -> None:
    i, n = formulas.index(0), formulas.size("n + 2")
    assert n is not None
    product = (i + formulas.constant(1)) * n - n
    assert product == i * n
    assert product.at([formulas.constant(3)]) == n.scaled(3)
    assert (product - i * n).value == 0


# -- attention --------------------------------------------------------------------------------------------------------

HEAD = """g (float[N, 2, L, 4] q, float[N, 2, L, 4] k, float[N, 2, L, 4] v{more}) => (float[N, 2, L, 4] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, float none = {{0.0}}> {{
    qs = Shape(q)  l = Gather<axis = 0>(qs, two)  ks = Shape(k)  t = Gather<axis = 0>(ks, two)
    nn = Gather<axis = 0>(qs, zero)
    p = Range(zero, l, one)  r = Range(zero, t, one)
    rows = Unsqueeze(p, last)  {mask}
    m = Where(see, none, low)  kt = Transpose<perm = [0, 1, 3, 2]>(k)
    a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v)
}}"""


def model_of(mask: str, more: str = "", low: float = -3.4e38) -> onnx.ModelProto:
    model = parse(HEAD.format(mask=mask, more=more), 21)
    constants = {
        "last": np.array([1]),
        "minus": np.array([-1]),
        "batch": np.array([1, 2, 3]),
        "three": np.int64(3),
        "low": np.float32(low),
        "half": np.float32(0.5),
        "heads": np.array([1, 2]),
    }
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in constants.items())
    return model


def inputs_of(length: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((3, 2, length, 4)).astype(np.float32) for _ in range(3)]


def source_of(model: onnx.ModelProto, passes: list[str] | None = None) -> str:
    return translate(model, "net", passes=passes)[1].source


CAUSAL = "see = LessOrEqual(r, rows)"
ALL = "x = Add(rows, r)  see = GreaterOrEqual(x, zero)"
WINDOW = "b1 = LessOrEqual(r, rows)  d = Sub(rows, r)  b2 = Less(d, three)  see = And(b1, b2)"
NEXT = "up = Add(rows, one)  see = Less(r, up)"


@pytest.mark.parametrize("low", [-3.4e38, -np.inf])
@pytest.mark.parametrize(
    ("mask", "said"),
    [(CAUSAL, "is_causal=True"), (NEXT, "is_causal=True"), (ALL, ""), (WINDOW, "is_causal=True, window=(2, None)")],
)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_mask_of_positions_is_an_option(mask: str, said: str, low: float, length: int) -> None:
    model = model_of(mask, low=low)
    source = source_of(model)
    assert "F.attention(" in source and said in source and "F.where" not in source
    assert ("is_causal" in source) == bool(said)
    inputs = inputs_of(length)
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]), atol=2e-6)
    assert "F.where" in source_of(model, [name for name in PASSES if name != "masks"])


PADDING = """bs = Range(zero, nn, one)  b1 = Unsqueeze(bs, batch)  flat = Reshape(pad, minus)  pl = Mul(b1, l)
    at = Add(pl, r)  got = Gather<axis = 0>(flat, at)  c1 = LessOrEqual(r, rows)  see = And(c1, got)"""


def test_a_padding_mask_that_is_gathered_is_read_as_it_is() -> None:
    """A query may see no key here, so the mask is kept, with one line per condition."""
    model = model_of(PADDING, ", bool[N, L] pad")
    source = source_of(model)
    assert "F.take(" not in source and "F.gather" not in source and "is_causal" not in source
    assert "F.logical_and(" in source
    pad = np.ones((3, 5), bool)
    pad[1, :2] = False
    pad[2] = False
    inputs = [*inputs_of(5), pad]
    assert_same(generated(model, inputs), generated(model, inputs, passes=[]), atol=2e-6)


def test_masks_are_worked_out_in_graphs_with_passes_alone() -> None:
    graph = run_passes(read_model(model_of(CAUSAL)).graph)[0]
    assert [n.op() for n in graph.nodes] == ["Attention"]


# -- one operator at a time -------------------------------------------------------------------------------------------

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
