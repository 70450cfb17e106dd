"""Graphs just beside the masks, gathers, shapes and activations that passes rewrite, as those of edge_patterns.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .edge_patterns import SCALARS, Edge
from .more_pass_patterns import ADDED, BIAS, LEAST, LENGTHS

I12 = {"i12": np.array([1, 2]), "i01": np.array([0, 1])}
HEAD = """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v{more}) => (float[N, 2, S, 4] y) {{
    qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  t1 = Gather<axis = 0>(qs, n0)  p1 = Range(n0, l, n1)
    rows = Unsqueeze(p1, i1)  d1 = Sub(rows, p1)  {see} }}"""
ATTEND = "m = Where(see, zero, low)  y = Attention(q, k1, v, m)"
GATHERED = """bs = Range(n0, t1, n1)  b1 = Unsqueeze(bs, i1)  nb = Unsqueeze(t1, i0)  lb = Unsqueeze(l, i0)
    whole = Concat<axis = 0>(nb, lb)  b2 = Expand(b1, whole)  p2 = Expand(p1, whole)  b3 = Unsqueeze(b2, i2)
    p3 = Unsqueeze(p2, i2)  {at}  got = GatherND(pad, at)  g4 = Unsqueeze(got, i12)  {c}  see = And(c1, g4)
    m = Where(see, {zero}, least)  y = Attention(q, k1, v, m)"""


def beside(c: str, pad: str = "N, S", zero: str = "zero", at: str = "b3, p3", more: str = "") -> Edge:
    """A mask that is gathered, and a condition c1 on positions."""
    see = GATHERED.format(c=c, zero=zero, at=f"at = Concat<axis = -1>({at})")
    return Edge("masks", HEAD.format(more=f", bool[{pad}] pad{more}", see=see), {**I12}, 24)


def positions(see: str, more: str = "", opset: int = 24) -> Edge:
    return Edge("masks", HEAD.format(more=more, see=see), I12, opset)


SMALL_Z = ", float[P] zs"
ZS = "sz = Shape(zs)  pz = Gather<axis = 0>(sz, n0)"
MASKS = {
    "two windows": positions(
        f"a = LessOrEqual(p1, rows)  b = Less(d1, n2)  c = Less(d1, n3)  e2 = And(a, b)  see = And(e2, c)  {ATTEND}"
    ),
    "a window of no later key": positions(f"a = Less(d1, n1)  b = LessOrEqual(p1, rows)  see = And(a, b)  {ATTEND}"),
    "an equal position": positions(f"a = LessOrEqual(p1, rows)  b = Equal(p1, rows)  see = And(a, b)  {ATTEND}"),
    "a causal mask beside lengths": positions(
        """see = LessOrEqual(p1, rows)  m = Where(see, zero, low)  y = Attention(q, k1, v, m, "", "", n)""",
        ", int64[N] n",
    ),
    "a causal mask that is bools": positions("see = LessOrEqual(p1, rows)  y = Attention(q, k1, v, see)"),
    "a causal mask of four axes": positions(
        "c = LessOrEqual(p1, rows)  see = Unsqueeze(c, i01)  y = Attention(q, k1, v, see)"
    ),
    "a mask of one row": positions(f"see = GreaterOrEqual(p1, n0)  {ATTEND}"),
    "a mask of another last row": positions(f"see = LessOrEqual(p1, n1)  {ATTEND}"),
    "a mask of which nothing is known": positions(
        "m = Where(pad, zero, low)  y = Attention(q, k1, v, m)", ", bool[N, 1, S, S] pad"
    ),
    "fewer queries than keys": Edge(
        "masks",
        """(float[N, 2, 3, 4] q, float[N, 2, 5, 4] k1, float[N, 2, 5, 4] v) => (float[N, 2, 3, 4] y) {
        r = Range(n0, n3, n1)  c = Range(n0, five, n1)  rows = Unsqueeze(r, i1)  see = LessOrEqual(c, rows)
        m = Where(see, zero, low)  y = Attention(q, k1, v, m) }""",
        {"five": np.array(5)},
    ),
    "more queries than keys": Edge(
        "masks",
        """(float[N, 2, S, 4] q, float[N, 2, 1, 4] k1, float[N, 2, 1, 4] v) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  r = Range(n0, l, n1)  c = Range(n0, n1, n1)
        rows = Unsqueeze(r, i1)
        see = Less(c, rows)  m = Where(see, zero, least)  y = Attention(q, k1, v, m) }""",
    ),
    **{
        f"a mask of shape ({shape}) repeated to {whole}": positions(
            f"wide = Expand(mask, {whole})  y = Attention(q, k1, v, wide)", f", float[{shape}] mask"
        )
        for shape, whole in (
            ("1, 1, S, S", "qh"),
            ("N, 1, 1, S", "qh"),
            ("N, 1, S, 1", "qh"),
            ("S, S", "qh"),
            ("1, 2, S, S", "qh"),
        )
    },
    **{
        f"gathered padding where {before}  {c}": beside(f"{before}  {c}", more=more)
        for c, before, more in (
            ("c1 = LessOrEqual(p1, rows)", "", ""),
            ("c1 = Equal(p1, rows)", "", ""),
            ("c1 = LessOrEqual(pp, rows)", "pp = Mul(p1, n2)", ""),
            ("c1 = GreaterOrEqual(pr, n2)", "pr = Add(p1, rows)", ""),
            ("c1 = LessOrEqual(p1, rp)", f"{ZS}  rp = Add(rows, pz)", SMALL_Z),
            ("c1 = LessOrEqual(p1, rp)", f"{ZS}  p2z = Mul(pz, n2)  rp = Add(rows, p2z)", SMALL_Z),
            ("c1 = LessOrEqual(p1, rp)", f"{ZS}  p3z = Add(pz, n2)  rp = Add(rows, p3z)", SMALL_Z),
            ("c1 = LessOrEqual(p1, pz)", ZS, SMALL_Z),
            ("c1 = LessOrEqual(p1, n1)", "", ""),
            ("c1 = GreaterOrEqual(p1, n1)", "", ""),
            ("c1 = And(c2, c3)", "c2 = LessOrEqual(p1, rows)  c3 = LessOrEqual(d1, n1)", ""),
            ("c1 = Or(c2, c3)", "c2 = LessOrEqual(p1, rows)  c3 = LessOrEqual(d1, n1)", ""),
            ("c1 = Not(c2)", "c2 = LessOrEqual(rows, p1)", ""),
        )
    },
    "gathered padding, turned": beside("c1 = LessOrEqual(p1, rows)", "S, N", at="p3, b3"),
    "gathered padding of other keys": beside("c1 = LessOrEqual(p1, rows)", "N, T"),
    "gathered padding of another batch": beside("c1 = LessOrEqual(p1, rows)", "B, S"),
    "gathered padding and a bias": beside("c1 = LessOrEqual(p1, rows)", zero="bias", more=", float[S, S] bias"),
    "gathered padding and a number": beside("c1 = LessOrEqual(p1, rows)", zero="one"),
}  # fmt: skip
for name, edge in MASKS.items():
    if "repeated to" in name:
        edge.text = edge.text.replace("wide =", "qh = Concat<axis = 0>(qn, qt, ql, ql)  wide =").replace(
            "rows =", "ql = Unsqueeze(l, i0)  qn = Unsqueeze(t1, i0)  qt = Identity(i2)  rows ="
        )


def lengths(see: str, n: str = "int64[N] n", hidden: str = ADDED, **constants: object) -> Edge:
    text = LENGTHS.format(n=n, see=f"{see}  see = Unsqueeze(c, i12)", hidden=hidden)
    return Edge("lengths", text.replace("K, 4", "T, 4"), {**SCALARS, **I12, **constants}, 23)


def attended(text: str, more: str = "", opset: int = 24) -> Edge:
    """A mask of lengths of an attention that is one node."""
    see = "u = Unsqueeze(n, i1)  c = Less(p1, u)  see = Unsqueeze(c, i12)  m = Where(see, zero, low)"
    return Edge("lengths", HEAD.format(more=f", int64[N] n{more}", see=f"{see}  {text}"), I12, opset)


FINITE: dict[str, Any] = {"least": LEAST}
BELOW = "u = Unsqueeze(n3_, i1)  c = Less(r, u)"
LIMITED = {
    "an attention": attended("y = Attention(q, k1, v, m)"),
    "a causal attention": attended("y = Attention<is_causal = 1>(q, k1, v, m)"),
    "an attention with a past": attended(
        "y = Attention(q, k1, v, m, pk, pv)", ", float[N, 2, 0, 4] pk, float[N, 2, 0, 4] pv"
    ),
    "an attention with lengths": attended('y = Attention(q, k1, v, m, "", "", n)'),
    "bools": attended("y = Attention(q, k1, v, see)"),
    "bools that are negated": attended("o = Not(see)  y = Attention(q, k1, v, o)"),
    "a length for all": lengths("r9 = Unsqueeze(r, i0)  u = Unsqueeze(n, i1)  c = Less(r9, u)", "int64[1] n"),
    "one key more": lengths("u = Unsqueeze(n, i1)  c = LessOrEqual(r, u)"),
    "one key less": lengths("u = Unsqueeze(n, i1)  r1 = Add(r, n1)  c = Less(r1, u)"),
    "two keys less": lengths("u = Unsqueeze(n, i1)  r1 = Add(r, n2)  c = LessOrEqual(r1, u)"),
    "the keys behind": lengths("u = Unsqueeze(n, i1)  c = Greater(r, u)"),
    "not the keys behind": lengths("u = Unsqueeze(n, i1)  o = GreaterOrEqual(r, u)  c = Not(o)"),
    "not the keys before": lengths("u = Unsqueeze(n, i1)  o = Less(r, u)  c = Not(o)"),
    "lengths of 8 bits": lengths("w64 = Cast<to = 7>(n)  u = Unsqueeze(w64, i1)  c = Less(r, u)", "uint8[N] n"),
    "lengths of fewer bits": lengths(
        "w32 = Cast<to = 6>(n)  u = Unsqueeze(w32, i1)  r32 = Cast<to = 6>(r)  c = Less(r32, u)"
    ),
    "lengths without a sign": lengths("w64 = Cast<to = 7>(n)  u = Unsqueeze(w64, i1)  c = Less(r, u)", "uint64[N] n"),
    "lengths of floats": lengths("w64 = Cast<to = 7>(n)  u = Unsqueeze(w64, i1)  c = Less(r, u)", "float[N] n"),
    "lengths of bools": lengths("w64 = Cast<to = 7>(n)  u = Unsqueeze(w64, i1)  c = Less(r, u)", "bool[N] n"),
    "a column of lengths": lengths("c = Less(r, n)", "int64[N, 1] n"),
    "a matrix of lengths": lengths("c = Less(r, n)", "int64[N, T] n"),
    **{
        f"a finite number where {at_least}": lengths(f"n3_ = {at_least}  {BELOW}", hidden=BIAS, **FINITE)
        for at_least in (
            "Max(n, n1)",
            "Max(n, n0)",
            "Max(n0, n, n2)",
            "Clip(n, n1)",
            "Clip(n, n0)",
            "Clip(n, n2)",
            "Identity(n)",
            'Clip(n, "", n2)',
            "Abs(n)",
            "Add(n, n1)",
        )
    },
    **{
        f"a bias of {low} times": lengths(f"n3_ = Max(n, n1)  {BELOW}", hidden=BIAS, least=np.float32(low))
        for low in (-1e4, -9999.0, 1e9)
    },
    "a bias of what is seen": lengths(f"n3_ = Max(n, n1)  {BELOW}", hidden=BIAS.replace("Mul(g1", "Mul(f"), **FINITE),
    "a bias of two less what is seen": lengths(
        f"n3_ = Max(n, n1)  {BELOW}", hidden=BIAS.replace("one,", "two,"), **FINITE
    ),
    "a bias of numbers": lengths(
        f"n3_ = Max(n, n1)  {BELOW}",
        hidden=BIAS.replace("f = Cast<to = 1>(see)", "w6 = Cast<to = 6>(see)  f = Cast<to = 1>(w6)"),
        **FINITE,
    ),
    "a number where a key is hidden": lengths(
        "u = Unsqueeze(n, i1)  c = Less(r, u)", hidden=ADDED.replace("zero", "one")
    ),
}
ROWS = "(float[3, 3, 3] x, int64[4, 3] rows{more}) => (float[a] z{out}) {{ {nodes} }}"


def columns(nodes: str, more: str = "", out: str = "", **constants: object) -> Edge:
    return Edge("gathered", ROWS.format(nodes=nodes, more=more, out=out), {**SCALARS, **constants})


def read(*picks: str, axis: int = 1) -> str:
    """Columns of `rows`, each with a new axis: c0, c1, …"""
    return "  ".join(
        f"g{i} = Gather<axis = {axis}>(rows, {pick})  c{i} = Unsqueeze(g{i}, last)" for i, pick in enumerate(picks)
    )


JOIN = "at = Concat<axis = 1>({})  z = GatherND(x, at)"
GATHERS = {
    "all columns": columns(f"{read('n0', 'n1', 'n2')}  {JOIN.format('c0, c1, c2')}"),
    "all columns, read twice": columns(
        f"{read('n0', 'n1', 'n2')}  {JOIN.format('c0, c1, c2')}  y = Add(at, n1)", out=", int64[b, c] y"
    ),
    "one column": columns(f"{read('n1')}  {JOIN.format('c0')}"),
    "the first two": columns(f"{read('n0', 'n1')}  {JOIN.format('c0, c1')}"),
    "the last two": columns(f"{read('n1', 'n2')}  {JOIN.format('c0, c1')}"),
    "two in the other order": columns(f"{read('n2', 'n0')}  {JOIN.format('c0, c1')}"),
    "the same twice": columns(f"{read('n1', 'n1')}  {JOIN.format('c0, c1')}"),
    "at uneven places": columns(f"{read('n0', 'n2', 'n1')}  {JOIN.format('c0, c1, c2')}"),
    "one after the other": columns(f"{read('n0', 'n1')}  at = Concat<axis = 0>(c0, c1)  z = GatherND(x, at)"),
    "from behind": columns(f"{read('n0', 'none')}  {JOIN.format('c0, c1')}"),
    "rows": columns(f"{read('n0', 'n1', axis=0)}  {JOIN.format('c0, c1')}"),
    "with a list of one": columns(
        f"{read('i0', 'i1')}  k0 = Squeeze(c0, last)  at = Concat<axis = 2>(c0, c1)  z = GatherND(x, at)"
    ),
    "of two matrices": columns(
        f"{read('n0', 'n1')}  h = Gather<axis = 1>(others, n1)  d = Unsqueeze(h, last)  {JOIN.format('c0, d')}",
        ", int64[4, 3] others",
    ),
    "one that is not gathered": columns(f"{read('n0', 'n1')}  {JOIN.format('c0, other')}", ", int64[4, 1] other"),
    **{
        f"a permutation read {how}": columns(
            f"y = Transpose<perm = [{perm}]>(x)  at = Gather<axis = {axis}>({of}, picks)  z = GatherND(x, at)",
            ", int64[4, 4] four, int64[3, 3] square",
            ", float[b, c, d] y",
            picks=np.array(picks),
        )
        for how, perm, axis, of, picks in (
            ("in its order", "0, 2, 1", 1, "rows", [0, 2, 1]),
            ("in another order", "2, 1, 0", 1, "rows", [0, 2, 1]),
            ("round", "1, 2, 0", 1, "rows", [2, 0, 1]),
            ("round the other way", "1, 2, 0", 1, "rows", [1, 2, 0]),
            ("by a column twice", "0, 2, 1", 1, "rows", [0, 0, 1]),
            ("by three columns of four", "0, 2, 1", 1, "four", [0, 2, 1]),
            ("by rows", "0, 2, 1", 0, "square", [0, 2, 1]),
            ("by two columns", "0, 2, 1", 1, "rows", [1, 0]),
        )
    },
    **{
        name: Edge(
            "gathered",
            f"({kind}[2, 3] x, int64[1, 3] at) => ({kind}[2, 3] y) {{ g1 = GatherElements<axis = 1>(table, at)"
            f"  e1 = Expand(g1, {to})  y = Add(e1, x) }}",
            {"table": table, "to": np.array([2, 3]), "i1": np.array([1])},
        )
        for name, kind, to, table in (
            ("nine equal numbers", "int64", "to", np.full((1, 9), 3)),
            ("no equal numbers", "int64", "to", np.array([[3, 3, 4]])),
            ("equal floats", "float", "to", np.full((1, 9), 3, np.float32)),
            ("equal numbers, not wider", "int64", "i1", np.full((1, 9), 3)),
        )
    },
    "no numbers": Edge(
        "gathered",
        "(int64[2, 0] x, int64[1, 0] at) => (int64[2, 0] y) { g1 = GatherElements<axis = 1>(table, at)"
        "  e1 = Expand(g1, to)  y = Add(e1, x) }",
        {"table": np.zeros((1, 0), np.int64), "to": np.array([2, 0])},
    ),
}
X5 = "(float[N, 5] x{more}) => (float[N, 5] y) {{ {nodes} }}"
HARD = "a = Add(x, n3)  c = Clip(a, n0, i6)  m = Mul(x, c)  y = Div(m, i6)"
WHOLE = {
    "hard swish of whole numbers": Edge(
        "activations", f"(int64[N, 5] x) => (int64[N, 5] y) {{ {HARD} }}", {"i6": np.array(6)},
    )
}  # fmt: skip
ACTIVATIONS = WHOLE | {
    nodes: Edge(
        "activations", X5.format(nodes=nodes, more=", float[N, 5] z" if "z)" in nodes or "(z" in nodes else ""),
        {"alpha": np.float32(1.702), "wide": np.ones((1, 1, 5), np.float32), "c2": np.float32(0.0356774),
         "tenth": np.float32(0.1)},
    )
    for nodes in (
        "s = Sigmoid(x)  m = Mul(x, s)  y = Div(m, zero)",
        "s = Sigmoid(x)  m = Mul(x, s)  y = Mul(m, zero)",
        "s = Sigmoid(x)  m = Mul(x, s)  y = Mul(m, two)",
        "s = Sigmoid(x)  m = Mul(x, s)  y = Div(m, one)",
        "s = Sigmoid(x)  y = Div(s, x)",
        "s = Sigmoid(x)  y = Div(x, s)",
        "y = Div(six, x)",
        "s = Sigmoid(x)  m = Mul(x, s)  y = Div(one, m)",
        "a = Mul(x, alpha)  s = Sigmoid(a)  y = Mul(x, s)",
        "a = Mul(alpha, x)  s = Sigmoid(a)  y = Mul(s, x)",
        "a = Div(x, two)  s = Sigmoid(a)  y = Mul(x, s)",
        "a = Mul(x, z)  s = Sigmoid(a)  y = Mul(x, s)",
        "s = Sigmoid(z)  y = Mul(x, s)",
        "a = Add(x, one)  s = Sigmoid(a)  y = Mul(x, s)",
        "a = Mul(z, alpha)  s = Sigmoid(a)  y = Mul(x, s)",
        "a = Mul(x, alpha)  b = Mul(a, half)  s = Sigmoid(b)  y = Mul(x, s)",
        "h = HardSigmoid<alpha = 0.2>(x)  y = Mul(x, h)",
        "h = HardSigmoid<alpha = 0.16666667, beta = 0.6>(x)  y = Mul(x, h)",
        "h = HardSigmoid<alpha = 0.16666667, beta = 0.5>(z)  y = Mul(x, h)",
        "s = Softplus(z)  h = Tanh(s)  y = Mul(x, h)",
        "s = Tanh(x)  y = Mul(x, s)",
        "s = Softplus(x)  h = Tanh(s)  m = Mul(x, h)  y = Mul(m, half)",
        "a = Add(x, three)  c = Clip(a, zero, six)  y = Mul(x, c)",
        "a = Add(x, three)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, three)",
        "a = Add(three, x)  c = Clip(a, zero, six)  d = Div(c, six)  y = Mul(x, d)",
        "a = Add(z, three)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, six)",
        "a = Add(x, two)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, six)",
        "a = Add(x, three)  c = Clip(a, zero, three)  m = Mul(x, c)  y = Div(m, six)",
        "c = Clip(x, zero, six)  m = Mul(x, c)  y = Div(m, six)",
        "d = Div(x, r2)  g1 = Erf(d)  a = Add(one, g1)  h = Mul(a, half)  y = Mul(h, x)",
        "d = Div(x, two)  g1 = Erf(d)  a = Add(g1, one)  m = Mul(x, a)  y = Mul(m, half)",
        "d = Div(z, r2)  g1 = Erf(d)  a = Add(g1, one)  m = Mul(x, a)  y = Mul(m, half)",
        "d = Div(x, r2)  g1 = Erf(d)  a = Add(g1, two)  m = Mul(x, a)  y = Mul(m, half)",
        "d = Div(r2, x)  g1 = Erf(d)  a = Add(g1, one)  m = Mul(x, a)  y = Mul(m, half)",
        "g1 = Erf(x)  a = Add(g1, one)  m = Mul(x, a)  y = Mul(m, half)",
        *(
            f"{cube}  w = Mul({k}, q)  i = Add({sides})  u = Mul({t1}, i)  h = Tanh(u)  a = Add(one, h)  "
            "b = Mul(half, x)  y = Mul(b, a)"
            for cube, k, sides, t1 in (
                ("xx = Mul(x, x)  q = Mul(x, xx)", "k", "x, w", "t"),
                ("xx = Mul(x, x)  q = Mul(z, xx)", "k", "x, w", "t"),
                ("xx = Mul(z, z)  q = Mul(x, xx)", "k", "x, w", "t"),
                ("q = Mul(x, x)", "k", "x, w", "t"),
                ("q = Pow(x, three)", "k", "w, x", "t"),
                ("q = Pow(x, two)", "k", "x, w", "t"),
                ("q = Pow(z, three)", "k", "x, w", "t"),
                ("q = Pow(x, three)", "k", "z, w", "t"),
                ("q = Pow(x, three)", "half", "x, w", "t"),
                ("q = Pow(x, three)", "k", "x, w", "half"),
                ("q = Pow(x, three)", "k", "x, x", "t"),
            )
        ),
        "s = Sigmoid(x)  m = Mul(x, s)  y = Mul(m, z)",
        "s = Sigmoid(x)  y = Add(x, s)",
        "s = Sigmoid(x)  y = Max(x, s)",
        "h = Mul(x, two)  s = Sigmoid(x)  y = Mul(h, s)",
        "h = Mul(x, two)  s = Tanh(x)  b = Softplus(x)  c = Tanh(b)  y = Mul(h, c)",
        "h = Div(x, two)  s = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x)  y = Mul(s, h)",
        "s = Sigmoid(x)  t1 = Mul(x, x)  y = Mul(t1, s)",
    )
}  # fmt: skip
NAMED = "h = Shape({x})  a = Gather(h, n0)  b = Gather(h, n1)  r = Range(n0, a, n1)  y = Add(r, b)"
SHAPES = {
    "a size with the name of an input": Edge(
        "shapes", f"(float[N, 4] x, float[2, T] N) => (int64[a] y) {{ {NAMED.format(x='x')} }}",
    ),
    "a size whose other name is taken too": Edge(
        "shapes", f"(float[N, 4] x, float[2] N, float[3] N_size) => (int64[a] y) {{ {NAMED.format(x='x')} }}",
    ),
    "a size that two inputs have": Edge(
        "shapes", f"(float[N, L] x, float[L, N] z) => (int64[a] y) {{ {NAMED.format(x='z')} }}",
    ),
    **{
        f"a choice of {name}": Edge(
            "shapes",
            f"({kind}[{shape}] x, bool[{cond}] c) => ({kind}[a, b] y) {{ h = Shape(x)  w = Expand({value}, h)  "
            f"y = Where(c, {order}) }}",
            {"pair": np.array([1, 2, 3, 4], np.float32), "seven": np.array(7), "half2": np.array([[0.5]], np.float32)},
        )
        for name, kind, shape, cond, value, order in (
            ("a number", "float", "N, 4", "N, 4", "half", "w, x"),
            ("a number, second", "float", "N, 4", "N, 4", "half", "x, w"),
            ("whole numbers", "int64", "N, 4", "N, 4", "seven", "w, x"),
            ("several numbers", "float", "N, 4", "N, 4", "pair", "w, x"),
            ("a number of two axes", "float", "N, 4", "N, 4", "half2", "w, x"),
            ("a number by one row", "float", "N, 4", "1, 4", "half", "w, x"),
            ("numbers alone", "float", "N, 4", "1, 4", "half", "w, w"),
        )
    },
    **{
        f"sizes chosen by {name}": Edge(
            "shapes",
            f"(float[N, 1] x, float[N, 4] z) => (float[a, b] y) {{ h = Shape(z)  {test}  "
            f"f = Where(e1, {ones}, h)  y = Expand(x, f) }}",
            {
                "pair": np.array([-1, -1]),
                "uneven": np.array([-1, -2]),
                "ones": np.array([1, 1]),
                "twos": np.array([1, 2]),
            },
        )
        for name, test, ones in (
            ("-1", "e1 = Equal(h, pair)", "ones"),
            ("-1, turned", "e1 = Equal(pair, h)", "ones"),
            ("one -1", "e1 = Equal(h, last)", "ones"),
            ("other numbers", "e1 = Equal(h, uneven)", "ones"),
            ("-1 for one and two", "e1 = Equal(h, pair)", "twos"),
            ("-1 for one number", "e1 = Equal(h, pair)", "i1"),
            ("the sizes of another", "k2 = Shape(x)  e1 = Equal(k2, pair)", "ones"),
            ("less", "e1 = Less(h, pair)", "ones"),
            ("1", "e1 = Equal(h, i1)", "ones"),
        )
    },
    "parts of a tensor of sizes": Edge(
        "shapes",
        """(int64[4] h, float[N] x) => (int64[a] y, int64[b] z, int64[c] w) { p, q = Split<axis = 0>(h, halves)
        y = Neg(p)  z = Neg(q)  w = Shape(x) }""",
        {"halves": np.array([1, 3])},
    ),
}  # fmt: skip
MORE_EDGES = {
    **{f"masks: {name}": edge for name, edge in MASKS.items()},
    **{f"lengths: {name}": edge for name, edge in LIMITED.items()},
    **{f"gathered: {name}": edge for name, edge in GATHERS.items()},
    **{f"activations: {name}": edge for name, edge in ACTIVATIONS.items()},
    **{f"shapes: {name}": edge for name, edge in SHAPES.items()},
}
