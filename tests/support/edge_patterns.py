"""Graphs just beside what passes rewrite, for tests/codegen/test_edges_of_passes.py. A title begins with the pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .onnx_models import parse
from .pass_patterns import HALVES, INTS, NUMBERS, TURN


@dataclass
class Edge:
    """A graph in ONNX's notation; of the constants only those it names are added."""

    alone: str  # the pass in question
    text: str
    constants: dict[str, Any] = field(default_factory=dict)
    opset: int = 23

    def model(self) -> onnx.ModelProto:
        model = parse(f"g {self.text}", self.opset)
        used = {i for n in model.graph.node for i in n.input}
        held = {**NUMBERS, **{k: np.array(v) for k, v in INTS.items()}, **SCALARS, **self.constants}
        model.graph.initializer.extend(numpy_helper.from_array(np.asarray(held[k]), k) for k in sorted(used & {*held}))
        return model


SCALARS: dict[str, Any] = {f"n{i}": np.array(i) for i in range(4)} | {
    "none": np.array(-1),
    "least": np.float32(-3.4e38),
}
X4 = "(float[B, 2, L, 4] x, {t}) => (float[B, 2, L, 4] y)"
JOINED = "f = Concat<axis = -1>(t1, t1)  u = Unsqueeze(f, i1)  cos = Cos(u)  sin = Sin(u)"
PART = """(float[B, 2, L, {width}] x0, float[1, L, 2] t1{more}) => (float[B, 2, l, w] y) {{
    x = Slice(x0, {first}, {end}, i3)
    f = Concat<axis = -1>(t1, t1)  u = Unsqueeze(f, i1)  cos = Cos(u)  sin = Sin(u)  {halves}  p = Mul(x, cos)
    q = Mul(r, sin)  o = Add(p, q)  {rest} }}"""


def part(rest: str, width: int = 6, first: str = "i0", end: str = "i4", more: str = "") -> str:
    return PART.format(rest=rest, width=width, first=first, end=end, more=more, halves=HALVES)


def tables(*shape: int, size: int = 2) -> dict[str, Any]:
    """Constant cosines and sines whose halves are equal."""
    at = np.arange(np.prod(shape) * size, dtype=np.float32).reshape(*shape, size)
    return {n: np.concatenate([f(at), f(at)], -1).astype(np.float32) for n, f in (("cos", np.cos), ("sin", np.sin))}


WHOLE = {"cos": np.array([[[[1, 2, 1, 2]]]]), "sin": np.array([[[[3, 1, 3, 1]]]])}
ROTARY = {
    "whole numbers": Edge("rotary", f"(int64[B, 2, L, 4] x) => (int64[B, 2, L, 4] y) {{ {HALVES}  {TURN} }}", WHOLE),
    "three parts": Edge("rotary", part("b = Slice(x0, i4, far, i3)  y = Concat<axis = 3>(o, b, b)")),
    "parts joined along the length": Edge("rotary", part("b = Slice(x0, i4, far, i3)  y = Concat<axis = 2>(o, b)", 8)),
    "the rest of another tensor": Edge(
        "rotary", part("b = Slice(x1, i4, far, i3)  y = Concat<axis = 3>(o, b)", more=", float[B, 2, L, 6] x1"),
    ),
    "the end of the rotated part again": Edge(
        "rotary", part("b = Slice(x0, i4, far, i3)  y = Concat<axis = 3>(o, b)", first="i2", end="far"),
    ),
    "a rest with a gap before it": Edge(
        "rotary", part("b = Slice(x0, five, far, i3)  y = Concat<axis = 3>(o, b)", 8), {"five": np.array([5])},
    ),
    "a rest that ends early": Edge(
        "rotary", part("b = Slice(x0, i4, six6, i3)  y = Concat<axis = 3>(o, b)", 8), {"six6": np.array([6])},
    ),
    "a part of heads side by side": Edge(
        "rotary",
        """(float[B, L, 6] x0, float[B, L, 1] c, float[B, L, 1] s) => (float[B, L, 6] y) { x = Slice(x0, i0, i4, i2)
        b = Slice(x0, i4, far, i2)  o = RotaryEmbedding<num_heads = 2>(x, c, s)  y = Concat<axis = -1>(o, b) }""",
    ),
    "a part of a part": Edge(
        "rotary",
        """(float[B, 2, L, 6] x0, float[B, L, 1] c, float[B, L, 1] s) => (float[B, 2, L, 6] y) {
        x = Slice(x0, i0, i4, i3)  b = Slice(x0, i4, far, i3)
        o = RotaryEmbedding<rotary_embedding_dim = 2>(x, c, s)  y = Concat<axis = -1>(o, b) }""",
    ),
    "a part at positions": Edge(
        "rotary",
        """(float[B, 2, L, 6] x0, float[5, 2] c, float[5, 2] s, int64[B, L] at) => (float[B, 2, L, 6] y) {
        x = Slice(x0, i0, i4, i3)  b = Slice(x0, i4, far, i3)
        o = RotaryEmbedding<interleaved = 1>(x, c, s, at)  y = Concat<axis = -1>(o, b) }""",
    ),
    "every second element in place of a half": Edge(
        "rotary",
        f"""{X4.format(t="float[1, L, 2] t1")} {{ {JOINED}  lo = Slice(x, i0, far, i3, i2)  hi = Slice(x, i2, far, i3)
        m = Neg(hi)  r = Concat<axis = -1>(m, lo)  {TURN} }}""",
    ),
    "halves that are three columns": Edge(
        "rotary",
        f"""{X4.format(t="float[1, L, 2] t1")} {{ {JOINED}  lo = Slice(x, i0, i1, i3)  hi = Slice(x, i1, far, i3)
        m = Neg(hi)  r = Concat<axis = -1>(m, lo)  {TURN} }}""",
    ),
    "tables of two angles that get two axes": Edge(
        "rotary",
        f"""{X4.format(t="float[L, 2] t1, float[L, 2] t2")} {{ f = Concat<axis = 1>(t1, t2)  c = Cos(f)  s = Sin(f)
        cos = Unsqueeze(c, i01)  sin = Unsqueeze(s, i01)  {HALVES}  {TURN} }}""",
        {"i01": np.array([0, 1])},
    ),
    "tables of one row that get two axes": Edge(
        "rotary",
        f"""{X4.format(t="float[1, 2] t1")} {{ f = Concat<axis = 1>(t1, t1)  c = Cos(f)  s = Sin(f)
        cos = Unsqueeze(c, i12)  sin = Unsqueeze(s, i12)  {HALVES}  {TURN} }}""",
        {"i12": np.array([1, 2])},
    ),
    "tables with a new last axis": Edge(
        "rotary",
        f"""(float[B, 2, 2, 2] x, float[1, 1, 1] t1) => (float[B, 2, 2, 2] y) {{ f = Concat<axis = 2>(t1, t1)
        c = Cos(f)  s = Sin(f)  cos = Unsqueeze(c, i3)  sin = Unsqueeze(s, i3)
        {HALVES.replace("i2", "i1")}  {TURN} }}""",
    ),
    "tables repeated along the length": Edge(
        "rotary",
        f"""(float[B, 2, 4, 4] x, float[1, 2, 4] t1) => (float[B, 2, 4, 4] y) {{ f = Concat<axis = 1>(t1, t1)
        cos = Cos(f)  sin = Sin(f)  {HALVES}  {TURN} }}""",
    ),
    "tables of a batch": Edge(
        "rotary",
        f"""(float[2, 2, 3, 4] x, float[2, 3, 2] t1) => (float[2, 2, 3, 4] y) {{ f = Concat<axis = 2>(t1, t1)
        cos = Cos(f)  sin = Sin(f)  {HALVES}  {TURN} }}""",
    ),
    "columns of tables at positions": Edge(
        "rotary",
        f"""(float[B, 2, 3, 4] x, int64[4] at) => (float[B, 2, 3, 4] y) {{ cos = Gather<axis = 1>(c0, at)
        sin = Gather<axis = 1>(s0, at)  {HALVES}  {TURN} }}""",
        {f"{k[0]}0": v for k, v in tables(3).items()},
    ),
    "elements of tables at positions": Edge(
        "rotary",
        f"""(float[B, 2, 3, 4] x, int64[3, 4] at) => (float[B, 2, 3, 4] y) {{ cos = Gather(c0, at)
        sin = Gather(s0, at)  {HALVES}  {TURN} }}""",
        {f"{k[0]}0": v for k, v in tables(size=3).items()},
    ),
    "tables at positions counted from behind": Edge(
        "rotary",
        f"""(float[B, 2, L, 4] x, int64[L] at) => (float[B, 2, L, 4] y) {{ cos = Gather<axis = -2>(c0, at)
        sin = Gather<axis = -2>(s0, at)  {HALVES}  {TURN} }}""",
        {f"{k[0]}0": v for k, v in tables(3).items()},
    ),
    "tables of words": Edge(
        "rotary",
        f"""(float[B, 2, L, 4] x, int64[L] at) => (float[B, 2, L, 4] y) {{ c = Gather(c0, at)  s = Gather(s0, at)
        cos = Cast<to = 1>(c)  sin = Cast<to = 1>(s)  {HALVES}  {TURN} }}""",
        {k: np.array([["1", "2", "1", "2"]] * 3, dtype=object) for k in ("c0", "s0")},
    ),
    "tables of two columns": Edge(
        "rotary", f"(float[B, 2, 3, 2] x) => (float[B, 2, 3, 2] y) {{ {HALVES.replace('i2', 'i1')}  {TURN} }}",
        tables(1, 1, 3, size=1),
    ),
    "no columns": Edge(
        "rotary", f"(float[B, 2, 3, 0] x) => (float[B, 2, 3, 0] y) {{ {HALVES.replace('i2', 'i0')}  {TURN} }}",
        tables(1, 1, 3, size=0),
    ),
    "tables of zeros for five columns": Edge(
        "rotary", f"(float[B, 2, 3, 5] x) => (float[B, 2, 3, 5] y) {{ {HALVES}  {TURN} }}",
        {k: np.zeros((1, 1, 3, 5), np.float32) for k in ("cos", "sin")},
    ),
    "tables of one column": Edge(
        "rotary", f"(float[B, 2, 3, 4] x) => (float[B, 2, 3, 4] y) {{ {HALVES}  {TURN} }}",
        {k: np.zeros((1, 1, 3, 1), np.float32) for k in ("cos", "sin")},
    ),
}  # fmt: skip
QKV = "(float[N, {h}, S, 4] q, float[N, 2, T, 4] k1, float[N, 2, T, 4] v{more}) => (float[N, {h}, S, 4] y)"
KEYS = "kt = Transpose<perm = [0, 1, 3, 2]>(k1)  a = MatMul(q, kt)"
END = "w = Softmax<axis = -1>(s)  y = MatMul(w, v)"
SQUARE = "(float[N, 2, 3, 4] q, float[N, 2, 3, 4] k1, float[N, 2, 3, 4] v) => (float[N, 2, 3, 4] y)"
SEEN = {"seen": np.tril(np.ones((5, 5), bool))}
CUT = """{{ h = Shape<start = 2, end = 3>(q)  t1 = Slice(seen, i0, h, i0)  m = Slice(t1, i0, h, i1)  {keys}
    s = Where(m, a, least)  {end} }}"""
SAME = "(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v) => (float[N, 2, S, 4] y)"
ATTENTION = {
    "a mask of one axis": Edge(
        "attention", f"{QKV.format(h=2, more=', float[T] m')} {{ {KEYS}  s = Add(a, m)  {END} }}",
    ),
    "a mask of none": Edge("attention", f"{QKV.format(h=2, more=', float m')} {{ {KEYS}  s = Add(a, m)  {END} }}"),
    "a mask of whole numbers that selects": Edge(
        "attention", f"{QKV.format(h=2, more=', bool[T] m')} {{ {KEYS}  s = Where(m, a, low)  {END} }}",
    ),
    "a condition that is one bool": Edge(
        "attention", f"{SQUARE} {{ {KEYS}  s = Where(yes, a, least)  {END} }}", {"yes": np.array(True)},
    ),
    "a table of nine that shows the first key": Edge(
        "attention", f"{SQUARE} {{ {KEYS}  s = Where(seen, a, least)  {END} }}",
        {"seen": np.tril(np.ones((3, 3), bool))},
    ),
    "a table that hides the first key once": Edge(
        "attention", f"{SQUARE} {{ {KEYS}  s = Where(seen, a, least)  {END} }}",
        {"seen": np.triu(np.ones((3, 3), bool))},
    ),
    "a table of what is hidden": Edge(
        "attention", f"{SQUARE} {{ {KEYS}  s = Where(seen, least, a)  {END} }}",
        {"seen": np.triu(np.ones((3, 3), bool), 1)},
    ),
    "a table of no keys": Edge(
        "attention",
        f"""(float[N, 2, 3, 4] q, float[N, 2, 0, 4] k1, float[N, 2, 0, 4] v) => (float[N, 2, 3, 4] y) {{ {KEYS}
        s = Where(seen, a, least)  {END} }}""",
        {"seen": np.zeros((3, 0), bool)},
    ),
    "a table from its second key on": Edge(
        "attention",
        f"{SQUARE} {{ {KEYS}  m = Slice(seen, i1, i4, i1)  n = Slice(m, i0, i3, i0)  s = Where(n, a, least) {END} }}",
        SEEN,
    ),
    "every second key of a table": Edge(
        "attention",
        f"""{SQUARE} {{ {KEYS}  m = Slice(seen, i0, far, i1, i2)  n = Slice(m, i2, far, i0)  s = Where(n, a, least)
        {END} }}""",
        SEEN,
    ),
    **{
        f"an open table of keys {what}": Edge(
            "attention",
            f"""(float[N, 2, S, 4] q, float[N, 2, 3, 4] k1, float[N, 2, 3, 4] v) => (float[N, 2, S, 4] y) {{
            h = Shape<start = 2, end = 3>(q)  t1 = Slice(seen, i0, h, i0)  m = Slice(t1, {cut})  {KEYS}
            s = Where(m, a, least)  {END} }}""",
            SEEN,
        )
        for what, cut in (("from the first on", "i0, i3, i1"), ("1 to 3", "i1, i4, i1"), ("0, 2, 4", "i0, far, i1, i2"))
    },
    "an open table of one key": Edge(
        "attention", f"{SAME} {CUT.format(keys=KEYS, end=END)}", {"seen": np.ones((5, 1), bool)},
    ),
    "a score of -3e38": Edge(
        "attention", f"{SQUARE.replace('float', 'double')} {{ {KEYS}  s = Where(seen, a, edge)  {END} }}",
        {"seen": np.tril(np.ones((3, 3), bool)), "edge": np.float64(-3e38)},
    ),
    "a score of hardly more than -3e38": Edge(
        "attention", f"{SQUARE.replace('float', 'double')} {{ {KEYS}  s = Where(seen, a, edge)  {END} }}",
        {"seen": np.tril(np.ones((3, 3), bool)), "edge": np.float64(-2.999e38)},
    ),
    "dropout that drops nothing": Edge(
        "attention", f"{SQUARE} {{ {KEYS}  w = Softmax<axis = -1>(a)  d = Dropout(w, zero, on)  y = MatMul(d, v) }}",
        {"on": np.array(True)},
    ),
    "keys of one head and values of two": Edge(
        "attention",
        """(float[N, 4, S, 4] q, float[N, 1, T, 4] k1, float[N, 2, T, 4] v) => (float[N, 4, S, 4] y) {
        k2 = Expand(k1, four)  u = Unsqueeze(v, i2)  e2 = Expand(u, wide)  v2 = Reshape(e2, flat)
        y = Attention(q, k2, v2) }""",
        {"four": np.array([1, 4, 1, 1]), "wide": np.array([1, 1, 2, 1, 1]), "flat": np.array([0, 4, -1, 4])},
    ),
    **{
        f"repeated keys with {what}": Edge(
            "attention",
            f"""(float[2, 2, 3, 4] q, float[2, 1, 3, 4] k1, float[2, 1, 3, 4] v, float[2, 2, 2, 4] pk,
            float[2, 2, 2, 4] pv) => (float[2, 2, 3, 4] y{", float[a, b, c, d] z" if ", z" in attend else ""}) {{
            k2 = Expand(k1, heads)  v2 = Expand(v, heads)  {attend} }}""",
            {"heads": np.array([1, 2, 1, 1])},
        )
        for what, attend in {
            "a past": 'y = Attention(q, k2, v2, "", pk, pv)',
            "keys that are read": "y, z = Attention(q, k2, v2)",
            "a number of heads": "y = Attention<q_num_heads = 2, kv_num_heads = 2>(q, k2, v2)",
            "nothing else": "y = Attention(q, k2, v2)",
        }.items()
    },
    "keys of another batch repeated": Edge(
        "attention",
        """(float[2, 2, 3, 4] q, float[1, 1, 3, 4] k1, float[1, 1, 3, 4] v) => (float[2, 2, 3, 4] y) {
        k2 = Expand(k1, heads)  v2 = Expand(v, heads)  y = Attention(q, k2, v2) }""",
        {"heads": np.array([2, 2, 1, 1])},
    ),
    "keys without an axis of heads": Edge(
        "attention",
        """(float[1, 2, 3, 4] q, float[3, 4] k1, float[3, 4] v) => (float[1, 2, 3, 4] y) {
        k2 = Expand(k1, heads)  v2 = Expand(v, heads)  y = Attention(q, k2, v2) }""",
        {"heads": np.array([1, 2, 1, 1])},
    ),
    "keys of no axis": Edge(
        "attention",
        """(float[1, 2, 3, 4] q, float k1, float[4] v) => (float[1, 2, 3, 4] y) {
        k2 = Expand(k1, heads)  v2 = Expand(v, heads)  y = Attention(q, k2, v2) }""",
        {"heads": np.array([1, 2, 3, 4])},
    ),
}  # fmt: skip
APART = """(float[{lead}, 4] q, float[{lead}, 4] k1, float[{lead}, 4] v{more}) => (float[{lead}, 4] y) {{
    q1 = Reshape(q, split)  q2 = Transpose<perm = [0, 2, 1, 3]>(q1)  k2 = Reshape(k1, split)
    k3 = Transpose<perm = [0, 2, 1, 3]>(k2)  v1 = Reshape(v, split)  v2 = Transpose<perm = [0, 2, 1, 3]>(v1)  {attend}
    p = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(p, join) }}"""
TWO = {"split": np.array([0, 0, 2, 2]), "join": np.array([0, 0, 4])}
PARTS = """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) {{ a = MatMul(x, w)  r = Reshape(a, shape)
    t1 = Transpose<perm = [2, 0, 1, 3]>(r)  p = {one}  q = {two}  y = Exp(p)  z = Exp(q) }}"""


def parts(one: str, two: str, count: int = 2) -> Edge:
    random = np.random.default_rng(2)
    constants = {"w": random.standard_normal((4, 2 * count)).astype(np.float32), "shape": np.array([0, 0, count, 2])}
    return Edge("packed", PARTS.format(one=one, two=two), {**constants, "last0": np.array(count - 1)})


HEADS = {
    "heads with a past": Edge(
        "heads",
        APART.format(
            lead="B, L",
            more=", float[B, 2, P, 2] pk, float[B, 2, P, 2] pv",
            attend='o = Attention(q2, k3, v2, "", pk, pv)',
        ),
        TWO,
    ),
    "heads whose keys are read": Edge(
        "heads",
        APART.format(lead="B, L", more="", attend="o, nk = Attention(q2, k3, v2)").replace(
            "4] y)", "4] y, float[a, b, c, d] nk)"
        ),
        TWO,
    ),
    "heads rotated at positions": Edge(
        "heads",
        APART.format(
            lead="B, L",
            more=", float[5, 1] c, float[5, 1] s, int64[B, L] at",
            attend="q3 = RotaryEmbedding(q2, c, s, at)  o = Attention(q3, k3, v2)",
        ),
        TWO,
    ),
    "heads rotated": Edge(
        "heads",
        APART.format(
            lead="B, L",
            more=", float[B, L, 1] c, float[B, L, 1] s",
            attend="q3 = RotaryEmbedding(q2, c, s)  o = Attention(q3, k3, v2)",
        ),
        TWO,
    ),
    "heads of other batches": Edge(
        "heads", APART.format(lead="2, 6", more="", attend="o = Attention(q2, k3, v2)"),
        {"split": np.array([3, 4, 2, 2]), "join": np.array([2, 6, 4])},
    ),
    "parts: eight": parts("Gather<axis = 0>(t1, n0)", "Gather<axis = 0>(t1, last0)", 8),
    "parts: nine": parts("Gather<axis = 0>(t1, n0)", "Gather<axis = 0>(t1, last0)", 9),
    "parts: one": parts("Gather<axis = 0>(t1, n0)", "Gather<axis = 0>(t1, last0)", 1),
    "parts: from behind": parts("Gather<axis = 0>(t1, n0)", "Gather<axis = 0>(t1, none)"),
    "parts: behind the end": parts("Slice(t1, i0, i1, i0)", "Slice(t1, i2, i3, i0)"),
    "parts: far behind the end": parts("Slice(t1, i0, i1, i0)", "Slice(t1, i3, i4, i0)"),
    "parts: both at once": parts("Slice(t1, i0, i2, i0)", "Slice(t1, i1, i2, i0)"),
    "parts: along another axis": parts("Gather<axis = 1>(t1, n0)", "Gather<axis = 1>(t1, n1)"),
    "parts: a list of one": parts("Gather<axis = 0>(t1, i0)", "Gather<axis = 0>(t1, i1)"),
    "parts: backwards": parts("Slice(t1, i1, i0, i0, last)", "Slice(t1, i0, i1, i0)"),
    "parts of a split": Edge(
        "packed",
        """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) { a = MatMul(x, w)  r = Reshape(a, shape)
        t1 = Transpose<perm = [2, 0, 1, 3]>(r)  p, q = Split<axis = 0, num_outputs = 2>(t1)
        y = Exp(p)  z = Exp(q) }""",
        {"w": np.arange(16, dtype=np.float32).reshape(4, 4) / 9, "shape": np.array([0, 0, 2, 2])},
    ),
    "parts of a split of two each": Edge(
        "packed",
        """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) { a = MatMul(x, w)  r = Reshape(a, shape)
        t1 = Transpose<perm = [2, 0, 1, 3]>(r)  p, q = Split<axis = 0, num_outputs = 2>(t1)
        y = Exp(p)  z = Exp(q) }""",
        {"w": np.arange(16, dtype=np.float32).reshape(4, 4) / 9, "shape": np.array([0, 0, 4, 1])},
    ),
    "parts of heads": Edge(
        "packed",
        """(float[2, 3, 4] x) => (float[2, 2, 3, 2] y, float[2, 2, 3, 2] z) { a = MatMul(x, w)  r = Reshape(a, shape)
        t1 = Transpose<perm = [2, 0, 3, 1, 4]>(r)  p = Gather<axis = 0>(t1, n0)  q = Gather<axis = 0>(t1, n1)
        y = Exp(p)  z = Exp(q) }""",
        {"w": np.arange(32, dtype=np.float32).reshape(4, 8) / 9, "shape": np.array([0, 0, 2, 2, 2])},
    ),
    "parts of heads of open sizes": Edge(
        "packed",
        """(float[B, L, 4] x) => (float[B, c, L, d] y, float[B, c, L, d] z) { a = MatMul(x, w)  r = Reshape(a, shape)
        t1 = Transpose<perm = [2, 0, 3, 1, 4]>(r)  p = Gather<axis = 0>(t1, n0)  q = Gather<axis = 0>(t1, n1)
        y = Exp(p)  z = Exp(q) }""",
        {"w": np.arange(32, dtype=np.float32).reshape(4, 8) / 9, "shape": np.array([0, 0, 2, 2, 2])},
    ),
    "a permutation of no axis": Edge(
        "packed", "(float x, float[4, 2] z) => (float y, float[1, 2] w) { y = Transpose(x)  w = Slice(z, i0, i1) }",
    ),
}  # fmt: skip
EDGES = {
    **{f"rotary: {name}": edge for name, edge in ROTARY.items()},
    **{f"attention: {name}": edge for name, edge in ATTENTION.items()},
    **{f"{edge.alone}: {name}": edge for name, edge in HEADS.items()},
}
