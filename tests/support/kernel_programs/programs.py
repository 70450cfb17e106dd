"""Programs, each with the shapes at which one kernel gives way to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet.tensor import Tensor


class Program(NamedTuple):
    """function(*tensors) -> a tensor or a tuple of tensors; inputs: (dtype, shape) of each."""

    function: Callable[..., Any]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]


PROGRAMS: dict[str, Program] = {}


def add(name: str, function: Callable[..., Any], *inputs: Any) -> None:
    """inputs: shapes of float32, or (dtype, shape)."""
    assert name not in PROGRAMS
    given = tuple(x if x and isinstance(x[0], str) else ("float32", x) for x in inputs)
    PROGRAMS[name] = Program(function, given)


def weight(x: Tensor, shape: tuple[int, ...], dtype: str = "float32") -> Tensor:
    """A constant of the plan."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape) % 11
    return emberlet.asarray(numbers.astype(dtype), device=x.backend)


def conv(x: Tensor, w: Tensor, stride: Any = 1, padding: Any = 0, dilation: int = 1, groups: int = 1) -> Tensor:
    n = len(x.shape) - 2
    around = padding if isinstance(padding, tuple) else ((padding, padding),) * n
    return x.backend.conv(x, w, None, (stride,) * n, around, (dilation,) * n, groups)


# -- products -------------------------------------------------------------------------------------------------------

for m, k, n in [
    (1, 64, 64), (1, 768, 768), (1, 2048, 1000), (8, 8, 8), (16, 64, 64), (17, 30, 23), (64, 64, 64), (96, 512, 7),
    (128, 256, 256), (197, 192, 192), (256, 256, 256), (300, 300, 300), (512, 16, 512), (1024, 1024, 1024),
    (3, 5000, 3), (2, 70000, 2), (255, 128, 4), (4, 7, 14), (33, 32, 28), (1, 16, 4), (100, 1, 100),
]:  # fmt: skip
    add(f"matmul {m}x{k}x{n}", lambda a, b: a @ b, (m, k), (k, n))
add("matmul turned", lambda a, b: F.permute_dims(a, (1, 0)) @ F.permute_dims(b, (1, 0)), (40, 66), (68, 40))
add("matmul batch", lambda a, b: a @ b, (2, 3, 40, 36), (3, 36, 44))
add("matmul batch of one matrix", lambda a, b: a @ b, (4, 64, 128), (128, 128))
add("matmul int32", lambda a, b: a @ b, ("int32", (17, 33)), ("int32", (33, 12)))
add("matmul epilogue", lambda a, b, c, d: F.gelu(a @ b + c) + d, (32, 64), (64, 96), (96,), (32, 96))
add("matmul turned result", lambda a, b: F.permute_dims(a @ b, (1, 0)), (64, 64), (64, 96))
add("matmul into heads", lambda a, b: F.permute_dims(F.reshape(a @ b, (16, 4, 16)), (1, 0, 2)), (16, 64), (64, 64))
add("matmul of a sum", lambda a, b, c: (a + c) @ b, (48, 64), (64, 64), (64,))
add("matmul of a long expression", lambda a, b: F.tanh(F.exp(a) * F.sin(a)) @ b, (48, 64), (64, 64))
add("matmul weight", lambda a: a @ weight(a, (64, 32)), (8, 64))
add("matmul int8 weight", lambda a: a @ F.astype(weight(a, (64, 32), "int8"), "float32"), (8, 64))
add("matmul softmax", lambda a, b: F.softmax(a @ b, -1), (12, 24), (24, 40))
add("matmul chain", lambda a: ((a @ a) @ a) @ a + a, (24, 24))
add("matmul vector", lambda a, b: a @ b, (300, 400), (400, 1))
add("matmul large panels", lambda a, b: F.relu(a @ b), (416, 176), (176, 256))
add("matmul float16", lambda a, b: a @ b, ("float16", (20, 24)), ("float16", (24, 28)))

# -- convolutions ---------------------------------------------------------------------------------------------------

for name, x, w, stride, padding, dilation, groups in [
    ("3x3", (1, 16, 12, 12), (24, 16, 3, 3), 1, 1, 1, 1),
    ("first layer", (1, 3, 64, 64), (32, 3, 7, 7), 2, 3, 1, 1),
    ("1x1", (1, 64, 14, 14), (128, 64, 1, 1), 1, 0, 1, 1),
    ("1x1 strided", (2, 32, 14, 14), (64, 32, 1, 1), 2, 0, 1, 1),
    ("of few channels", (1, 1, 28, 28), (8, 1, 3, 3), 1, 0, 1, 1),
    ("depthwise", (1, 32, 20, 20), (32, 1, 3, 3), 1, 1, 1, 32),
    ("depthwise strided", (1, 32, 21, 21), (32, 1, 5, 5), 2, 2, 1, 32),
    ("depthwise dilated", (2, 12, 19, 15), (12, 1, 3, 3), 1, 2, 2, 12),
    ("grouped", (1, 32, 10, 10), (48, 8, 3, 3), 1, 1, 1, 4),
    ("dilated", (1, 8, 20, 20), (8, 8, 3, 3), 1, 2, 2, 1),
    ("late layer", (1, 256, 7, 7), (256, 256, 3, 3), 1, 1, 1, 1),
    ("large image", (1, 8, 112, 112), (16, 8, 3, 3), 1, 1, 1, 1),
    ("1-D", (2, 20, 300), (40, 20, 5), 1, 2, 1, 1),
    ("1-D strided", (1, 80, 200), (64, 80, 3), 2, 1, 1, 1),
    ("3-D", (1, 4, 6, 8, 8), (8, 4, 3, 3, 3), 1, 1, 1, 1),
    ("uneven padding", (1, 5, 9, 9), (7, 5, 3, 3), 1, ((0, 1), (2, 0)), 1, 1),
    ("patches", (1, 3, 32, 32), (48, 3, 8, 8), 8, 0, 1, 1),
]:
    add(
        f"conv {name}",
        lambda a, b, s=stride, p=padding, d=dilation, g=groups: F.relu(conv(a, b, s, p, d, g)),
        x,
        w,
    )
add("conv weight", lambda a: F.relu(conv(a, weight(a, (16, 8, 3, 3)), 1, 1)), (1, 8, 16, 16))
add("conv residual", lambda a, b, c: F.relu(conv(a, b, 1, 1) + c) * 2, (1, 16, 8, 8), (16, 16, 3, 3), (1, 16, 8, 8))
add("conv joined", lambda a, b, c: F.concat([F.relu(conv(a, b, 1, 1)), conv(a, c)], 1),
    (1, 8, 10, 10), (12, 8, 3, 3), (4, 8, 1, 1))  # fmt: skip
add("conv transpose", lambda a, b: F.conv_transpose2d(a, b, stride=2, padding=1), (1, 6, 9, 9), (6, 8, 3, 3))
add("conv int32", lambda a, b: conv(a, b, 1, 1), ("int32", (1, 3, 9, 9)), ("int32", (5, 3, 3, 3)))

# -- windows, reductions, order ---------------------------------------------------------------------------------------

for op in ("max", "sum"):
    add(f"pool {op}", lambda x, op=op: x.backend.pool(op, x, (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)), (1, 8, 17, 17))
add("pool dilated", lambda x: x.backend.pool("max", x, (2, 3), (1, 2), ((0, 0), (1, 0)), (2, 1)), (2, 3, 11, 12))
add("pool int8", lambda x: x.backend.pool("max", x, (2,), (2,), ((1, 0),), (1,)), ("int8", (1, 3, 9)))
add("average pool", lambda x: F.avg_pool2d(x, 2), (1, 4, 12, 12))
add("global pool", lambda x: F.mean(x, (2, 3)), (1, 64, 14, 14))
for op, shape, axes in [
    ("sum", (4, 7), (1,)), ("sum", (2, 3000), (1,)), ("sum", (3000, 2), (0,)), ("sum", (500, 600), (0, 1)),
    ("max", (64, 64, 64), (1,)), ("prod", (3, 5), (0, 1)), ("min", (1, 100000), (1,)), ("sum", (2, 300000), (1,)),
    ("max", (3, 300001), (1,)), ("sum", (40, 1000), (1,)), ("sum", (2000, 40), (1,)), ("max", (8, 1), (1,)),
    ("prod", (2, 270000), (1,)), ("sum", (1,), (0,)),
]:  # fmt: skip
    add(f"reduce {op} {shape} {axes}", lambda x, op=op, a=axes: x.backend.reduce(op, x, a, False), shape)
add("reduce any", lambda x: F.any(x, 1), ("bool", (6, 50)))
add("reduce all of a test", lambda x: F.all(x > 0), (600,))
add("reduce int64", lambda x: F.sum(x, 0), ("int64", (30, 5)))
add("reduce with both sides", lambda x, y: F.sqrt(F.sum(x * x + y, 1, keepdims=True)) * 2 + 1, (9, 33), (33,))
for op in ("max", "min"):
    add(f"arg{op}", lambda x, op=op: x.backend.argreduce(op, x, 1, True), (5, 600))
add("argmax of few", lambda x: F.argmax(x, 0), (10, 64))
add("argmax int", lambda x: F.argmax(x, -1), ("int32", (7, 13)))
for op in ("sum", "prod", "max", "min"):
    add(f"cumulative {op}", lambda x, op=op: x.backend.cumulative(op, x, 1), (3, 40))
add("cumulative long", lambda x: F.cumulative_sum(x, axis=0), (5000, 2))
add("cumulative middle", lambda x: F.cumulative_sum(x * 2, axis=1) + 1, (3, 700, 4))
add("sort", lambda x: F.sort(x), (3, 100))
add("sort long", lambda x: F.sort(x, descending=True), (2, 3000))
add("sort first axis", lambda x: F.sort(x, axis=0), ("int32", (65, 3)))
add("top k", lambda x: F.topk(x, 5), (2, 300))
add("softmax", lambda x: F.softmax(x, -1), (12, 197))
add("softmax long", lambda x: F.softmax(x, -1), (2, 9000))
add("softmax first axis", lambda x: F.softmax(x, 0), (40, 6))
add("softmax masked", lambda x, m: F.softmax(F.where(m, x, -1e9), -1), (4, 30, 30), ("bool", (30, 30)))
add("log softmax", lambda x: F.log_softmax(x, 1), (8, 1000))
add("layer norm", lambda x, a, b: F.layer_norm(x, a, b), (197, 192), (192,), (192,))
add("layer norm residual", lambda x, y, a, b: F.layer_norm(x + y, a, b) @ weight(x, (64, 64)),
    (20, 64), (20, 64), (64,), (64,))  # fmt: skip
add("rms norm", lambda x: x / F.sqrt(F.mean(x * x, -1, keepdims=True) + 1e-6), (20, 96))
add("group norm", lambda x, a, b: F.group_norm(x, 4, a, b), (1, 16, 9, 9), (16,), (16,))
add("batch norm", lambda x, a, b: F.relu(x * F.reshape(a, (1, 16, 1, 1)) + F.reshape(b, (1, 16, 1, 1))),
    (2, 16, 9, 9), (16,), (16,))  # fmt: skip

# -- elementwise, movement, indexing ----------------------------------------------------------------------------------

add("chain", lambda x, y: F.tanh(F.exp(x) + y) * 3, (40, 60), (60,))
add("chain of uneven blocks", lambda x, y: F.tanh(F.exp(x) + y) * F.sqrt(F.abs(x)), (7, 13), (13,))
add("chain that branches", lambda x: (lambda y: F.sqrt(y) * y + F.tanh(y[:, :1]))(F.exp(x)), (5, 29))
add("map of four", lambda x, y: F.exp(x) + y, (128, 130), (128, 130))
add("map of four with a row", lambda x, y: x * y, (128, 132), (132,))
add("map of four turned", lambda x: F.permute_dims(x, (1, 0)) + 1, (132, 128))
add("map not of four", lambda x: F.exp(x), (129, 131))
add("many results", lambda x: (F.exp(x), F.exp(x) + 1, F.sin(x)), (8, 9))
add("shared by two", lambda x, y: (F.exp(x) @ y, F.sum(F.exp(x), 1)), (32, 40), (40, 8))
add("casts", lambda x: F.astype(F.astype(x * 10, "int8"), "float32") + F.astype(x > 0, "float32"), (30, 7))
add("uint8 in and out", lambda x: F.astype(F.clip(F.astype(x, "float32") * 2, 0, 255), "uint8"), ("uint8", (33, 5)))
add("uint8 of four", lambda x: F.astype(F.astype(x, "float32") / 2, "uint8"), ("uint8", (160, 128)))
add("bools", lambda x, y: F.logical_and(x > y, F.logical_not(x > 1)), (50, 3), (3,))
add("int64 indices", lambda x, i: F.take(x, i, axis=0), (50, 12), ("int64", (7,)))
add("embedding", lambda i: F.take(weight(i, (300, 16)), i, axis=0), ("int64", (2, 9)))
add("embedding int8", lambda i: F.astype(F.take(weight(i, (300, 16), "int8"), i, axis=0), "float32"), ("int64", (2, 9)))
add("gather", lambda x, i: x.backend.gather(x, i, 1), (4, 9, 5), ("int64", (4, 3, 5)))
for op in ("none", "add", "max"):
    add(f"scatter {op}", lambda x, i, u, op=op: x.backend.scatter(x, i, u, 1, op), (6, 20), ("int64", (6, 5)), (6, 5))
add("scatter int", lambda x, i, u: x.backend.scatter(x, i, u, 0, "mul"),
    ("int32", (9, 4)), ("int32", (3, 4)), ("int32", (3, 4)))  # fmt: skip
add("slices", lambda x: x[1:7, ::2, 3] + x[0:6, 1::2, 1], (8, 10, 4))
add("slice backwards", lambda x: F.flip(x, 1) * 2, (7, 11))
add("pad", lambda x: F.pad(F.exp(x), ((1, 2), (0, 3)), value=0.5), (8, 9))
add("pad of a pad", lambda x: F.pad(F.pad(x, ((1, 1), (1, 1))) + 1, ((2, 0), (0, 2))), (5, 6))
add("concat", lambda x, y: F.concat([x, F.exp(y), x + 1], 1), (6, 3), (6, 5))
add("concat last", lambda x, y: F.concat([F.exp(x), y], -1), (9, 4), (9, 4))
add("stack", lambda x, y: F.stack([x, y * 2, x], 1), (5, 4), (5, 4))
add("repeat", lambda x: F.repeat(x, 3, axis=1) + 1, (4, 5))
add("tile", lambda x: F.tile(x, (2, 3)) * 2, (4, 5))
add("roll", lambda x: F.roll(x, 2, 1) - x, (6, 8))
add("rotate half", lambda x: F.concat([0 - x[..., 8:], x[..., :8]], -1) * 3, (2, 4, 5, 16))
add("views", lambda x: F.reshape(F.permute_dims(F.reshape(x, (2, 3, 4, 5)), (0, 2, 1, 3)), (8, 15)) + 1, (6, 20))
add("view of a view", lambda x: F.reshape(F.permute_dims(F.reshape(x, (4, 6, 5)), (2, 0, 1)), (10, 12)) * 2, (24, 5))
add("pixel shuffle", lambda x: F.reshape(F.permute_dims(F.reshape(x, (1, 3, 2, 2, 8, 8)), (0, 1, 4, 2, 5, 3)),
    (1, 3, 16, 16)) + 1, (1, 12, 8, 8))  # fmt: skip
add("windows", lambda x: F.reshape(F.permute_dims(F.reshape(x, (1, 2, 7, 2, 7, 12)), (0, 1, 3, 2, 4, 5)), (4, 49, 12))
    @ weight(x, (12, 36)), (1, 14, 14, 12))  # fmt: skip
add("expand", lambda x, y: F.broadcast_to(x, (5, 4, 6)) * y, (4, 1), (5, 1, 6))
add("arange", lambda x: x + F.arange(12, dtype="float32", device=x.backend) * 2, (5, 12))
add("causal mask", lambda x: F.where(F.tril(F.ones((9, 9), device=x.backend)) > 0, x, -1e9), (3, 9, 9))
add("one hot", lambda i: F.one_hot(i, 10), ("int64", (6,)))
add("resize nearest", lambda x: F.interpolate(x, (14, 14), mode="nearest"), (1, 3, 7, 7))
add("resize linear", lambda x: F.interpolate(x, (10, 11), mode="linear"), (1, 3, 7, 7))
add("random", lambda x: x + F.astype(x.backend.random_bits((6, 7), 3, 5), "float32"), (6, 7))
for op in ("floor_divide", "remainder", "pow", "atan2", "maximum", "fmod", "bitwise_and", "bitwise_xor"):
    kind = "int32" if op.startswith("bitwise") else "float32"
    add(f"binary {op}", lambda x, y, op=op: x.backend.binary(op, x, y), (kind, (9, 7)), (kind, (7,)))
add("gelu, erf, sigmoid", lambda x: F.gelu(x) + F.erf(x) * F.sigmoid(x) + F.softplus(x), (40, 10))
add("ints", lambda x, y: (x // y) * 3 + x % y, ("int32", (20, 4)), ("int32", (4,)))
add("small ints", lambda x, y: x * y + 1, ("int8", (20, 5)), ("int8", (5,)))

# -- attention ---------------------------------------------------------------------------------------------------------

for q, kv, heads, size in [(1, 64, 4, 16), (1, 2048, 8, 64), (70, 70, 2, 16), (128, 128, 4, 64), (5, 9, 1, 7)]:
    shapes = (1, heads, q, size), (1, heads, kv, size), (1, heads, kv, size)
    add(f"attention {q} of {kv}", lambda q, k, v: F.attention(q, k, v), *shapes)
add("attention causal", lambda q: F.attention(q, q, q, is_causal=True), (2, 3, 20, 16))
add("attention with a bias", lambda q, b: F.attention(q, q, q, b), (1, 4, 24, 8), (4, 24, 24))
add("attention of grouped heads", lambda q, k: F.attention(q, k, k), (1, 8, 6, 16), (1, 2, 30, 16))
add("attention capped", lambda q: F.attention(q, q, q, softcap=5.0, scale=0.3), (1, 2, 12, 16))
