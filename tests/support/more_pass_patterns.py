"""Graphs of rotary embeddings, masks, heads and dense layers in the other forms that exporters give them, beside those
of pass_patterns.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .pass_patterns import HALVES, HEADS, NEIGHBORS, TURN, Pattern, floats, norm

TABLES = {
    name: np.repeat(f(np.arange(6, dtype=np.float32)).reshape(1, 1, 3, 2), 2, axis=-1)
    for name, f in (("cos", np.cos), ("sin", np.sin))
}
X4 = "(float[B, 2, L, 4] x, {t}) => (float[B, 2, L, 4] y)"
# -- rotary embeddings ------------------------------------------------------------------------------------------------
SPLIT = "lo, hi = Split<axis = -1, num_outputs = 2>(x)  m = Mul(hi, minus)  r = Concat<axis = 3>(m, lo)"
BEHIND = """lo = Slice(x, i0, second, last)  hi = Slice(x, second, far, last)  m = Mul(minus, hi)
    r = Concat<axis = -1>(m, lo)"""
ROTARY = {
    "rotary embedding of a split": Pattern(
        f"""{X4.format(t="float[1, L, 2] t1")} {{ f = Concat<axis = 2>(t1, t1)  d = Div(f, two)
        cc = Cos(d)  n = Neg(f)  a = Add(one, n)  ss = Sin(a)  cos = Unsqueeze(cc, i1)  sin = Unsqueeze(ss, i1)  {SPLIT}
        {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)], "Div Cos Neg Add Sin RotaryEmbedding",
    ),
    "rotary embedding of slices from behind": Pattern(
        f"""{X4.format(t="double[1, L, 2] t1")} {{ f = Concat<axis = 2>(t1, t1)  c = Cos(f)  s = Sin(f)
        c1 = Cast<to = 1>(c)  s1 = Cast<to = 1>(s)  c2 = Sub(c1, half)  cos = Unsqueeze(c2, last3)
        sin = Unsqueeze(s1, last3)  {BEHIND}  {TURN} }}""",
        [(2, 2, 3, 4), np.linspace(0, 2, 6).reshape(1, 3, 2)], "Cos Sin Cast Cast Sub RotaryEmbedding",
        {"second": np.array([-2]), "last3": np.array([-3])},
    ),
    "rotary embedding of neighbors that are repeated": Pattern(
        f"""{X4.format(t="float[1, L, 2] t1")} {{ u = Unsqueeze(t1, last)  u2 = Expand(u, pairs)  f = Reshape(u2, wide)
        cc = Cos(f)  ss = Sin(f)  cos = Unsqueeze(cc, i1)  sin = Unsqueeze(ss, i1)  {NEIGHBORS}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)], "Cos Sin RotaryEmbedding",
        {"wide": np.array([0, 0, 4]), "pairs": np.array([1, 1, 1, 2])},
    ),
    "rotary embedding of neighbors by constant tables": Pattern(
        f"""(float[B, 2, 3, 4] x) => (float[B, 2, 3, 4] y) {{ {NEIGHBORS}  {TURN} }}""", [(2, 2, 3, 4)],
        "RotaryEmbedding", TABLES,
    ),
    "rotary embedding by tables of three axes": Pattern(
        f"""{X4.format(t="float[1, L, 2] t1")} {{ f = Concat<axis = 2>(t1, t1)  cos = Cos(f)  sin = Sin(f)
        {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)], "Cos Sin RotaryEmbedding",
    ),
    "rotary embedding by tables of two axes": Pattern(
        f"""{X4.format(t="float[L, 2] t1")} {{ f = Concat<axis = 1>(t1, t1)  cos = Cos(f)  sin = Sin(f)
        {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), (3, 2)], "Cos Unsqueeze Sin Unsqueeze RotaryEmbedding",
    ),
    "rotary embedding by tables that get two axes": Pattern(
        f"""{X4.format(t="float[L, 2] t1")} {{ f = Concat<axis = 1>(t1, t1)  c = Cos(f)  s = Sin(f)
        cos = Unsqueeze(c, first2)  s2 = Unsqueeze(s, i0)  sin = Unsqueeze(s2, i0)  {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), (3, 2)], "Cos Unsqueeze Sin Unsqueeze RotaryEmbedding", {"first2": np.array([0, 1])},
    ),
    "rotary embedding by tables of four axes": Pattern(
        f"""{X4.format(t="float[1, 1, L, 2] t1")} {{ f = Concat<axis = 3>(t1, t1)  cos = Cos(f)  sin = Sin(f)
        {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 1, 3, 2)], "Cos Squeeze Sin Squeeze RotaryEmbedding",
    ),
    "rotary embedding of a part that is split off": Pattern(
        f"""(float[B, 2, L, 6] x0, float[1, L, 2] t1) => (float[B, 2, L, 6] y) {{ x, rest = Split<axis = -1>(x0, parts)
        f = Concat<axis = -1>(t1, t1)  u = Unsqueeze(f, i1)  cos = Cos(u)  sin = Sin(u)  {HALVES}
        p = Mul(x, cos)  q = Mul(r, sin)  o = Add(p, q)  y = Concat<axis = -1>(o, rest) }}""",
        [(2, 2, 3, 6), (1, 3, 2)], "Unsqueeze Cos Squeeze Sin Squeeze RotaryEmbedding", {"parts": np.array([4, 2])},
    ),
}  # fmt: skip
# -- masks ------------------------------------------------------------------------------------------------------------
LENGTHS = """(float[N, 2, L, 4] q, float[N, 2, K, 4] k1, float[N, 2, K, 4] v, {n}) => (float[N, 2, L, 4] y) {{
    ks = Shape(k1)  t1 = Gather<axis = 0>(ks, n2)  r = Range(n0, t1, n1)  {see}
    kt = Transpose<perm = [0, 1, 3, 2]>(k1)  a = MatMul(q, kt)  b = Mul(a, half)  {hidden}  y = MatMul(w, v) }}"""
N: dict[str, Any] = {"n0": np.array(0), "n1": np.array(1), "n2": np.array(2), "i12": np.array([1, 2])}
KEYED: list[tuple[int, ...] | np.ndarray] = [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), np.array([2, 4])]
ADDED = "m = Where(see, zero, low)  s = Add(b, m)  w = Softmax<axis = -1>(s)"
BIAS = "f = Cast<to = 1>(see)  g1 = Sub(one, f)  m = Mul(g1, least)  s = Add(b, m)  w = Softmax<axis = -1>(s)"
LEAST = np.float32(-3.4e38)
CACHED = """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v, float[N, 2, P, 4] pk, float[N, 2, P, 4] pv)
    => (float[N, 2, S, 4] y, float[N, 2, t, 4] nk, float[N, 2, t, 4] nv) {{
    qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  ps = Shape(pk)  d = Gather<axis = 0>(ps, n2)  t1 = Add(d, l)
    at = Range(d, t1, n1)  all = Range(n0, t1, n1)  rows = Unsqueeze(at, i1)  {see}
    m = Where(see, zero, low)  y, nk, nv = Attention(q, k1, v, m, pk, pv) }}"""
CACHES = [*HEADS, (2, 2, 2, 4), (2, 2, 2, 4)]
MASKS = {
    "a mask of lengths": Pattern(
        LENGTHS.format(
            n="int64[N] n", see="u = Unsqueeze(n, i1)  c = Less(r, u)  see = Unsqueeze(c, i12)", hidden=ADDED
        ),
        KEYED,
        "Attention",
        N,
    ),
    "a mask of what is behind lengths": Pattern(
        LENGTHS.format(
            n="int32[N] n",
            see="""w64 = Cast<to = 7>(n)  u = Unsqueeze(w64, i1)  r1 = Unsqueeze(r, i0)  o = GreaterOrEqual(r1, u)
            c = Not(o)  see = Unsqueeze(c, i12)""",
            hidden="s = Where(see, b, low)  w = Softmax<axis = -1>(s)",
        ),
        [*KEYED[:3], np.array([2, 4], np.int32)], "Attention", N,
    ),
    "a mask of positive lengths as a bias": Pattern(
        LENGTHS.format(
            n="int64[N] n",
            see="""n3 = Max(n, n1)  u = Unsqueeze(n3, i1)  r1 = Add(r, n1)  c = LessOrEqual(r1, u)
            see = Unsqueeze(c, i12)""",
            hidden=BIAS,
        ),
        KEYED, "Max Attention", {**N, "least": LEAST},
    ),
    "a mask of lengths in a column": Pattern(
        LENGTHS.format(
            n="int64[N, 1] n",
            see="""c3 = Max(n1, n)  c2 = Reshape(c3, flat)  u = Reshape(c2, col)  c = Greater(u, r)
            see = Unsqueeze(c, i12)""",
            hidden=BIAS,
        ),
        [*KEYED[:3], np.array([[2], [4]])], "Max Squeeze Attention",
        {**N, "least": LEAST, "flat": np.array([-1]), "col": np.array([-1, 1])},
    ),
    "a mask of lengths behind an axis of 1": Pattern(
        LENGTHS.format(
            n="int32[N] n",
            see="""u = Unsqueeze(n, i02)  w64 = Cast<to = 7>(u)  c = Less(r, w64)  c2 = Squeeze(c, i0)
            see = Unsqueeze(c2, i12)""",
            hidden=ADDED,
        ),
        [*KEYED[:3], np.array([2, 4], np.int32)], "Attention", {**N, "i02": np.array([0, 2])},
    ),
    "a mask of lengths reshaped behind an axis of 1": Pattern(
        LENGTHS.format(
            n="int64[N, 1] n",
            see="""u = Reshape(n, row)  r1 = Add(r, n1)  c = LessOrEqual(r1, u)  c2 = Squeeze(c, i0)
            c3 = Reshape(c2, four)  see = Expand(c3, ones4)""",
            hidden=ADDED,
        ),
        [*KEYED[:3], np.array([[2], [4]])], "Squeeze Attention",
        {**N, "row": np.array([1, -1, 1]), "four": np.array([0, 1, 1, -1]), "ones4": np.array([1, 1, 1, 1])},
    ),
    "a mask of padding that is gathered": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v, bool[N, S] pad) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  t1 = Gather<axis = 0>(qs, n0)  p1 = Range(n0, l, n1)
        rows = Unsqueeze(p1, i1)  bs = Range(n0, t1, n1)  b1 = Unsqueeze(bs, i123)  flat = Reshape(pad, last)
        pl = Mul(b1, l)  at = Add(pl, p1)  got = Gather<axis = 0>(flat, at)  c1 = LessOrEqual(p1, rows)
        see = And(c1, got)  m = Where(see, zero, least)  kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        [*HEADS, np.array([[1, 1, 0], [1, 1, 1]], bool)],
        "InputSize Range Unsqueeze GreaterOrEqual Unsqueeze And Where Attention",
        {**N, "least": LEAST, "i123": np.array([1, 2, 3])},
    ),
    "a mask of padding without the first key": Pattern(
        """(float[N, 2, 3, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v, bool[N, S] pad)
        => (float[N, 2, 3, 4] y) {
        ks = Shape(k1)  l = Gather<axis = 0>(ks, n2)  t1 = Gather<axis = 0>(ks, n0)  p1 = Range(n0, l, n1)
        bs = Range(n0, t1, n1)  b1 = Unsqueeze(bs, i123)  flat = Reshape(pad, last)
        pl = Mul(b1, l)  at = Add(pl, p1)  got = Gather<axis = 0>(flat, at)  c1 = GreaterOrEqual(p1, n1)
        rows = Unsqueeze(three_, i1)  far1 = Sub(rows, n1)  c2 = GreaterOrEqual(p1, far1)  c3 = And(c1, c2)
        see = And(c3, got)  m = Where(see, zero, least)  kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        [*HEADS, np.array([[1, 1, 0], [1, 1, 1]], bool)],
        "InputSize Range GreaterOrEqual Add GreaterOrEqual And Unsqueeze And Where Attention",
        {**N, "three_": np.arange(3), "least": LEAST, "i123": np.array([1, 2, 3])},
    ),
    "a mask of padding and a window, gathered by coordinates": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v, bool[N, S] pad) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  t1 = Gather<axis = 0>(qs, n0)  p1 = Range(n0, l, n1)
        rows = Unsqueeze(p1, i1)  bs = Range(n0, t1, n1)  b1 = Unsqueeze(bs, i1)
        nb = Unsqueeze(t1, i0)  lb = Unsqueeze(l, i0)  whole = Concat<axis = 0>(nb, lb)
        b2 = Expand(b1, whole)  p2 = Expand(p1, whole)  b3 = Unsqueeze(b2, i2)  p3 = Unsqueeze(p2, i2)
        at = Concat<axis = -1>(b3, p3)  got = GatherND(pad, at)  g4 = Unsqueeze(got, i12)
        past = Sub(rows, n2)  c1 = Less(past, p1)  see = And(c1, g4)  m = Where(see, zero, least)
        kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        [*HEADS, np.array([[1, 1, 0], [1, 1, 1]], bool)],
        "InputSize Range Add Unsqueeze GreaterOrEqual Unsqueeze And Where Attention", {**N, "least": LEAST},
    ),
    "a causal mask behind a cache": Pattern(
        CACHED.format(see="see = LessOrEqual(all, rows)"), CACHES, "Attention", N, 24,
    ),
    "a window behind a cache": Pattern(
        CACHED.format(see="c1 = LessOrEqual(all, rows)  d1 = Sub(rows, all)  c2 = Less(d1, n2)  see = And(c1, c2)"),
        CACHES, "Attention", N, 24,
    ),
    "a mask repeated for all heads": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, T, 4] k1, float[N, 2, T, 4] v, float[1, 1, S, T] mask)
        => (float[N, 2, S, 4] y) {
        qs = Shape(q)  ks = Shape(k1)  n4 = Slice(qs, i0, i3)  n5 = Slice(ks, i2, i3)  h = Concat<axis = 0>(n4, n5)
        wide = Expand(mask, h)  y = Attention(q, k1, v, wide) }""",
        [*HEADS, (1, 1, 3, 3)], "Attention", {}, 24,
    ),
}  # fmt: skip
# -- attention and heads ----------------------------------------------------------------------------------------------
KEYS = "kt = Transpose<perm = [0, 1, 3, 2]>(k1)"
HEADED = {
    "attention that sets what is hidden to zero": Pattern(
        f"""(float[N, 2, S, 4] q, float[N, 2, T, 4] k1, float[N, 2, T, 4] v, bool[N, 1, S, T] mask)
        => (float[N, 2, S, 4] y) {{ {KEYS}  a = MatMul(q, kt)  b = Mul(a, half)  h = Not(mask)  s = Where(h, least, b)
        p = Softmax(s)  z = Where(h, zero, p)  d = Dropout(z)  y = MatMul(d, v) }}""",
        [*HEADS, np.array([[[[1, 0, 0], [0, 0, 0], [1, 1, 1]]]] * 2, bool)], "Attention", {"least": np.float32(-1e4)},
    ),
    "attention guarded against rows of nothing": Pattern(
        f"""(float[N, 2, S, 4] q, float[N, 2, T, 4] k1, float[N, 2, T, 4] v, bool[N, 1, S, T] mask)
        => (float[N, 2, S, 4] y) {{ {KEYS}  a = MatMul(q, kt)  b = Div(a, two)  s = Where(mask, b, low)
        p = Softmax<axis = 3>(s)  o = IsNaN(p)  z = Where(o, zero, p)  y = MatMul(z, v) }}""",
        [*HEADS, np.array([[[[1, 0, 0], [0, 0, 0], [1, 1, 1]]]] * 2, bool)], "Attention",
    ),
    "attention with keys that are repeated for every head": Pattern(
        """(float[N, 2, S, 4] q, float[N, 1, T, 4] k1, float[N, 1, T, 4] v) => (float[N, 2, S, 4] y) {
        k2 = Expand(k1, heads)  v2 = Expand(v, heads)  y = Attention(q, k2, v2) }""",
        [(2, 2, 3, 4), (2, 1, 3, 4), (2, 1, 3, 4)], "Attention", {"heads": np.array([1, 2, 1, 1])}, 24,
    ),
    "attention of other keys": Pattern(
        """(float[N, 2, S, 4] q, float[N, T, 2, 4] k1, float[N, 2, T, 4] v) => (float[N, 2, S, 4] y) {
        kt = Transpose<perm = [0, 2, 3, 1]>(k1)  a = MatMul(q, kt)  s = Mul(half, a)  p = Softmax(s)
        y = MatMul(p, v) }""",
        [(2, 2, 3, 4), (2, 3, 2, 4), (2, 2, 3, 4)], "Transpose Attention",
    ),
}  # fmt: skip
# -- dense layers and normalizations -----------------------------------------------------------------------------------
W: dict[str, Any] = {"w": floats(5, 5), "b": floats(5), **norm(5)}
AROUND = "(float[N, 5] x) => (float[N, 5] y)"
DENSE = {
    "batch norm before a product": Pattern(
        f"{AROUND} {{ n = BatchNormalization<epsilon = 0.01>(x, g, s, m, v)  y = MatMul(n, w) }}", [(2, 5)], "Linear",
        W,
    ),
    "batch norm before a dense layer": Pattern(
        f"{AROUND} {{ n = BatchNormalization(x, g, s, m, v)  y = Gemm(n, w, b) }}", [(2, 5)], "Gemm", W,
    ),
    "batch norm before a transposed dense layer": Pattern(
        f"{AROUND} {{ n = BatchNormalization(x, g, s, m, v)  y = Gemm<transB = 1>(n, w) }}", [(2, 5)], "Gemm", W,
    ),
    "batch norm behind a dense layer": Pattern(
        f"{AROUND} {{ p = Gemm(x, w)  y = BatchNormalization<epsilon = 0.01>(p, g, s, m, v) }}", [(2, 5)], "Gemm", W,
    ),
    "a dense layer without a bias on merged axes": Pattern(
        """(float[N, 3, 4, 5] x) => (float[N, 3, 2] y) {
        a = Reshape(x, s)  p = Gemm<transB = 1>(a, w)  y = Reshape(p, r) }""",
        [(2, 3, 4, 5)], "Reshape Linear", {"w": floats(2, 20), "s": np.array([-1, 20]), "r": np.array([-1, 3, 2])},
    ),
    "a dense layer on flattened axes": Pattern(
        """(float[N, 3, 5] x) => (float[N, 3, 2] y) {
        a = Flatten<axis = 2>(x)  p = MatMul(a, w)  q = Add(b, p)  y = Reshape(q, r) }""",
        [(2, 3, 5)], "Linear", {"w": floats(5, 2), "b": floats(2), "r": np.array([-1, 3, 2])},
    ),
    "parts that are rolled": Pattern(
        """(float[N, 6, 4] x) => (float[N, 6, 4] y) {
        a = Slice(x, i2, far, i1)  b = Slice(x, i0, i2, i1)  c = Concat<axis = 1>(a, b)
        d = Slice(c, last, far, i2)  e1 = Slice(c, i0, last, i2)  y = Concat<axis = -1>(d, e1) }""",
        [(2, 6, 4)], "Roll",
    ),
    "a choice of one number": Pattern(
        """(float[N, 4] x, bool[N, 4] c) => (float[N, 4] y, float[N, 4] z) {
        h = Shape(x)  w = Expand(half, h)  y = Where(c, w, x)  v = Expand(one1, h)  z = Where(c, x, v) }""",
        [(2, 4), np.array([[1, 0, 0, 1], [0, 1, 1, 1]], bool)], "Where Where", {"one1": np.ones((1, 1), np.float32)},
    ),
    "sizes that may be chosen": Pattern(
        """(float[N, 1] x, float[N, 4] z) => (float[N, 4] y) {
        h = Shape(z)  e1 = Equal(h, last)  f = Where(e1, i1, h)  y = Expand(x, f) }""",
        [(2, 1), (2, 4)], "InputSize Sizes Equal Where Expand",
    ),
    "sizes of which one is left out": Pattern(
        """(float[1, 4] x, float[N, 1] z) => (float[N, 4] y) {
        h = Shape(z)  n = Slice(h, i0, i1)  c = Concat<axis = 0>(n, last)  t1 = Mul(ones, last)  e1 = Equal(c, t1)
        f = Where(e1, ones, c)  y = Expand(x, f) }""",
        [(1, 4), (2, 1)], "InputSize Sizes Expand", {"ones": np.array([1, 1])},
    ),
}  # fmt: skip
MORE_PATTERNS = {**ROTARY, **MASKS, **HEADED, **DENSE}
