"""Graphs that passes rewrite, each in ONNX's notation with its constants and inputs."""

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
    """A graph that a pass rewrites."""

    text: str  # "in => out { nodes }"; of the constants only those it names are added
    inputs: list[tuple[int, ...] | np.ndarray]
    becomes: str  # the operators afterwards
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
        f"{X5} {{ d = Div(x, r2)  e1 = Erf(d)  a = Add(e1, one)  m = Mul(x, a)  y = Mul(m, half) }}", [(2, 5)], "Gelu",
    ),
    "gelu, half first": Pattern(
        f"{X5} {{ h = Mul(x, half)  d = Div(x, r2)  e1 = Erf(d)  a = Add(e1, one)  y = Mul(h, a) }}", [(2, 5)], "Gelu",
    ),
    "gelu by tanh": Pattern(
        f"""{X5} {{ q = Pow(x, three)  w = Mul(k, q)  i = Add(x, w)  u = Mul(t, i)  h = Tanh(u)  a = Add(one, h)
        b = Mul(half, x)  y = Mul(b, a) }}""",
        [(2, 5)], "Gelu",
    ),
    "hard swish": Pattern(
        f"{X5} {{ a = Add(x, three)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, six) }}", [(2, 5)], "HardSwish",
    ),
    "hard swish by hard sigmoid": Pattern(
        f"{X5} {{ h = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x)  y = Mul(x, h) }}", [(2, 5)], "HardSwish",
    ),
    "mish": Pattern(f"{X5} {{ s = Softplus(x)  h = Tanh(s)  y = Mul(x, h) }}", [(2, 5)], "Mish"),
    "layer norm": Pattern(
        f"""{X8} {{ m = ReduceMean(x, last)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean(q, last)
        a = Add(v, e)  r = Sqrt(a)  n = Div(d, r)  p = Mul(n, w)  y = Add(p, b) }}""",
        [(2, 3, 8)], "LayerNormalization", {"w": floats(8), "b": floats(8)},
    ),
    "rms norm by a reciprocal": Pattern(
        f"""{X8} {{ q = Mul(x, x)  v = ReduceMean(q, last)  a = Add(e, v)  r = Sqrt(a)  i = Reciprocal(r)
        n = Mul(x, i)  y = Mul(w, n) }}""",
        [(2, 3, 8)], "RMSNormalization", {"w": floats(8)},
    ),
    "rms norm by one over a root": Pattern(
        f"""{X8} {{ q = Pow(x, two)  v = ReduceMean(q, last)  a = Add(v, e)  r = Sqrt(a)  i = Div(one, r)
        n = Mul(x, i)  y = Mul(n, w) }}""",
        [(2, 3, 8)], "RMSNormalization", {"w": floats(8)},
    ),
    "rms norm by a power": Pattern(
        f"""{X8} {{ q = Pow(x, two)  v = ReduceMean(q, last)  a = Add(v, e)  r = Pow(a, power)  n = Mul(x, r)
        y = Mul(n, w) }}""",
        [(2, 3, 8)], "RMSNormalization", {"w": floats(8), "power": np.float32(-0.5)},
    ),
    "rms norm by a root as a power": Pattern(
        f"""{X8} {{ q = Pow(x, two)  v = ReduceMean(q, last)  a = Add(v, e)  r = Pow(a, half)  n = Div(x, r)
        y = Mul(n, w) }}""",
        [(2, 3, 8)], "RMSNormalization", {"w": floats(8)},
    ),
    "group norm": Pattern(
        """(float[N, 6, 4, 4] x) => (float[N, 6, 4, 4] y) {
        a = Reshape(x, cut)  n = InstanceNormalization(a, ones, zeros)  r = Reshape(n, back)  p = Mul(r, w)
        y = Add(p, b) }""",
        [(2, 6, 4, 4)], "GroupNormalization",
        {"cut": np.array([0, 3, -1]), "back": np.array([-1, 6, 4, 4]), "ones": np.ones(3, np.float32),
         "zeros": np.zeros(3, np.float32), "w": floats(6, 1, 1), "b": floats(6, 1, 1)},
    ),
    "batch norm behind a convolution": Pattern(
        """(float[N, 4, 5, 5] x) => (float[N, 6, 3, 3] y) {
        c = Conv<group = 2>(x, w, b)  y = BatchNormalization<epsilon = 0.01>(c, g, s, m, v) }""",
        [(2, 4, 5, 5)], "Conv", {"w": floats(6, 2, 3, 3), "b": floats(6), **norm(6)},
    ),
    "batch norm before a convolution": Pattern(
        """(float[N, 4, 5, 5] x) => (float[N, 6, 3, 3] y) {
        c = BatchNormalization<epsilon = 0.01>(x, g, s, m, v)  y = Conv<group = 2, pads = [0, 0, 0, 0]>(c, w, b) }""",
        [(2, 4, 5, 5)], "Conv", {"w": floats(6, 2, 3, 3), "b": floats(6), **norm(4)},
    ),
    "batch norm behind a transposed convolution": Pattern(
        """(float[N, 3, 4, 4] x) => (float[N, 6, 6, 6] y) {
        c = ConvTranspose<group = 3>(x, w)  y = BatchNormalization(c, g, s, m, v) }""",
        [(2, 3, 4, 4)], "ConvTranspose", {"w": floats(3, 2, 3, 3), **norm(6)},
    ),
    "batch norms around a dense layer": Pattern(
        """(float[N, 5] x) => (float[N, 5] y) {
        n = BatchNormalization(x, g, s, m, v)  p = Gemm<alpha = 1.0, beta = 1.0, transB = 1>(n, w, b)
        y = BatchNormalization(p, g, s, m, v) }""",
        [(2, 5)], "Gemm", {"w": floats(5, 5), "b": floats(5), **norm(5)},
    ),
    "batch norm behind a product": Pattern(
        "(float[N, 5] x) => (float[N, 7] y) { p = MatMul(x, w)  y = BatchNormalization(p, g, s, m, v) }", [(2, 5)],
        "Linear", {"w": floats(5, 7), **norm(7)},
    ),
    "dense layer": Pattern(
        "(float[N, 3, 5] x) => (float[N, 3, 7] y) { p = MatMul(x, w)  y = Add(p, b) }", [(2, 3, 5)], "Linear",
        {"w": floats(5, 7), "b": floats(7)},
    ),
    "dense layer on merged axes": Pattern(
        "(float[N, 3, 5] x) => (float[N, 3, 7] y) { a = Reshape(x, s)  p = Gemm(a, w, b)  y = Reshape(p, r) }",
        [(2, 3, 5)], "Linear", {"w": floats(5, 7), "b": floats(7), "s": np.array([-1, 5]), "r": np.array([-1, 3, 7])},
    ),
    "attention with a scale": Pattern(
        f"{QKV.format(more='')} {{ {KEYS}  a = MatMul(q, kt)  s = Mul(a, half)  p = Softmax(s)  y = MatMul(p, v) }}",
        HEADS, "Attention",
    ),
    "attention with scaled operands": Pattern(
        f"""{QKV.format(more="")} {{ {KEYS}  b = Mul(q, half)  d = Mul(kt, half)  s = MatMul(b, d)
        p = Softmax<axis = -1>(s)  y = MatMul(p, v) }}""",
        HEADS, "Attention",
    ),
    "attention with a mask that is added": Pattern(
        f"""{QKV.format(more=", float[N, 1, S, T] mask")} {{ {KEYS}  a = MatMul(q, kt)  b = Div(a, half)
        s = Add(b, mask)  p = Softmax(s)  y = MatMul(p, v) }}""",
        [*HEADS, (2, 1, 3, 3)], "Attention",
    ),
    "attention with a mask that selects": Pattern(
        f"""{QKV.format(more=", bool[S, T] mask")} {{ {KEYS}  a = MatMul(q, kt)  b = Mul(a, half)
        s = Where(mask, b, low)  p = Softmax(s)  y = MatMul(p, v) }}""",
        [*HEADS, np.tril(np.ones((3, 3), bool))], "Attention",
    ),
    "attention with shared keys": Pattern(
        """(float[B, 4, L, 4] q, float[B, 2, K, 4] k1, float[B, 2, K, 4] v) => (float[B, 4, L, 4] y) {
        ks = Shape(k1)  b = Gather<axis=0>(ks, i0)  n = Gather<axis=0>(ks, i2)
        e1 = Concat<axis=0>(b, few, many, n, i4)  f = Concat<axis=0>(b, i4, n, i4)
        k2 = Unsqueeze(k1, i2)  k3 = Expand(k2, e1)  k4 = Reshape(k3, f)
        v2 = Unsqueeze(v, i2)  v3 = Expand(v2, e1)  v4 = Reshape(v3, f)
        kt = Transpose<perm = [0, 1, 3, 2]>(k4)  m = MatMul(q, kt)  s = Mul(m, half)  p = Softmax<axis=-1>(s)
        y = MatMul(p, v4) }""",
        [(2, 4, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4)], "Attention", {"few": np.array([2]), "many": np.array([2])},
    ),
    "attention of heads side by side": Pattern(
        """(float[B, L, 4] q, float[B, L, 4] k1, float[B, L, 4] v) => (float[B, L, 4] y) {
        q1 = Reshape(q, split)  q2 = Transpose<perm=[0, 2, 1, 3]>(q1)
        k2 = Reshape(k1, split)  k3 = Transpose<perm=[0, 2, 1, 3]>(k2)
        v1 = Reshape(v, split)  v2 = Transpose<perm=[0, 2, 1, 3]>(v1)
        o = Attention<is_causal = 1>(q2, k3, v2)  p = Transpose<perm=[0, 2, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 4), (2, 2, 4), (2, 2, 4)], "Attention", {"split": np.array([0, 0, 2, 2]), "join": np.array([0, 0, 4])},
        24,
    ),
    "attention of heads with the length first": Pattern(
        """(float[L, B, 4] q, float[L, B, 4] k1, float[L, B, 4] v) => (float[L, B, 4] y) {
        q1 = Reshape(q, split)  q2 = Transpose<perm=[1, 2, 0, 3]>(q1)
        k2 = Reshape(k1, split)  k3 = Transpose<perm=[1, 2, 0, 3]>(k2)
        v1 = Reshape(v, split)  v2 = Transpose<perm=[1, 2, 0, 3]>(v1)
        o = Attention(q2, k3, v2)  p = Transpose<perm=[2, 0, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 4), (2, 2, 4), (2, 2, 4)], "Transpose Transpose Transpose Attention Transpose",
        {"split": np.array([0, 0, 2, 2]), "join": np.array([0, 0, 4])}, 24,
    ),
    "parts of a layer by gathers": Pattern(
        """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) {
        a = MatMul(x, w)  b1 = Add(a, b)  r = Reshape(b1, shape)  t1 = Transpose<perm=[2, 0, 1, 3]>(r)
        p = Gather<axis=0>(t1, i0)  q = Gather<axis=0>(t1, i1)  y = Exp(p)  z = Exp(q) }""",
        [(2, 3, 4)], "Linear Split Exp Exp",
        {"w": floats(4, 4), "b": floats(4), "shape": np.array([0, 0, 2, 2]), "i0": np.array(0), "i1": np.array(1)},
    ),
    "parts of a layer by slices": Pattern(
        """(float[B, L, 4] x) => (float[c, B, L, d] y, float[c, B, L, d] z) {
        a = MatMul(x, w)  b1 = Add(a, b)  r = Reshape(b1, shape)  t1 = Transpose<perm=[2, 0, 1, 3]>(r)
        p = Slice(t1, i0, i1, i0)  q = Slice(t1, i1, i2, i0)  y = Exp(p)  z = Exp(q) }""",
        [(2, 3, 4)], "Linear Split Unsqueeze Unsqueeze Exp Exp",
        {"w": floats(4, 4), "b": floats(4), "shape": np.array([0, 0, 2, 2])},
    ),
    "permutations around a layer": Pattern(
        """(float[B, L, 4] x) => (float[B, L, 2] y, float[B, L, 2] z) {
        t1 = Transpose<perm=[1, 0, 2]>(x)  a = MatMul(t1, w)  p, q = Split<axis=-1, num_outputs=2>(a)
        y = Transpose<perm=[1, 0, 2]>(p)  z = Transpose<perm=[1, 0, 2]>(q) }""",
        [(2, 2, 4)], "MatMul Split", {"w": floats(4, 4)},
    ),
    "rotary embedding of halves": Pattern(
        f"""{ROTARY} {{ f = Concat<axis=-1>(t1, t1)  cc = Cos(f)  ss = Sin(f)  c = Mul(cc, half)  s = Mul(ss, half)
        cos = Unsqueeze(c, i1)  sin = Unsqueeze(s, i1)  {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)], "Cos Mul Sin Mul RotaryEmbedding",
    ),
    "rotary embedding of neighbors": Pattern(
        f"""{ROTARY} {{ u = Unsqueeze(t1, i3)  u2 = Concat<axis=3>(u, u)  f = Reshape(u2, wide)  cc = Cos(f)
        ss = Sin(f)  cos = Unsqueeze(cc, i1)  sin = Unsqueeze(ss, i1)  {NEIGHBORS}  {TURN} }}""",
        [(2, 2, 3, 4), (1, 3, 2)], "Cos Sin RotaryEmbedding", {"wide": np.array([0, 0, 4])},
    ),
    "rotary embedding by constant tables": Pattern(
        f"""(float[B, 2, 3, 4] x) => (float[B, 2, 3, 4] y) {{ {HALVES}  {TURN} }}""", [(2, 2, 3, 4)], "RotaryEmbedding",
        {"cos": np.tile(np.cos(np.arange(6, dtype=np.float32)).reshape(1, 1, 3, 2), 2),
         "sin": np.tile(np.sin(np.arange(6, dtype=np.float32)).reshape(1, 1, 3, 2), 2)},
    ),
    "rotary embedding of a part": Pattern(
        """(float[B, 2, L, 6] x0, float[1, L, 2] t1) => (float[B, 2, L, 6] y) {
        x = Slice(x0, i0, i4, i3)  rest = Slice(x0, i4, far, i3)  f = Concat<axis=-1>(t1, t1)  u = Unsqueeze(f, i1)
        cos = Cos(u)  sin = Sin(u)  lo = Slice(x, i0, i2, i3)  hi = Slice(x, i2, far, i3)  m = Neg(hi)
        r = Concat<axis=-1>(m, lo)  p = Mul(x, cos)  q = Mul(r, sin)  o = Add(p, q)  y = Concat<axis=3>(o, rest) }""",
        [(2, 2, 3, 6), (1, 3, 2)], "Unsqueeze Cos Squeeze Sin Squeeze RotaryEmbedding",
    ),
    **{
        f"rotary embedding by tables of {rank} axes": Pattern(
            f"""(float[B, 2, 3, 4] x) => (float[B, 2, 3, 4] y) {{ {HALVES}  {TURN} }}""",
            [(2, 2, 3, 4)],
            "RotaryEmbedding",
            {
                name: np.tile(f(np.arange(6, dtype=np.float32)).reshape(*(1,) * (rank - 2), 3, 2), 2)
                for name, f in (("cos", np.cos), ("sin", np.sin))
            },
        )
        for rank in (2, 3)
    },
    "rotary embedding by tables at positions": Pattern(
        f"""(float[B, 2, L, 4] x, int64[B, L] at) => (float[B, 2, L, 4] y) {{
        c = Gather(ctable, at)  s = Gather(stable, at)  cos = Unsqueeze(c, i1)  sin = Unsqueeze(s, i1)
        {HALVES}  {TURN} }}""",
        [(2, 2, 3, 4), np.array([[0, 1, 2], [2, 0, 1]])], "Gather Gather RotaryEmbedding",
        {"ctable": np.tile(np.cos(np.arange(6, dtype=np.float32)).reshape(3, 2), 2),
         "stable": np.tile(np.sin(np.arange(6, dtype=np.float32)).reshape(3, 2), 2)},
    ),
    "mean of what a mask selects": Pattern(
        """(float[B, L, 4] x, int64[B, L] mask) => (float[B, 4] y) {
        u = Unsqueeze(mask, i2)  h = Shape(x)  w = Expand(u, h)  f = Cast<to = 1>(w)
        p = Mul(x, f)  a = ReduceSum<keepdims = 0>(p, i1)  n = ReduceSum<keepdims = 0>(f, i1)
        c = Clip(n, tiny)  y = Div(a, c) }""",
        [(2, 3, 4), np.array([[1, 1, 0], [1, 0, 1]])], "MaskedMean", {"tiny": np.float32(1e-9)},
    ),
    "mean of what a mask selects, by a maximum": Pattern(
        """(float[B, L, 4] x, int64[B, L] mask) => (float[B, 4] y) {
        f = Cast<to = 1>(mask)  u = Unsqueeze(f, last)
        p = Mul(u, x)  a = ReduceSum<keepdims = 0>(p, i1)  n = ReduceSum<keepdims = 0>(u, i1)
        c = Max(tiny, n)  y = Div(a, c) }""",
        [(2, 3, 4), np.array([[1, 1, 0], [1, 0, 1]])], "MaskedMean", {"tiny": np.float32(1e-9)},
    ),
    "columns read one by one": Pattern(
        """(float[A, B, C] x, int64[N, 3] rows) => (float[a, b, c] y, float[d] z) {
        y = Transpose<perm=[0, 2, 1]>(x)
        c0 = Gather<axis=1>(rows, n0)  c1 = Gather<axis=1>(rows, n1)  c2 = Gather<axis=1>(rows, n2)
        d0 = Unsqueeze(c0, last)  d1 = Unsqueeze(c1, last)  d2 = Unsqueeze(c2, last)
        at = Concat<axis=-1>(d0, d2, d1)  z = GatherND(x, at) }""",
        [(3, 3, 3), np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0], [2, 2, 1]])], "Transpose GatherND",
        {f"n{i}": np.array(i) for i in range(3)},
    ),
    "a gather of equal numbers": Pattern(
        """(int64[B, L] x) => (int64[B, L] y) {
        h = Shape(x)  g = GatherElements<axis=1>(table, at)  e1 = Expand(g, h)  y = Add(e1, x) }""",
        [np.arange(6).reshape(2, 3)], "InputSize InputSize Sizes Expand Add",
        {"table": np.full((1, 9), 3), "at": np.array([[4, 0, 8]])},
    ),
    "permutations and reshapes": Pattern(
        """(float[2, 3, 4] x) => (float[4, 2, 3] y, float[24] z) {
        a = Transpose<perm = [1, 2, 0]>(x)  y = Transpose<perm = [1, 2, 0]>(a)  b = Reshape(x, s)
        z = Reshape(b, last) }""",
        [(2, 3, 4)], "Transpose Reshape", {"s": np.array([6, 4])},
    ),
    "merged axes around an exchange": Pattern(
        """(float[N, 4, 2, 3] x) => (float[N, 4, 3, 2] y) {
        a = Reshape(x, m)  b = Transpose<perm = [0, 2, 1]>(a)  y = Reshape(b, r) }""",
        [(2, 4, 2, 3)], "Transpose", {"m": np.array([-1, 2, 3]), "r": np.array([-1, 4, 3, 2])},
    ),
    "axes added, moved and removed": Pattern(
        """(float[2, 3] x) => (float[2, 3] y, float[a, b, c] z, float[d, e, f, g] w) {
        a1 = Unsqueeze(x, i1)  y = Squeeze(a1, i1)  b1 = Unsqueeze(x, i0)  z = Transpose<perm = [1, 0, 2]>(b1)
        c1 = Unsqueeze(x, i0)  w = Unsqueeze(c1, i2) }""",
        [(2, 3)], "Unsqueeze Unsqueeze",
    ),
    "sums that keep their axes": Pattern(
        "(float[2, N, 3] x) => (float[2, 3] y) { a = ReduceSum(x, i1)  y = Squeeze(a, i1) }", [(2, 3, 3)], "ReduceSum",
    ),
    "axes of 1 removed behind a permutation": Pattern(
        """(float[24] x) => (float[a, b, c] y, float[d, e] z) {
        a = Reshape(x, s)  b = Transpose<perm = [2, 0, 3, 1]>(a)  y = Squeeze(b, i1)
        c = Reshape(x, t1)  d = Transpose<perm = [3, 1, 0, 2]>(c)  z = Squeeze(d) }""",
        [(24,)], "Reshape Transpose Reshape Transpose Squeeze",
        {"s": np.array([1, 2, 3, 4]), "t1": np.array([1, 6, 1, 4])},
    ),
    "reshapes of named sizes": Pattern(
        """(float[B, L, 6] x) => (float[B, L, 2, 3] y, float[J, K] z, float[L, B, 6] w) {
        h = Shape(x)  b = Gather(h, i0)  l = Gather(h, i1)  f = Flatten<axis = 2>(x)
        s = Concat<axis = 0>(b, l, i2, i3)  y = Reshape(f, s)  g1 = Unsqueeze(f, i0)  t1 = Concat<axis = 0>(b, last)
        z = Reshape(g1, t1)  u = Concat<axis = 0>(l, b, six_)  w = Reshape(f, u) }""",
        [(2, 3, 6)], "InputSize InputSize Sizes Reshape Reshape Sizes Reshape Sizes Reshape", {"six_": np.array([6])},
    ),
    "reductions that keep their axes": Pattern(
        """(float[2, N, 3] x) => (float[2] y, float[2, 3] z, float[N] w) {
        a = ReduceMax(x, both)  y = Reshape(a, two_)  b = ReduceMean<keepdims = 1>(x, i1)  z = Reshape(b, shape)
        c = ReduceMin(x, ends)  w = Squeeze(c, ends) }""",
        [(2, 3, 3)], "ReduceMax ReduceMean ReduceMin",
        {"both": np.array([1, 2]), "two_": np.array([2]), "shape": np.array([2, 3]), "ends": np.array([0, -1])},
    ),
    "casts": Pattern(
        """(bool[4] x, int8[4] i, float16[4] h) => (bool[4] a, float[4] b, int8[4] c, float[4] d, int64[4] e,
            double[4] f) {
        x1 = Cast<to = 7>(x)  a = Cast<to = 9>(x1)  x2 = Cast<to = 6>(x)  b = Cast<to = 1>(x2)
        j = Cast<to = 10>(i)  c = Cast<to = 3>(j)  j2 = Cast<to = 16>(i)  d = Cast<to = 1>(j2)
        j3 = Cast<to = 12>(i)  e = Cast<to = 7>(j3)  k1 = Cast<to = 16>(h)  f = Cast<to = 11>(k1) }""",
        [np.array([True, False, True, True]), np.array([-128, 127, -1, 3], np.int8), np.ones(4, np.float16) / 3],
        "Cast Cast Cast Cast Cast Cast Cast",
    ),
    "nothing changes what was never negative": Pattern(
        """(float[2, 4] x) => (float[2, 4] a, float[2, 4] b, float[2, 1] c, float[2, 4] d) {
        a1 = Sigmoid(x)  a = Relu(a1)  b1 = Softmax(x)  b = Abs(b1)  c1 = ReduceL2(x, i1)  c = Relu(c1)
        d1 = Clip(x, zero, six)  d = Relu(d1) }""",
        [(2, 4)], "Sigmoid Softmax ReduceL2 Clip",
    ),
    "attention of turned heads side by side": Pattern(
        """(float[B, L, 8] q, float[B, L, 8] k1, float[B, L, 8] v, float[B, L, 2] c, float[B, L, 2] s)
            => (float[B, L, 8] y) {
        q1 = Reshape(q, split)  q2 = Transpose<perm=[0, 2, 1, 3]>(q1)  q3 = RotaryEmbedding(q2, c, s)
        k2 = Reshape(k1, split)  k3 = Transpose<perm=[0, 2, 1, 3]>(k2)  k4 = RotaryEmbedding(k3, c, s)
        v1 = Reshape(v, split)  v2 = Transpose<perm=[0, 2, 1, 3]>(v1)
        o = Attention(q3, k4, v2)  p = Transpose<perm=[0, 2, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 8), (2, 2, 8), (2, 2, 8), (2, 2, 2), (2, 2, 2)], "RotaryEmbedding RotaryEmbedding Attention",
        {"split": np.array([0, 0, 2, 4]), "join": np.array([0, 0, 8])}, 24,
    ),
    "neutral elements where no size is known": Pattern(
        """(float[N, 5] x, int64[2] s) => (float[J, K] y) {
        r = Reshape(x, s)  a = Add(r, zero)  b = Mul(one_, a)  y = Exp(b) }""",
        [(2, 5), np.array([5, 2])], "Reshape Exp", {"one_": np.ones((1, 1), np.float32)},
    ),
    "two columns beside each other": Pattern(
        """(float[4, 4] x, int64[N, 3] rows) => (float[d] z) {
        c1 = Gather<axis=1>(rows, n1)  c2 = Gather<axis=1>(rows, n2)
        d1 = Unsqueeze(c1, i1)  d2 = Unsqueeze(c2, i1)  at = Concat<axis=1>(d1, d2)  z = GatherND(x, at) }""",
        [(4, 4), np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0], [2, 2, 3]])], "Slice GatherND",
        {"n1": np.array(1), "n2": np.array(2)},
    ),
    "merged axes exchanged and separated": Pattern(
        """(float[8, 6] x, float[N, 6] w) => (float[2, 3, 4, 2] y, float[2, 3, K, 2] z) {
        a = Reshape(x, s)  b = Transpose<perm = [1, 0, 2]>(a)  y = Reshape(b, r)
        c = Reshape(w, t1)  d = Transpose<perm = [1, 0, 2]>(c)  z = Reshape(d, u) }""",
        [(8, 6), (4, 6)], "Reshape Transpose Reshape Transpose Reshape",
        {"s": np.array([4, 6, 2]), "r": np.array([2, 3, 4, 2]), "t1": np.array([-1, 6, 2]),
         "u": np.array([2, 3, -1, 2])},
    ),
    "attention with a table of what is seen": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v) => (float[N, 2, S, 4] y) {
        h = Shape<start = 2, end = 3>(q)  t1 = Slice(seen, i0, h, i0)  m = Slice(t1, i0, h, i1)  n = Not(m)
        kt = Transpose<perm = [0, 1, 3, 2]>(k1)  s = MatMul(q, kt)  w = Where(n, least, s)  p = Softmax<axis = -1>(w)
        y = MatMul(p, v) }""",
        HEADS, "InputSize Sizes Slice Slice Attention",
        {"seen": np.tril(np.ones((5, 5), bool)), "least": np.finfo(np.float32).min},
    ),
    "every second column": Pattern(
        """(float[4, 4] x, int64[N, 3] rows) => (float[d] z) {
        c0 = Gather<axis=1>(rows, n0)  c2 = Gather<axis=1>(rows, n2)
        d0 = Unsqueeze(c0, last)  d2 = Unsqueeze(c2, last)  at = Concat<axis=-1>(d0, d2)  z = GatherND(x, at) }""",
        [(4, 4), np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0], [2, 2, 3]])], "Slice GatherND",
        {"n0": np.array(0), "n2": np.array(2)},
    ),
    "a recurrent layer with states": Pattern(
        """(float[T, B, 3] x, float[B, 2] h0) => (float[T, 1, B, 2] y, float[1, B, 2] h) {
        u = Unsqueeze(h0, i0)  y, h, c = LSTM<hidden_size = 2, direction = "reverse">(x, w, r, b, , u, zeros) }""",
        [(2, 2, 3), (2, 2)], "RecurrentLayer Unsqueeze Unsqueeze",
        {"w": floats(1, 8, 3), "r": floats(1, 8, 2), "b": floats(1, 16), "zeros": np.zeros((1, 2, 2), np.float32)},
    ),
    "equal nodes": Pattern(
        """(float[N, 4] x) => (float[N, 4] y) {
        a = Exp(x)  b = Exp(x)  c = Add(a, b)  d = Softmax<axis = 1>(x)  e1 = Softmax<axis = -1>(x)  f = Add(d, e1)
        y = Mul(c, f) }""",
        [(2, 4)], "Exp Add Softmax Softmax Add Mul",
    ),
    "a constant condition": Pattern(
        """(float[2, 3] x) => (float[2, 3] y) {
        s = Shape(x)  r = Size(s)  even = Equal(r, n2)
        z = If (even) <then_branch = t () => (float[2, 3] a) { a = Neg(x) },
                       else_branch = f () => (float[2, 3] b) { b = Exp(x) }>
        y = Abs(z) }""",
        [(2, 3)], "Abs", {"n2": np.array(2)},
    ),
    "neutral elements": Pattern(
        f"""{X5} {{ a = Add(x, zero)  b = Mul(one, a)  c = Div(b, one)  d = Sub(c, zero)  f = Pow(d, one)
        y = Exp(f) }}""",
        [(2, 5)], "Exp",
    ),
    "nothing to do": Pattern(
        """(float[N, 4] x) => (float[N, 4] y) {
        a = Cast<to = 1>(x)  b = Reshape(a, same)  c = Transpose<perm = [0, 1]>(b)  d = Slice(c, i0, far, i1)
        f = Pad(d, none)  g1 = Tile(f, twice)  h = Concat<axis = 0>(g1)  y = Exp(h) }""",
        [(2, 4)], "Exp", {"same": np.array([0, -1]), "none": np.array([0, 0, 0, 0]), "twice": np.array([1, 1])},
    ),
    "the same twice": Pattern(
        """(float[5] x) => (float[5] y, float[5] z, float[5] w, float[5] v, int32[5] u) {
        a = Relu(x)  b = Relu(a)  y = Abs(b)  c = Floor(x)  d = Round(c)  f = Neg(d)  z = Neg(f)
        g1 = Clip(x, minus, six)  w = Clip(g1, minus2, six)  n = Neg(x)  v = Abs(n)
        i = Cast<to = 6>(x)  j = Cast<to = 7>(i)  u = Cast<to = 6>(j) }""",
        [(5,)], "Relu Floor Clip Abs Cast", {"minus2": np.float32(-2)},
    ),
    "a causal mask of positions": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  p1 = Range(n0, l, n1)  rows = Unsqueeze(p1, i1)
        see = LessOrEqual(p1, rows)  m = Where(see, zero, low)  kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        HEADS, "Attention", {"n0": np.array(0), "n1": np.array(1), "n2": np.array(2)},
    ),
    "a window of positions": Pattern(
        """(float[N, 2, S, 4] q, float[N, 2, S, 4] k1, float[N, 2, S, 4] v) => (float[N, 2, S, 4] y) {
        qs = Shape(q)  l = Gather<axis = 0>(qs, n2)  p1 = Range(n0, l, n1)  rows = Unsqueeze(p1, i1)
        b1 = LessOrEqual(p1, rows)  d = Sub(rows, p1)  b2 = Less(d, n2)  see = And(b1, b2)
        m = Where(see, zero, low)  kt = Transpose<perm = [0, 1, 3, 2]>(k1)
        a = MatMul(q, kt)  b = Mul(a, half)  s = Add(b, m)  w = Softmax<axis = -1>(s)  y = MatMul(w, v) }""",
        HEADS, "Attention", {"n0": np.array(0), "n1": np.array(1), "n2": np.array(2)},
    ),
    "a recurrent layer": Pattern(
        """(float[B, T, 3] x) => (float[B, T, 2] y, float[1, B, 2] h) {
        t1 = Transpose<perm = [1, 0, 2]>(x)  o, h, c = LSTM<hidden_size = 2>(t1, w, r, b)  s = Squeeze(o, i1)
        y = Transpose<perm = [1, 0, 2]>(s) }""",
        [(2, 2, 3)], "RecurrentLayer Unsqueeze", {"w": floats(1, 8, 3), "r": floats(1, 8, 2), "b": floats(1, 16)},
    ),
    "a recurrent layer of two directions": Pattern(
        """(float[T, B, 3] x) => (float[T, B, 4] y) {
        o, h = GRU<hidden_size = 2, direction = "bidirectional", linear_before_reset = 1>(x, w, r, b)
        p = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(p, join) }""",
        [(2, 2, 3)], "RecurrentLayer",
        {"w": floats(2, 6, 3), "r": floats(2, 6, 2), "b": floats(2, 12), "join": np.array([0, 0, -1])},
    ),
    "sizes of the inputs": Pattern(
        """(float[B, L, 6] x) => (float[B, L, 2, 3] y) {
        a = Exp(x)  s = Shape(a)  b = Gather(s, i0)  r = Relu(a)  q = Shape(r)  l = Gather(q, i1)
        t1 = Concat<axis = 0>(b, l, tail)  y = Reshape(r, t1) }""",
        [(2, 2, 6)], "InputSize InputSize Exp Sizes Reshape", {"tail": np.array([2, 3])},
    ),
}  # fmt: skip
