"""Products and convolutions at both sides of what decides between kernels: sizes, dtypes, layouts, readers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from emberlet import functional as F
from emberlet.tensor import Tensor
from emberlet.wgpu_backend.lower.tiles import Tile

from .programs import add, conv, weight

Part = tuple[Callable[..., Any], tuple[Any, ...]]


def together(name: str, parts: list[Part]) -> None:
    """One program of several unrelated ones, each a function and its inputs."""
    inputs: list[Any] = []
    ranges = []
    for _, given in parts:
        ranges.append((len(inputs), len(inputs) + len(given)))
        inputs += given

    def all_of_them(*tensors: Tensor) -> tuple[Any, ...]:
        results: list[Any] = []
        for (function, _), (begin, end) in zip(parts, ranges, strict=True):
            found = function(*tensors[begin:end])
            results += found if isinstance(found, tuple) else (found,)
        return tuple(results)

    add(name, all_of_them, *inputs)


def turned(x: Tensor) -> Tensor:
    return F.permute_dims(x, (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2))


def product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def counter(x: Tensor, *shape: int) -> Tensor:
    """0, 1, 2, …, which kernels compute and do not load."""
    return F.reshape(F.arange(math.prod(shape), dtype="float32", device=x.backend), shape)


# -- products: around every size at which another kernel takes over ---------------------------------------------------

for m in (1, 2, 3, 5, 7, 8, 12, 13):
    together(
        f"edge: products of {m} rows", [(product, ((m, k), (k, n))) for k in (1, 3, 4, 5) for n in (1, 3, 4, 7, 8, 9)]
    )
for m, k in [(1, 16), (1, 511), (1, 512), (1, 513), (1, 1025), (2, 513), (16, 513)]:
    together(f"edge: products of {m} rows of {k}",
        [(product, ((m, k), (k, n))) for n in (8, 9, 12, 16, 24, 31, 32, 33, 127, 128, 129, 1024, 1025)])  # fmt: skip
for dtype in ("float16", "int8", "uint8", "int16", "uint16", "int32", "uint32"):
    together(f"edge: products of {dtype}", [
        (product, ((dtype, (m, k)), (dtype, (k, n)))) for m, k, n in
        [(1, 4, 8), (1, 3, 8), (1, 8, 33), (2, 4, 8), (3, 5, 7), (6, 9, 16), (7, 64, 24)]
    ])  # fmt: skip
for one, other in [("int8", "int8"), ("uint8", "int8"), ("int16", "uint8"), ("uint16", "int8"), ("int8", "int32")]:
    together(f"edge: integer products of {one} and {other}", [
        (lambda a, b, z=z: (F.astype(a, "int32") - z) @ F.astype(b, "int32"), ((one, (m, k)), (other, (k, n))))
        for z in (0, 3)
        for m, k, n in [(1, 4, 8), (1, 8, 40), (4, 7, 8), (6, 3, 9), (7, 16, 12), (2, 4, 7), (13, 64, 70)]
    ])  # fmt: skip
    together(f"edge: integer convolutions of {one} and {other}", [
        (lambda a, b, p=padding, s=stride: conv(F.astype(a, "int32") - 2, F.astype(b, "int32"), s, p),
         ((one, (1, c, 6, 7)), (other, (5, c, 3, 3))))
        for c in (1, 2, 3) for stride, padding in [(1, 0), (1, 1), (2, 1)]
    ])  # fmt: skip
READ = {  # how an operand is read
    "turned": turned,
    "backwards": lambda x: F.flip(x, -1),
    "upside down": lambda x: F.flip(x, -2),
    "every other": lambda x: F.concat([x, x], -1)[..., ::2],
    "a part": lambda x: F.pad(x, ((0, 0),) * (len(x.shape) - 1) + ((0, 1),))[..., 1:],
    "a sum": lambda x: x + 1,
    "a costly function": lambda x: F.exp(x) + F.sin(x),
    "padded": lambda x: F.pad(x, ((0, 0),) * (len(x.shape) - 2) + ((1, 1), (2, 2))),
    "joined": lambda x: F.concat([x[..., :2], x], -1),
    "a row": lambda x: F.broadcast_to(x[..., :1, :], x.shape),
    "a column": lambda x: F.broadcast_to(x[..., :1], x.shape),
    "from int8": lambda x: F.astype(F.astype(x, "int8"), "float32"),
    "a flag": lambda x: F.astype(x > 0, "float32"),
    "taken": lambda x: F.take(x, weight(x, (8,), "int64"), axis=-1),
    "chosen": lambda x: F.where(x > 0, x, 0.5),
    "a ramp": lambda x: x * 0 + F.reshape(F.arange(x.shape[-1], dtype="float32", device=x.backend), (1, -1)),
    "a constant": lambda x: F.zeros(x.shape, device=x.backend),
    "reshaped": lambda x: F.reshape(F.reshape(x, (-1, 2)), x.shape),
    "split and turned": lambda x: F.reshape(turned(F.reshape(x, (4, -1))), x.shape),
}
for how, read in READ.items():

    def left(a: Tensor, b: Tensor, read: Any = read) -> Tensor:
        x = read(a)
        return x @ b[: x.shape[-1]]

    def right(a: Tensor, b: Tensor, read: Any = read) -> Tensor:
        y = read(b)
        return a[:, : y.shape[0]] @ y

    together(f"edge: products, left operand {how}", [
        (left, ((m, k), (40, n))) for m, k, n in [(12, 12, 16), (12, 12, 9), (40, 24, 64)]
    ])  # fmt: skip
    together(f"edge: products, right operand {how}", [
        (right, ((m, 72), (k, n))) for m, k, n in [(40, 12, 16), (42, 12, 12), (44, 24, 64), (1, 12, 16)]
    ])  # fmt: skip
    add(f"edge: rows, {how}", lambda x, read=read: (F.softmax(read(x), -1), F.softmax(read(x), 0)), (12, 16))
    add(f"edge: maps, {how}", lambda x, y, read=read: (
        F.exp(read(x)), read(x)[:8, :8] + y[0], turned(read(x))), (12, 16), (8, 8))  # fmt: skip
    add(f"edge: sums, {how}", lambda x, read=read: (F.sum(read(x), 0), F.sum(read(x), 1), F.max(read(x))), (12, 16))
    add(f"edge: scans, {how}", lambda x, read=read: (
        F.cumulative_sum(read(x), axis=0), F.cumulative_sum(read(x), axis=1)), (12, 16))  # fmt: skip
STORED = {  # what is made of a result
    "turned": turned,
    "a test": lambda y: y > 0,
    "int8": lambda y: F.astype(y, "int8"),
    "uint8": lambda y: F.astype(y, "uint8"),
    "int32": lambda y: F.astype(y, "int32"),
    "float16": lambda y: F.astype(y, "float16"),
    "of two": lambda y: F.reshape(y, (2, -1, 2)) * 2,
    "a part of a concatenation": lambda y: F.concat([y[:, :1], y * 2], 1),
    "both": lambda y: (y, F.exp(y)),
    "with itself": lambda y: y * F.sigmoid(y),
}
for what, made in STORED.items():
    together(f"edge: products made {what}", [
        (lambda a, b, made=made: made(a @ b), ((m, 16), (16, n))) for m, n in [(1, 24), (8, 8), (12, 9), (36, 64)]
    ])  # fmt: skip
    add(f"edge: convolutions made {what}", lambda x, w, made=made: made(F.reshape(conv(x, w, 1, 1), (12, -1))),
        (1, 3, 12, 9), (12, 3, 3, 3))  # fmt: skip
together("edge: batches of products", [
    (product, ((2, 3, 8, 12), (2, 3, 12, 8))),
    (product, ((3, 8, 12), (2, 3, 12, 8))),
    (product, ((2, 1, 8, 12), (3, 12, 8))),
    (product, ((5, 15, 12), (12, 8))),
    (product, ((5, 16, 12), (12, 8))),
    (product, ((5, 1, 12), (12, 8))),
    (product, ((1, 3, 12), (12, 8))),
    (product, ((4, 3, 12), (1, 12, 8))),
    (product, ((12,), (12, 8))),
    (product, ((3, 12), (12,))),
])  # fmt: skip

# -- products through workgroup memory --------------------------------------------------------------------------------

for count, m, k, n in [
    (256, 32, 32, 32), (255, 32, 32, 32), (256, 31, 32, 32), (256, 32, 31, 32), (256, 32, 32, 31), (256, 33, 36, 34),
    (64, 129, 64, 136), (128, 128, 48, 129), (256, 40, 33, 35),
]:  # fmt: skip
    add(f"edge: {count} products {m}x{k}x{n}", product, (count, m, k), (count, k, n))
add("edge: 256 products turned", lambda a, b: turned(a) @ turned(b), (256, 40, 64), (256, 48, 40))
add("edge: 256 products of float16", lambda a, b: F.astype(a, "float16") @ F.astype(b, "float16"),
    (256, 32, 40), (256, 40, 36))  # fmt: skip
add("edge: 256 products of int32", product, ("int32", (256, 32, 40)), ("int32", (256, 40, 36)))
add("edge: 256 products with an epilogue", lambda a, b, c: F.relu(a @ b + c) * 2,
    (256, 64, 64), (256, 64, 64), (64,))  # fmt: skip
add("edge: 256 products made a test", lambda a, b: a @ b > 1, (256, 64, 64), (256, 64, 64))
add("edge: 256 products made turned", lambda a, b: turned(a @ b), (256, 64, 64), (256, 64, 64))
add(
    "edge: 256 products of a sum", lambda a, b: (a + 1) @ F.astype(b, "float32"), (256, 64, 64), ("int8", (256, 64, 64))
)
add("edge: 256 products by one matrix", product, (256, 64, 64), (64, 64))
add("edge: pointwise convolutions in blocks", conv, (256, 32, 8, 8), (64, 32, 1, 1))
add("edge: pointwise convolutions in groups", lambda x, w: conv(x, w, 1, 0, 1, 2), (128, 64, 8, 8), (64, 32, 1, 1))
add("edge: open products in blocks", lambda x: x @ weight(x, (64, 64)), (256, 40, 64),
    dims={"x": {1: ("length", (1, 512))}})  # fmt: skip

add("edge: products of counters", lambda a, b: (
    counter(a, 9, 8) @ b, a @ counter(a, 8, 12), counter(a, 1, 8) @ b, a[:1] @ counter(a, 8, 40)),
    (9, 8), (8, 12))  # fmt: skip
add("edge: convolutions of counters", lambda x, w, v: (
    conv(counter(x, 1, 4, 8, 9), w), conv(x, counter(x, 6, 4, 3, 3)), conv(counter(x, 1, 4, 8, 9), v, 1, 0, 1, 4),
    conv(x, counter(x, 4, 1, 3, 3), 1, 0, 1, 4)), (1, 4, 8, 9), (6, 4, 3, 3), (4, 1, 3, 3))  # fmt: skip
add("edge: products of nothing", lambda a, b, c, d: tuple(
    F.sum(y) for y in (a @ b, c @ b, a[:, :, :0] @ b[:0], a @ d)), (0, 4, 8), (8, 9), (2, 0, 8), (8, 0))  # fmt: skip
add("edge: convolutions of nothing", lambda x, w, v, u: tuple(
    F.sum(y) for y in (conv(x, w), conv(x, v, 1, 0, 1, 4), conv(x, u), conv(x, w[:0]), conv(x, w, 1, 1))),
    (0, 4, 8, 9), (6, 4, 3, 3), (4, 1, 3, 3), (6, 4, 1, 1))  # fmt: skip
add("edge: products over nothing", lambda a, b: a[:, :0] @ b[:0] + 1, (4, 8), (8, 9))
add("edge: rows of nothing", lambda x: (
    F.sum(F.softmax(x, 1)), F.sum(x, 0), F.sum(F.sum(x, 1) + 1),
    F.sum(F.cumulative_sum(x, axis=0))), (0, 6))  # fmt: skip
together("edge: convolutions with few results", [
    (lambda x, w, g=groups: conv(x, w, 1, 0, 1, g), ((1, 32 * groups, 5, 5), (8, 32, 3, 3))) for groups in (1, 2)
])  # fmt: skip
together("edge: convolutions in three dimensions", [
    (lambda x, w, g=groups: conv(x, w, 1, 0, 1, g), ((1, 4, 4, 5, 6), (4, 4 // groups, 2, 2, 3))) for groups in (1, 4)
])  # fmt: skip

# -- products by panels, and by given tiles ---------------------------------------------------------------------------

for m, k, n in [
    (256, 256, 224), (240, 256, 288), (256, 272, 256), (256, 264, 256), (32, 1024, 512), (32, 1008, 512),
    (64, 1024, 2048), (128, 512, 2048), (160, 512, 2048), (32, 512, 1056), (1024, 32, 512),
]:  # fmt: skip
    add(f"edge: panels of {m}x{k}x{n}", product, (m, k), (k, n))
add("edge: batches of panels", product, (4, 128, 128), (4, 128, 256))
add("edge: panels turned", lambda a, b: turned(turned(a) @ turned(b)), (256, 256), (256, 256))
add("edge: panels of float16", lambda a, b: F.astype(a, "float16") @ F.astype(b, "float16"),
    (256, 256), (256, 256))  # fmt: skip
add("edge: panels of int32", product, ("int32", (256, 256)), ("int32", (256, 256)))
add("edge: panels made a test", lambda a, b: a @ b > 1, (256, 256), (256, 256))
add("edge: panels with an epilogue", lambda a, b, c: F.relu(a @ b + c), (256, 256), (256, 256), (256,))
add("edge: pointwise convolutions by panels", lambda x, w: F.relu(conv(x, w)), (1, 256, 16, 16), (256, 256, 1, 1))
for tile in [(1, 1, 1, 64), (2, 4, 1, 64), (4, 4, 4, 32), (3, 7, 1, 16), (8, 8, 2, 64, 0, 4), (1, 4, 4, 64, 0, 64),
             (0, 0, 0, 0, 1), (0, 0, 0, 0, 2)]:  # fmt: skip
    named = " ".join(map(str, tile))
    add(f"edge: tile {named} of products", product, (33, 40), (40, 36), tile=Tile(*tile))
    add(f"edge: tile {named} of products into heads", lambda a, b: F.exp(F.permute_dims(a @ b, (1, 0, 2))),
        (2, 64, 64), (2, 64, 130), tile=Tile(*tile))  # fmt: skip
    add(f"edge: tile {named} of pointwise convolutions", conv, (2, 64, 8, 8), (64, 64, 1, 1), tile=Tile(*tile))
    if tile[0]:
        add(f"edge: tile {named} of convolutions", lambda x, w: F.relu(conv(x, w, 1, 1)), (1, 8, 9, 12), (10, 8, 3, 3),
            tile=Tile(*tile))  # fmt: skip

# -- convolutions -----------------------------------------------------------------------------------------------------

for groups, cin, cout in [(1, 1, 1), (1, 3, 2), (1, 4, 3), (2, 4, 4), (4, 4, 4), (4, 4, 8), (4, 8, 4)]:
    for spatial, kernel in [((9,), (3,)), ((6, 7), (3, 3)), ((6, 7), (1, 1)), ((5, 12), (2, 3)), ((4, 3), (2, 2))]:
        together(f"edge: convolutions {cin} to {cout} in {groups}, {len(spatial)}-D {spatial[-1]} by {kernel[-1]}", [
            (lambda x, w, s=stride, p=padding, d=dilation, g=groups: conv(x, w, s, p, d, g),
             ((2, cin, *spatial), (cout, cin // groups, *kernel)))
            for stride, padding, dilation in [(1, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 1), (3, 1, 1), (1, 2, 2)]
            if all(d + 2 * padding > dilation * (n - 1) for d, n in zip(spatial, kernel, strict=True))
        ])  # fmt: skip
together("edge: depthwise convolutions", [
    (lambda x, w, s=stride: conv(x, w, s, 0, 1, 4), ((1, 4, h, w), (4, 1, k, m)))
    for stride, h, w, k, m in [
        (1, 7, 10, 7, 7), (1, 8, 11, 7, 8), (2, 9, 9, 3, 3), (2, 9, 8, 3, 3), (1, 3, 6, 3, 3), (1, 4, 5, 2, 2),
        (1, 9, 12, 1, 3),
    ]
])  # fmt: skip
together("edge: depthwise convolutions of what is computed", [
    (lambda x, w: conv(x * 2, w, 1, 0, 1, 4), ((1, 4, 8, 8), (4, 1, 3, 3))),
    (lambda x, w: conv(F.flip(x, -1), w, 1, 0, 1, 4), ((1, 4, 8, 8), (4, 1, 3, 3))),
    (lambda x, w: conv(F.permute_dims(x, (0, 1, 3, 2)), w, 1, 0, 1, 4), ((1, 4, 8, 8), (4, 1, 3, 3))),
    (lambda x, w: conv(x, F.flip(w, -1), 1, 0, 1, 4), ((1, 4, 8, 8), (4, 1, 3, 3))),
    (lambda x, w: conv(x, F.astype(w, "float32"), 1, 0, 1, 4), ((1, 4, 8, 8), ("int8", (4, 1, 3, 3)))),
    (lambda x, w: conv(F.permute_dims(x, (0, 3, 1, 2)), w, 1, 0, 1, 4), ((1, 8, 8, 4), (4, 1, 3, 3))),
    (lambda x, w: conv(x, w, 1, 0, 1, 4), (("int32", (1, 4, 8, 8)), ("int32", (4, 1, 3, 3)))),
])  # fmt: skip
together("edge: convolutions of what is computed", [
    (lambda x, w: conv(x * 2, w, 1, 1), ((1, 4, 8, 9), (6, 4, 3, 3))),
    (lambda x, w: conv(F.flip(x, -1), w), ((1, 4, 8, 19), (6, 4, 3, 3))),
    (lambda x, w: conv(F.permute_dims(x, (0, 1, 3, 2)), w), ((1, 4, 18, 8), (6, 4, 3, 3))),
    (lambda x, w: conv(F.permute_dims(x, (0, 3, 1, 2)), w), ((1, 8, 18, 4), (6, 4, 3, 3))),
    (lambda x, w: conv(x, F.flip(w, -1)), ((1, 4, 8, 18), (6, 4, 3, 3))),
    (lambda x, w: conv(x, F.flip(w, 0)), ((1, 4, 8, 18), (6, 4, 3, 3))),
    (lambda x, w: conv(x, w * 2), ((1, 4, 8, 18), (6, 4, 3, 3))),
    (lambda x, w: conv(x, F.permute_dims(w, (1, 0, 2, 3))), ((1, 4, 8, 18), (4, 6, 3, 3))),
])  # fmt: skip
for rows in (1, 2, 3, 6, 7, 8, 20):
    together(f"edge: convolutions to {rows} channels", [
        (conv, ((1, c, 5, w), (rows, c, h, k)))
        for c in (1, 2, 5) for w in (7, 9, 10, 18, 25) for h, k in [(1, 1), (1, 3), (3, 3)]
    ])  # fmt: skip
add("edge: convolutions of large kernels", lambda x, w, v: (conv(x, w), conv(x, v)), (1, 2, 5, 20), (4, 2, 1, 7),
    (4, 2, 1, 8))  # fmt: skip

# -- rows of many columns, numbers of 8 bits, indices that do not come apart ------------------------------------------

for k in (4, 40):
    together(f"edge: products of one row of {k} to many columns", [
        (product, ((1, k), (k, n)))
        for n in (40, 48, 64, 96, 100, 126, 130, 255, 256, 257, 383, 384, 1000, 1023, 1026, 1536, 2047, 2048, 2049,
                  8192, 8193, 9000)
    ])  # fmt: skip
together("edge: long products of one row", [
    (product, ((1, k), (k, n))) for k in (2047, 2048, 2049, 3072, 3073) for n in (12, 300)
])  # fmt: skip
for one, other in [("int8", "int8"), ("uint8", "int8")]:
    together(f"edge: products of 8 bits, {one} and {other}", [
        (lambda a, b: F.matmul_integer(a, b), ((one, (m, k)), (other, (k, n))))
        for m in (1, 2, 7) for k, n in [(4, 8), (3, 8), (4, 7), (5, 9), (16, 33), (64, 40)]
    ])  # fmt: skip
    together(f"edge: convolutions of 8 bits, {one} and {other}", [
        (lambda x, w, g=groups: F.conv_integer(x, w, padding=[(1, 1), (0, 0)], groups=g),
         ((one, (1, c * groups, h, n)), (other, (4, c, 3, 2))))
        for groups, c, h, n in [(1, 1, 3, 5), (1, 2, 6, 7), (2, 3, 4, 9), (1, 4, 1, 4), (4, 1, 5, 6)]
    ])  # fmt: skip


def mixed(x: Tensor) -> Tensor:
    """Rows and columns of an image from positions that run across both."""
    n, c, h, w = x.shape
    return F.reshape(F.permute_dims(F.reshape(x, (n, c, w, h)), (0, 1, 3, 2)), (n, c, h, w))


together("edge: convolutions of what is reshaped", [
    (lambda x, w, g=groups: conv(mixed(x), w, 1, 0, 1, g), ((1, 4, h, n), (4, 4 // groups, k, m)))
    for groups, h, n, k, m in [(1, 9, 10, 3, 3), (1, 6, 15, 2, 3), (4, 9, 10, 3, 3), (1, 9, 10, 1, 3)]
])  # fmt: skip
together("edge: convolutions of a part of a row", [
    (lambda x, w, g=groups: conv(F.reshape(x, (1, 4, 90))[:, :, 1:85], w, 1, 0, 1, g),
     ((4, 9, 10), (4, 4 // groups, 3)))
    for groups in (1, 4)
])  # fmt: skip
