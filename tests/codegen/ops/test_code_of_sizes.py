"""Models that calculate with the sizes of inputs: the inferred type, the code, and the result.

Nodes on integers that are sizes become arithmetic on Python's numbers. The results are those of ONNX's reference
implementation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.codegen import load
from emberlet.codegen.generation import translate
from emberlet.codegen.onnx_backend import to_tensor
from emberlet.errors import EmberletError
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from support.onnx_models import parse
from support.rows import every

# s = (6, 3, N): six = 6, three = 3, n = N as numbers; k: a number that is known only when the model runs
HEAD = """g (float[6, 3, N] x, int64 k) => (int64 y) {{ s = Shape(x)  six = Gather(s, c0)  three = Gather(s, c1)
    n = Gather(s, cm1)  {nodes} }}"""
CONSTANTS: dict[str, Any] = {
    "c0": np.int64(0), "c1": np.int64(1), "c2": np.int64(2), "cm1": np.int64(-1), "cm2": np.int64(-2),
    "i0": np.array([0]),
    "i1": np.array([1]), "i2": np.array([2]), "im1": np.array([-1]), "far": np.array([99]), "f2": np.float32(2.5),
    "both": np.array([0, 2]), "yes": np.array(True), "i18": np.array([18, -1]), "none": np.array([], np.int64),
}  # fmt: skip
OPERANDS = ("n", "six", "c2", "cm2", "k")
PAIRS = [
    f"y = {op}({a}, {b})"
    for op in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "GreaterOrEqual")
    for a in OPERANDS
    for b in OPERANDS
    if (a, b) not in (("c2", "c2"), ("cm2", "cm2"), ("c2", "cm2"), ("cm2", "c2"), ("k", "k"))
]
OTHERS = """
y = Neg(n) | y = Abs(n) | y = Identity(n) | y = Sign(n) | a = Neg(n)  y = Abs(a) | a = Neg(six)  y = Mul(a, n)
y = Cast<to = 1>(n) | y = Cast<to = 6>(n) | a = Cast<to = 1>(n)  b = Mul(a, f2)  y = Cast<to = 7>(b)
a = Cast<to = 1>(n)  b = Div(a, f2)  c = Floor(b)  y = Cast<to = 7>(c) | y = Cast<to = 9>(n)
a = Cast<to = 6>(n)  y = Cast<to = 7>(a) | a = Cast<to = 1>(six)  b = Sqrt(a)  y = Cast<to = 7>(b)
y = Unsqueeze(n, i0) | y = Unsqueeze(n, im1) | y = Reshape(n, im1) | y = Reshape(n, i1) | y = Reshape(n, none)
y = Identity(s) | y = Reshape(s, im1) | y = Squeeze(s) | y = Unsqueeze(s, i0) | y = Cast<to = 7>(s)
y = Cast<to = 1>(s)
y = Gather(s, i1) | y = Gather(s, both) | y = Gather(s, im1) | y = Gather<axis = 0>(s, k) | y = Gather(s, cm2)
y = Gather(s, cm3) | y = Gather(s, cm4) | y = Gather(s, i3) | y = Gather(s, none)
y = Slice(s, i0, i2) | y = Slice(s, i1, far) | y = Slice(s, im1, far) | y = Slice(s, i0, im1, i0, i2)
y = Slice(s, far, i0, i0, im1) | y = Slice(s, i2, i1) | a = Unsqueeze(k, i0)  y = Slice(s, a, far)
a = Slice(s, i0, i1)  y = Squeeze(a) | a = Slice(s, i2, far)  y = Squeeze(a, i0)
a = Gather(s, i0)  y = Squeeze(a, im1)
y = Concat<axis = 0>(s, s) | y = Concat<axis = -1>(s, i1) | y = Concat<axis = 0>(i1, s) | y = Concat<axis = 0>(s)
a = Unsqueeze(k, i0)  y = Concat<axis = 0>(s, a) | a = Unsqueeze(n, i0)  y = Concat<axis = 0>(a, i2, a)
a, b = Split<axis = 0>(s, split)  y = Add(b, i1) | a, b = Split<axis = 0>(s, split)  y = Identity(a)
y = Add(s, s) | y = Mul(s, i2) | y = Mul(s, c2) | y = Add(s, n) | y = Div(s, i2) | y = Sub(i1, s) | y = Equal(s, i1)
y = ReduceProd(s) | y = ReduceProd<keepdims = 0>(s) | y = ReduceSum<keepdims = 0>(s) | y = ReduceMax<keepdims = 0>(s)
y = ReduceProd<keepdims = 0>(s, i0) | y = ReduceMin(s, im1) | a = Slice(s, i0, i2)  y = ReduceProd<keepdims = 0>(a)
y = Size(x) | y = Size(s) | y = Shape(s) | y = Shape(n) | y = Shape<start = 1>(x) | y = Shape<end = -1>(x)
y = Shape<start = -2, end = 3>(x) | y = Shape<start = 2, end = 1>(x) | y = Shape<start = -9, end = 9>(x)
a = Equal(s, i1)  y = Where(a, im1, s) | a = Less(n, six)  y = Where(a, n, six) | y = Where(yes, n, six)
a = Equal(n, c2)  b = Not(a)  y = And(a, b) | a = Equal(n, c2)  b = Less(n, k)  y = Or(a, b)
a = Less(n, k)  y = Not(a)
a = Range(c0, n, c1)  y = Add(a, n) | a = Range(c0, six, c2)  y = Mul(a, n) | y = Range(n, c0, cm1)
y = ConstantOfShape(s) | a = Unsqueeze(n, i0)  y = ConstantOfShape(a) | y = Expand(n, s) | y = Expand(c2, s)
a = Add(n, six)  b = Sub(a, n)  y = Mul(b, c2) | a = Mul(n, six)  b = Div(a, six)  y = Add(b, k)
a = Mul(n, c2)  b = Div(a, n)  y = Sub(b, n) | a = Div(n, c2)  b = Sub(n, a)  y = Add(a, b)
a = Sub(six, n)  y = Abs(a)
y = Clip(n, c2) | y = Clip(n, c0, c2) | y = Min(n, six, k) | y = Max(six, c2, three) | y = Sum(n, six) | y = Max(n)
y = Pow(n, c2) | y = Mod<fmod = 1>(n, cm2) | y = BitShift<direction = "LEFT">(un, un) | y = CumSum(s, c0)
y = ReduceProd<keepdims = 0, noop_with_empty_axes = 1>(s) | y = Transpose(s) | y = Flatten<axis = 0>(s)
y = Tile(s, i2)
y = Reshape(x, s) | y = Reshape(x, i18)
a = Mul(six, three)  b = Unsqueeze(a, i0)  c = Concat<axis = 0>(b, im1)  y = Reshape(x, c)
a = Mul(six, three)  b = Unsqueeze(a, i0)  c = Unsqueeze(n, i0)  d = Concat<axis = 0>(c, b)  y = Reshape(x, d)
a = Unsqueeze(k, i0)  b = Concat<axis = 0>(a, im1)  y = Reshape(x, b)
a = Div(n, c2)  b = Unsqueeze(a, i0)  y = Slice(x, b, far, i2)
a = Div(n, c2)  b = Unsqueeze(a, i0)  y = Slice(x, i0, b, i2) | a = Unsqueeze(n, i0)  y = Slice(x, i1, a, im1)
a = Sub(n, c1)  b = Unsqueeze(a, i0)  y = Slice(x, i0, b, i2) | a = Unsqueeze(k, i0)  y = Slice(x, a, far, i1)
a = Neg(k)  b = Unsqueeze(a, i0)  y = Slice(x, b, far, i0) | a = Unsqueeze(n, i0)  y = Tile(k, none)
y = Expand(k, s)
a = Unsqueeze(three, i0)  b = Concat<axis = 0>(a, i1, i1)  y = Tile(x, b)
a = Unsqueeze(n, i0)  b = Concat<axis = 0>(i1, i1, a)  y = Tile(x, b)
a = Concat<axis = 0>(i0, i0, i1, i0, i0, i2)  y = Pad(x, a) | a = Unsqueeze(three, i0)  y, i = TopK<axis = 0>(x, a)
y = Gather<axis = 2>(x, cm1) | a = Sub(n, c1)  y = Gather<axis = 2>(x, a) | y = Gather<axis = 0>(x, k)
y = EyeLike<k = 1>(e) | y = Trilu(e, k) | y = Trilu(e, c1)
"""
ROWS = [*PAIRS, *(r.strip() for line in OTHERS.strip().splitlines() for r in line.split(" | "))]


def model_of(nodes: str) -> onnx.ModelProto:
    model = parse(HEAD.format(nodes=nodes), 21)
    model.graph.output[0].type.Clear()
    more = {"split": np.array([1, 2]), "e": np.ones((3, 4), np.float32), "un": np.uint8(3)}
    used = {i for node in model.graph.node for i in node.input}
    held = {**CONSTANTS, **more}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(held[k]), k) for k in sorted(used & {*held}))
    return model


@every("nodes", ROWS)
def test_arithmetic_of_sizes(nodes: str) -> None:
    model = model_of(nodes)
    try:
        translate(model, "net", passes=["dead"])
    except EmberletError:
        return
    run = load(model, "numpy", passes=["dead"])
    for n, k in ((4, 2), (7, 1)):
        inputs = {"x": np.arange(18 * n, dtype=np.float32).reshape(6, 3, n), "k": np.array(k)}
        try:
            want: Any = ReferenceEvaluator(model).run(None, inputs)[0]
        except Exception:  # operators that do not fit these sizes
            with pytest.raises(EmberletError):
                run(*(to_tensor(a, "numpy") for a in inputs.values()))
            continue
        got = run(*(to_tensor(a, "numpy") for a in inputs.values()))
        array = np.array(got.tolist() if hasattr(got, "tolist") else got)
        assert array.shape == np.shape(want) and np.array_equal(array, want), (n, k, got, want)
