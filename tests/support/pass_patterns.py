"""Graphs that passes write in another way, each in ONNX's notation with its constants and inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .onnx_models import parse

RANDOM = np.random.default_rng(11)


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def norm(n: int) -> dict[str, np.ndarray]:
    return {"g": floats(n), "s": floats(n), "m": floats(n), "v": np.abs(floats(n)) + 0.1}


NUMBERS = {
    name: np.float32(n)
    for name, n in {
        "zero": 0,
        "one": 1,
        "two": 2,
        "three": 3,
        "six": 6,
        "half": 0.5,
        "r2": 1.4142135,
        "k": 0.044715,
        "t": 0.7978846,
        "e": 0.01,
        "minus": -1,
        "low": -np.inf,
    }.items()
}
INTS = {"i0": [0], "i1": [1], "i2": [2], "i3": [3], "i4": [4], "last": [-1], "far": [(1 << 63) - 1]}


@dataclass
class Pattern:
    """A graph that a pass writes in another way."""

    text: str  # "in => out { nodes }"; of the constants only those it names are added
    inputs: list[tuple[int, ...] | np.ndarray]
    becomes: str  # an operator of the graph afterwards that was not there before, or -Operator that is gone
    constants: dict[str, Any] = field(default_factory=dict)
    opset: int = 21

    def model(self) -> onnx.ModelProto:
        model = parse(f"g {self.text}", self.opset)
        used = {i for n in model.graph.node for i in n.input}
        held = {**NUMBERS, **{k: np.array(v) for k, v in INTS.items()}, **self.constants}
        model.graph.initializer.extend(numpy_helper.from_array(np.asarray(held[k]), k) for k in sorted(used & {*held}))
        return model

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(3)
        return [
            a if isinstance(a, np.ndarray) else (random.standard_normal(a) * 2).astype(np.float32) for a in self.inputs
        ]


X5 = "(float[N, 5] x) => (float[N, 5] y)"
X8 = "(float[N, 3, 8] x) => (float[N, 3, 8] y)"
QKV = "(float[N, 2, S, 4] q, float[N, 2, T, 4] k1, float[N, 2, T, 4] v{more}) => (float[N, 2, S, 4] y)"
HEADS: list[tuple[int, ...] | np.ndarray] = [(2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)]
KEYS = "kt = Transpose<perm = [0, 1, 3, 2]>(k1)"
HALVES = """lo = Slice(x, i0, i2, i3)  hi = Slice(x, i2, far, i3)  m = Neg(hi)  r = Concat<axis=-1>(m, lo)"""
NEIGHBORS = """lo = Slice(x, i0, far, i3, i2)  hi = Slice(x, i1, far, i3, i2)  m = Neg(hi)
    a = Unsqueeze(m, i4)  b = Unsqueeze(lo, i4)  k2 = Concat<axis=4>(a, b)  sp = Shape(x)  r = Reshape(k2, sp)"""
ROTARY = "(float[B, 2, L, 4] x, float[1, L, 2] t1) => (float[B, 2, L, 4] y)"
TURN = "p = Mul(x, cos)  q = Mul(r, sin)  y = Add(p, q)"
PATTERNS = {
    "swish": Pattern(f"{X5} {{ s = Sigmoid(x)  y = Mul(x, s) }}", [(2, 5)], "Swish"),
    "gelu": Pattern(
        f"{X5} {{ d = Div(x, r2)  e1 = Erf(d)  a = Add(e1, one)  m = Mul(x, a)  y = Mul(m, half) }}", [(2, 5)], "Gelu"
    ),
    "gelu, half first": Pattern(
        f"{X5} {{ h = Mul(x, half)  d = Div(x, r2)  e1 = Erf(d)  a = Add(e1, one)  y = Mul(h, a) }}", [(2, 5)], "Gelu"
    ),
    "gelu by tanh": Pattern(
        f"""{X5} {{ q = Pow(x, three)  w = Mul(k, q)  i = Add(x, w)  u = Mul(t, i)  h = Tanh(u)  a = Add(one, h)
        b = Mul(half, x)  y = Mul(b, a) }}""",
        [(2, 5)],
        "Gelu",
    ),
    "hard swish": Pattern(
        f"{X5} {{ a = Add(x, three)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, six) }}", [(2, 5)], "HardSwish"
    ),
    "hard swish by hard sigmoid": Pattern(
        f"{X5} {{ h = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x)  y = Mul(x, h) }}", [(2, 5)], "HardSwish"
    ),
    "mish": Pattern(f"{X5} {{ s = Softplus(x)  h = Tanh(s)  y = Mul(x, h) }}", [(2, 5)], "Mish"),
    "layer norm": Pattern(
        f"""{X8} {{ m = ReduceMean(x, last)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean(q, last)
        a = Add(v, e)  r = Sqrt(a)  n = Div(d, r)  p = Mul(n, w)  y = Add(p, b) }}""",
        [(2, 3, 8)],
        "LayerNormalization",
        {"w": floats(8), "b": floats(8)},
    ),
    "rms norm by a reciprocal": Pattern(
        f"""{X8} {{ q = Mul(x, x)  v = ReduceMean(q, last)  a = Add(e, v)  r = Sqrt(a)  i = Reciprocal(r)
        n = Mul(x, i)  y = Mul(w, n) }}""",
        [(2, 3, 8)],
        "RMSNormalization",
        {"w": floats(8)},
    ),
    "rms norm by one over a root": Pattern(
        f"""{X8} {{ q = Pow(x, two)  v = ReduceMean(q, last)  a = Add(v, e)  r = Sqrt(a)  i = Div(one, r)
        n = Mul(x, i)  y = Mul(n, w) }}""",
        [(2, 3, 8)],
        "RMSNormalization",
        {"w": floats(8)},
    ),
    "rms norm by a power": Pattern(
        f"""{X8} {{ q = Pow(x, two)  v = ReduceMean(q, last)  a = Add(v, e)  r = Pow(a, power)  n = Mul(x, r)
        y = Mul(n, w) }}""",
        [(2, 3, 8)],
        "RMSNormalization",
        {"w": floats(8), "power": np.float32(-0.5)},
    ),
    "rms norm by a root as a power": Pattern(
        f"""{X8} {{ q = Pow(x, two)  v = ReduceMean(q, last)  a = Add(v, e)  r = Pow(a, half)  n = Div(x, r)
        y = Mul(n, w) }}""",
        [(2, 3, 8)],
        "RMSNormalization",
        {"w": floats(8)},
    ),
    "group norm": Pattern(
        """(float[N, 6, 4, 4] x) => (float[N, 6, 4, 4] y) {
        a = Reshape(x, cut)  n = InstanceNormalization(a, ones, zeros)  r = Reshape(n, back)  p = Mul(r, w)
        y = Add(p, b) }""",
        [(2, 6, 4, 4)],
        "GroupNormalization",
        {
            "cut": np.array([0, 3, -1]),
            "back": np.array([-1, 6, 4, 4]),
            "ones": np.ones(3, np.float32),
            "zeros": np.zeros(3, np.float32),
            "w": floats(6, 1, 1),
            "b": floats(6, 1, 1),
        },
    ),
    "batch norm behind a convolution": Pattern(
        """(float[N, 4, 5, 5] x) => (float[N, 6, 3, 3] y) {
        c = Conv<group = 2>(x, w, b)  y = BatchNormalization<epsilon = 0.01>(c, g, s, m, v) }""",
        [(2, 4, 5, 5)],
        "-BatchNormalization",
        {"w": floats(6, 2, 3, 3), "b": floats(6), **norm(6)},
    ),
    "batch norm before a convolution": Pattern(
        """(float[N, 4, 5, 5] x) => (float[N, 6, 3, 3] y) {
        c = BatchNormalization<epsilon = 0.01>(x, g, s, m, v)  y = Conv<group = 2, pads = [0, 0, 0, 0]>(c, w, b) }""",
        [(2, 4, 5, 5)],
        "-BatchNormalization",
        {"w": floats(6, 2, 3, 3), "b": floats(6), **norm(4)},
    ),
    "batch norm behind a transposed convolution": Pattern(
        """(float[N, 3, 4, 4] x) => (float[N, 6, 6, 6] y) {
        c = ConvTranspose<group = 3>(x, w)  y = BatchNormalization(c, g, s, m, v) }""",
        [(2, 3, 4, 4)],
        "-BatchNormalization",
        {"w": floats(3, 2, 3, 3), **norm(6)},
    ),
    "batch norms around a dense layer": Pattern(
        """(float[N, 5] x) => (float[N, 5] y) {
        n = BatchNormalization(x, g, s, m, v)  p = Gemm<alpha = 1.0, beta = 1.0, transB = 1>(n, w, b)
        y = BatchNormalization(p, g, s, m, v) }""",
        [(2, 5)],
        "-BatchNormalization",
        {"w": floats(5, 5), "b": floats(5), **norm(5)},
    ),
    "batch norm behind a product": Pattern(
        "(float[N, 5] x) => (float[N, 7] y) { p = MatMul(x, w)  y = BatchNormalization(p, g, s, m, v) }",
        [(2, 5)],
        "-BatchNormalization",
        {"w": floats(5, 7), **norm(7)},
    ),
    "dense layer": Pattern(
        "(float[N, 3, 5] x) => (float[N, 3, 7] y) { p = MatMul(x, w)  y = Add(p, b) }",
        [(2, 3, 5)],
        "Linear",
        {"w": floats(5, 7), "b": floats(7)},
    ),
    "dense layer on merged axes": Pattern(
        "(float[N, 3, 5] x) => (float[N, 3, 7] y) { a = Reshape(x, s)  p = Gemm(a, w, b)  y = Reshape(p, r) }",
        [(2, 3, 5)],
        "-Reshape",
        {"w": floats(5, 7), "b": floats(7), "s": np.array([-1, 5]), "r": np.array([-1, 3, 7])},
    ),
    "attention with a scale": Pattern(
        f"{QKV.format(more='')} {{ {KEYS}  a = MatMul(q, kt)  s = Mul(a, half)  p = Softmax(s)  y = MatMul(p, v) }}",
        HEADS,
        "Attention",
    ),
    "attention with scaled operands": Pattern(
        f"""{QKV.format(more="")} {{ {KEYS}  b = Mul(q, half)  d = Mul(kt, half)  s = MatMul(b, d)
        p = Softmax<axis = -1>(s)  y = MatMul(p, v) }}""",
        HEADS,
        "Attention",
    ),
    "attention with a mask that is added": Pattern(
        f"""{QKV.format(more=", float[N, 1, S, T] mask")} {{ {KEYS}  a = MatMul(q, kt)  b = Div(a, half)
        s = Add(b, mask)  p = Softmax(s)  y = MatMul(p, v) }}""",
        [*HEADS, (2, 1, 3, 3)],
        "Attention",
    ),
    "attention with a mask that selects": Pattern(
        f"""{QKV.format(more=", bool[S, T] mask")} {{ {KEYS}  a = MatMul(q, kt)  b = Mul(a, half)
        s = Where(mask, b, low)  p = Softmax(s)  y = MatMul(p, v) }}""",
        [*HEADS, np.tril(np.ones((3, 3), bool))],
        "Attention",
    ),
    "attention with shared keys": Pattern(
        """(float[B, 4, L, 4] q, float[B, 2, K, 4] k1, float[B, 2, K, 4] v) => (float[B, 4, L, 4] y) {
        ks = Shape(k1)  b = Gather<axis=0>(ks, i0)  n = Gather<axis=0>(ks, i2)
        e1 = Concat<axis=0>(b, few, many, n, i4)  f = Concat<axis=0>(b, i4, n, i4)
        k2 = Unsqueeze(k1, i2)  k3 = Expand(k2, e1)  k4 = Reshape(k3, f)
        v2 = Unsqueeze(v, i2)  v3 = Expand(v2, e1)  v4 = Reshape(v3, f)
        kt = Transpose<perm = [0, 1, 3, 2]>(k4)  m = MatMul(q, kt)  s = Mul(m, half)  p = Softmax<axis=-1>(s)
        y = MatMul(p, v4) }""",
        [(2, 4, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)],
        "-Expand",
        {"few": np.array([2]), "many": np.array([2])},
    ),
    "attention of heads side by side": Pattern(
        """(float[B, L, 4] q, float[B, L, 4] k1, float[B, L, 4] v) => (float[B, L, 4] y) {
        q1 = Reshape(q, split)  q2 = Transpose<perm=[0, 2, 1, 3]>(q1)
        k2 = Reshape(k1, split)  k3 = Transpose<perm=[0, 2, 1, 3]>(k2)
        v1 = Reshape(v, split)  v2 = Transpose<perm=[0, 2, 1, 3]>(v1)
        o = Attention<is_causal = 1>(q2, k3, v2)  p = Transpose<perm=[0, 2, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 4), (2, 2, 4), (2, 2, 4)],
        "-Reshape",
        {"split": np.array([0, 0, 2, 2]), "join": np.array([0, 0, 4])},
        24,
    ),
    "attention of heads with the length first": Pattern(
        """(float[L, B, 4] q, float[L, B, 4] k1, float[L, B, 4] v) => (float[L, B, 4] y) {
        q1 = Reshape(q, split)  q2 = Transpose<perm=[1, 2, 0, 3]>(q1)
        k2 = Reshape(k1, split)  k3 = Transpose<perm=[1, 2, 0, 3]>(k2)
        v1 = Reshape(v, split)  v2 = Transpose<perm=[1, 2, 0, 3]>(v1)
        o = Attention(q2, k3, v2)  p = Transpose<perm=[2, 0, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 4), (2, 2, 4), (2, 2, 4)],
        "-Reshape",
        {"split": np.array([0, 0, 2, 2]), "join": np.array([0, 0, 4])},
        24,
    ),
    "parts of a layer by gathers": Pattern(
        """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) {
        a = MatMul(x, w)  b1 = Add(a, b)  r = Reshape(b1, shape)  t1 = Transpose<perm=[2, 0, 1, 3]>(r)
        p = Gather<axis=0>(t1, i0)  q = Gather<axis=0>(t1, i1)  y = Exp(p)  z = Exp(q) }""",
        [(2, 3, 4)],
        "Split",
        {
            "w": floats(4, 4),
            "b": floats(4),
            "shape": np.array([0, 0, 2, 2]),
            "i0": np.array(0),
            "i1": np.array(1),
        },
    ),
    "parts of a layer by slices": Pattern(
        """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) {
        a = MatMul(x, w)  b1 = Add(a, b)  r = Reshape(b1, shape)  t1 = Transpose<perm=[2, 0, 1, 3]>(r)
        p = Slice(t1, i0, i1, i0)  q = Slice(t1, i1, i2, i0)  y = Exp(p)  z = Exp(q) }""",
        [(2, 3, 4)],
        "Split",
        {"w": floats(4, 4), "b": floats(4), "shape": np.array([0, 0, 2, 2])},
    ),
    "permutations around a layer": Pattern(
        """(float[B, L, 4] x) => (float[B, L, 2] y, float[B, L, 2] z) {
        t1 = Transpose<perm=[1, 0, 2]>(x)  a = MatMul(t1, w)  p, q = Split<axis=-1, num_outputs=2>(a)
        y = Transpose<perm=[1, 0, 2]>(p)  z = Transpose<perm=[1, 0, 2]>(q) }""",
        [(2, 2, 4)],
        "-Transpose",
        {"w": floats(4, 4)},
    ),
    "rotary embedding of halves": Pattern(
        f"""{ROTARY} {{ f = Concat<axis=-1>(t1, t1)  cc = Cos(f)  ss = Sin(f)  c = Mul(cc, half)  s = Mul(ss, half)
        cos = Unsqueeze(c, i1)  sin = Unsqueeze(s, i1)  {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)],
        "RotaryEmbedding",
    ),
    "rotary embedding of neighbors": Pattern(
        f"""{ROTARY} {{ u = Unsqueeze(t1, i3)  u2 = Concat<axis=3>(u, u)  f = Reshape(u2, wide)  cc = Cos(f)
        ss = Sin(f)  cos = Unsqueeze(cc, i1)  sin = Unsqueeze(ss, i1)  {NEIGHBORS}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)],
        "RotaryEmbedding",
        {"wide": np.array([0, 0, 4])},
    ),
    "rotary embedding by constant tables": Pattern(
        f"""(float[B, 2, 3, 4] x) => (float[B, 2, 3, 4] y) {{ {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4)],
        "RotaryEmbedding",
        {
            "cos": np.tile(np.cos(np.arange(6, dtype=np.float32)).reshape(1, 1, 3, 2), 2),
            "sin": np.tile(np.sin(np.arange(6, dtype=np.float32)).reshape(1, 1, 3, 2), 2),
        },
    ),
    "rotary embedding by tables at positions": Pattern(
        f"""(float[B, 2, L, 4] x, int64[B, L] at) => (float[B, 2, L, 4] y) {{
        c = Gather(ctable, at)  s = Gather(stable, at)  cos = Unsqueeze(c, i1)  sin = Unsqueeze(s, i1)
        {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), np.array([[0, 1, 2], [2, 0, 1]])],
        "RotaryEmbedding",
        {
            "ctable": np.tile(np.cos(np.arange(6, dtype=np.float32)).reshape(3, 2), 2),
            "stable": np.tile(np.sin(np.arange(6, dtype=np.float32)).reshape(3, 2), 2),
        },
    ),
    "mean of what a mask selects": Pattern(
        """(float[B, L, 4] x, int64[B, L] mask) => (float[B, 4] y) {
        u = Unsqueeze(mask, i2)  h = Shape(x)  w = Expand(u, h)  f = Cast<to = 1>(w)
        p = Mul(x, f)  a = ReduceSum<keepdims = 0>(p, i1)  n = ReduceSum<keepdims = 0>(f, i1)
        c = Clip(n, tiny)  y = Div(a, c) }""",
        [(2, 3, 4), np.array([[1, 1, 0], [1, 0, 1]])],
        "MaskedMean",
        {"tiny": np.float32(1e-9)},
    ),
    "mean of what a mask selects, by a maximum": Pattern(
        """(float[B, L, 4] x, int64[B, L] mask) => (float[B, 4] y) {
        f = Cast<to = 1>(mask)  u = Unsqueeze(f, last)
        p = Mul(u, x)  a = ReduceSum<keepdims = 0>(p, i1)  n = ReduceSum<keepdims = 0>(u, i1)
        c = Max(tiny, n)  y = Div(a, c) }""",
        [(2, 3, 4), np.array([[1, 1, 0], [1, 0, 1]])],
        "MaskedMean",
        {"tiny": np.float32(1e-9)},
    ),
    "columns read one by one": Pattern(
        """(float[A, B, C] x, int64[N, 3] rows) => (float[a, b, c] y, float[d] z) {
        y = Transpose<perm=[0, 2, 1]>(x)
        c0 = Gather<axis=1>(rows, n0)  c1 = Gather<axis=1>(rows, n1)  c2 = Gather<axis=1>(rows, n2)
        d0 = Unsqueeze(c0, last)  d1 = Unsqueeze(c1, last)  d2 = Unsqueeze(c2, last)
        at = Concat<axis=-1>(d0, d2, d1)  z = GatherND(x, at) }""",
        [(3, 3, 3), np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0], [2, 2, 1]])],
        "-Concat",
        {f"n{i}": np.array(i) for i in range(3)},
    ),
    "a gather of equal numbers": Pattern(
        """(int64[B, L] x) => (int64[B, L] y) {
        h = Shape(x)  g = GatherElements<axis=1>(table, at)  e1 = Expand(g, h)  y = Add(e1, x) }""",
        [np.arange(6).reshape(2, 3)],
        "-GatherElements",
        {"table": np.full((1, 9), 3), "at": np.array([[4, 0, 8]])},
    ),
    "permutations and reshapes": Pattern(
        """(float[2, 3, 4] x) => (float[4, 2, 3] y, float[24] z) {
        a = Transpose<perm = [1, 2, 0]>(x)  y = Transpose<perm = [1, 2, 0]>(a)  b = Reshape(x, s)
        z = Reshape(b, last) }""",
        [(2, 3, 4)],
        "",
        {"s": np.array([6, 4])},
    ),
    "merged axes around an exchange": Pattern(
        """(float[N, 4, 2, 3] x) => (float[N, 4, 3, 2] y) {
        a = Reshape(x, m)  b = Transpose<perm = [0, 2, 1]>(a)  y = Reshape(b, r) }""",
        [(2, 4, 2, 3)],
        "-Reshape",
        {"m": np.array([-1, 2, 3]), "r": np.array([-1, 4, 3, 2])},
    ),
    "axes added, moved and removed": Pattern(
        """(float[2, 3] x) => (float[2, 3] y, float[a, b, c] z, float[d, e, f, g] w) {
        a1 = Unsqueeze(x, i1)  y = Squeeze(a1, i1)  b1 = Unsqueeze(x, i0)  z = Transpose<perm = [1, 0, 2]>(b1)
        c1 = Unsqueeze(x, i0)  w = Unsqueeze(c1, i2) }""",
        [(2, 3)],
        "",
    ),
    "sums that keep their axes": Pattern(
        "(float[2, N, 3] x) => (float[2, 3] y) { a = ReduceSum(x, i1)  y = Squeeze(a, i1) }", [(2, 3, 3)], "-Squeeze"
    ),
    "neutral elements": Pattern(
        f"""{X5} {{ a = Add(x, zero)  b = Mul(one, a)  c = Div(b, one)  d = Sub(c, zero)  f = Pow(d, one)
        y = Exp(f) }}""",
        [(2, 5)],
        "-Mul",
    ),
    "nothing to do": Pattern(
        """(float[N, 4] x) => (float[N, 4] y) {
        a = Cast<to = 1>(x)  b = Reshape(a, same)  c = Transpose<perm = [0, 1]>(b)  d = Slice(c, i0, far, i1)
        f = Pad(d, none)  g1 = Tile(f, twice)  h = Concat<axis = 0>(g1)  y = Exp(h) }""",
        [(2, 4)],
        "-Reshape",
        {"same": np.array([0, -1]), "none": np.array([0, 0, 0, 0]), "twice": np.array([1, 1])},
    ),
    "the same twice": Pattern(
        """(float[5] x) => (float[5] y, float[5] z, float[5] w, float[5] v, int32[5] u) {
        a = Relu(x)  b = Relu(a)  y = Abs(b)  c = Floor(x)  d = Round(c)  f = Neg(d)  z = Neg(f)
        g1 = Clip(x, minus, six)  w = Clip(g1, minus2, six)  n = Neg(x)  v = Abs(n)
        i = Cast<to = 6>(x)  j = Cast<to = 7>(i)  u = Cast<to = 6>(j) }""",
        [(5,)],
        "-Round",
        {"minus2": np.float32(-2)},
    ),
    "a causal mask of positions": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  p1 = Range(n0, l, n1)  rows = Unsqueeze(p1, i1)
        see = LessOrEqual(p1, rows)  m = Where(see, zero, low)  kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        HEADS,
        "Attention",
        {"n0": np.array(0), "n1": np.array(1), "n2": np.array(2)},
    ),
    "a window of positions": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  p1 = Range(n0, l, n1)  rows = Unsqueeze(p1, i1)
        b1 = LessOrEqual(p1, rows)  d = Sub(rows, p1)  b2 = Less(d, n2)  see = And(b1, b2)
        m = Where(see, zero, low)  kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        HEADS,
        "Attention",
        {"n0": np.array(0), "n1": np.array(1), "n2": np.array(2)},
    ),
    "a recurrent layer": Pattern(
        """(float[B, T, 3] x) => (float[B, T, 2] y, float[1, B, 2] h) {
        t1 = Transpose<perm = [1, 0, 2]>(x)  o, h, c = LSTM<hidden_size = 2>(t1, w, r, b)  s = Squeeze(o, i1)
        y = Transpose<perm = [1, 0, 2]>(s) }""",
        [(2, 2, 3)],
        "RecurrentLayer",
        {"w": floats(1, 8, 3), "r": floats(1, 8, 2), "b": floats(1, 16)},
    ),
    "a recurrent layer of two directions": Pattern(
        """(float[T, B, 3] x) => (float[T, B, 4] y) {
        o, h = GRU<hidden_size = 2, direction = "bidirectional", linear_before_reset = 1>(x, w, r, b)
        p = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 3)],
        "RecurrentLayer",
        {"w": floats(2, 6, 3), "r": floats(2, 6, 2), "b": floats(2, 12), "join": np.array([0, 0, -1])},
    ),
    "sizes of the inputs": Pattern(
        """(float[B, L, 6] x) => (float[B, L, 2, 3] y) {
        a = Exp(x)  s = Shape(a)  b = Gather(s, i0)  r = Relu(a)  q = Shape(r)  l = Gather(q, i1)
        t1 = Concat<axis = 0>(b, l, tail)  y = Reshape(r, t1) }""",
        [(2, 2, 6)],
        "-Gather",
        {"tail": np.array([2, 3])},
    ),
}
