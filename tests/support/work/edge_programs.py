"""Reductions, attention, movement and elementwise operations at both sides of what decides between kernels."""

from __future__ import annotations

from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend.protocol import BINARY, REDUCE, UNARY
from emberlet.tensor import Tensor

from .more_programs import DTYPES, each, of
from .programs import add, weight


def repeated(x: Tensor, count: int) -> Tensor:
    for i in range(count):
        x = F.abs(x) + i
    return x


def joined(x: Tensor, count: int) -> Tensor:
    y = x
    for i in range(count):
        y = y * x + i
    return y


def chained(x: Tensor, count: int) -> Tensor:
    """A chain of operations of one source."""
    for i in range(count):
        x = F.sin(x) if i % 2 else F.abs(x)
    return x


def forked(x: Tensor, given: tuple[Tensor, ...]) -> Tensor:
    """Two branches that join again; one reads all that is given."""
    y = x
    for other in given:
        y = y * other
    return F.exp(x) + y


def normalized(x: Tensor, given: tuple[Tensor, ...]) -> Tensor:
    """A region of rows that also reads all that is given."""
    y = x - F.max(x, 1, keepdims=True)
    for other in given:
        y = y * other
    return y / F.sum(y, 1, keepdims=True)


def inside(x: Tensor) -> tuple[Tensor, Tensor]:
    y = F.exp(x)
    return y * x, y


# -- reductions, rows and scans around every limit --------------------------------------------------------------------

for length in (127, 128, 129, 255, 256, 512, 513, 1023, 1024, 1025, 8191, 8192, 60000, 60001):
    add(f"edge: reductions of {length}", lambda x: (
        F.sum(x, 1), F.max(x, 1), F.argmax(x, 1), F.all(x > 0, 1), F.sum(F.astype(x, "int32"), 1)),
        (1, length))  # fmt: skip
    add(f"edge: reductions of {length}, several", lambda x: (F.sum(x, 1), F.argmin(x, 1)), (33, length))
    add(f"edge: rows of {length}", lambda x: (F.softmax(x, 1), F.layer_norm(x, weight(x, x.shape[1:]),
        weight(x, x.shape[1:]))) if x.shape[1] <= 1 << 13 else F.softmax(x, 1), (3, length))  # fmt: skip
    add(
        f"edge: scans of {length}",
        lambda x: (F.cumulative_sum(x, axis=1), x.backend.cumulative("max", x, 1)),
        (2, length),
    )
for count in (1, 2, 31, 32, 33, 511, 512, 2048, 2049, 16384, 16385, 65535, 65536):
    add(f"edge: {count} reductions", lambda x: (F.sum(x, 1), F.argmax(x, 1)), (count, 128))
    add(f"edge: {count} rows", lambda x: F.softmax(x, 1), (count, 128))
    add(f"edge: {count} scans", lambda x: F.cumulative_sum(x, axis=1), (count, 128))
for length in (4, 8, 31, 32, 33, 64, 100):
    add(f"edge: short rows of {length}", lambda x: (F.softmax(x, -1), F.softmax(x, 1)), (2, 5, length))
    add(f"edge: rows to one value of {length}", lambda x: (
        F.var(x, -1), F.exp(F.max(x, -1, keepdims=True) + F.sum(x, -1, keepdims=True))), (6, length))  # fmt: skip
for count in (255, 256, 257):
    for op in ("none", "add", "mul", "max", "min"):
        add(f"edge: scatters of {count} lines, {op}", lambda x, i, u, op=op: x.backend.scatter(x, i, u, 0, op),
            (9, count), ("int64", (4, count)), (4, count))  # fmt: skip
add("edge: scatters into parts of lines", lambda x, i, u: x.backend.scatter(x, i, u, 1, "add"),
    (300, 9, 4), ("int64", (300, 5, 3)), (300, 5, 3))  # fmt: skip
add(
    "edge: scatters of nothing", lambda x, i, u: x.backend.scatter(x, i, u, 0, "add"), (9, 4), ("int64", (0, 4)), (0, 4)
)
add("edge: scatters of bools", lambda x, i, u: x.backend.scatter(x, i, u, 0, "none"),
    ("bool", (9, 300)), ("int64", (4, 300)), ("bool", (4, 300)))  # fmt: skip
for op in ("add", "max"):
    add(f"edge: scatters of float16, {op}", lambda x, i, u, op=op: x.backend.scatter(x, i, u, 0, op),
        ("float16", (9, 300)), ("int64", (4, 300)), ("float16", (4, 300)))  # fmt: skip
    add(f"edge: scatters of few float16, {op}", lambda x, i, u, op=op: x.backend.scatter(x, i, u, 0, op),
        ("float16", (9, 3)), ("int64", (4, 3)), ("float16", (4, 3)))  # fmt: skip
for length in (1, 2, 3, 1023, 1024, 1025, 2049):
    add(f"edge: sorts of {length}", lambda x: F.sort(x), (3, length))
for size in (16383, 16384, 65535, 65536):
    add(f"edge: maps of {size}", lambda x: (F.exp(x), F.astype(x, "uint8")), (size,))

# -- attention --------------------------------------------------------------------------------------------------------

for q, kv, heads, size in [
    (1, 16, 1, 8), (2, 15, 1, 8), (7, 64, 1, 16), (7, 65, 1, 16), (8, 65, 1, 16), (9, 300, 2, 5), (64, 32, 4, 128),
    (64, 32, 4, 129), (127, 40, 2, 16), (129, 3, 2, 16), (1024, 64, 32, 64), (16, 60000, 1, 4), (16, 60001, 1, 4),
    (512, 512, 8, 128), (3, 20, 2, 127), (33, 200, 3, 12),
]:  # fmt: skip
    add(f"edge: attention {q} of {kv} in {heads} by {size}", lambda q, k, v: F.attention(q, k, v),
        (1, heads, q, size), (1, heads, kv, size), (1, heads, kv, size))  # fmt: skip
add(
    "edge: attention with wider values",
    lambda q, k, v: F.attention(q, k, v),
    (1, 2, 9, 8),
    (1, 2, 20, 8),
    (1, 2, 20, 13),
)
add("edge: attention of float16", lambda q: F.attention(q, q, q), ("float16", (1, 2, 20, 8)))
add("edge: attention into rows", lambda q: F.reshape(F.permute_dims(F.attention(q, q, q), (0, 2, 1, 3)), (20, 16)),
    (1, 2, 20, 8))  # fmt: skip
add("edge: attention made a test", lambda q: F.attention(q, q, q) > 0, (1, 2, 20, 8))
add("edge: attention with a bias of float16", lambda q, b: F.attention(q, q, q, F.astype(b, "float32")),
    (1, 2, 20, 8), ("float16", (20, 20)))  # fmt: skip

# -- joining and splitting --------------------------------------------------------------------------------------------

for count in (2, 5, 6, 7, 9, 17):
    add(f"edge: {count} in a row", lambda *given: F.concat([F.exp(x) for x in given], 0), *[(3, 4)] * count)
    add(f"edge: {count} sums in a row", lambda *given: F.concat([F.sum(x, 1) for x in given], 0), *[(3, 4)] * count)
    add(f"edge: sum of {count}", lambda *given: sum(given[1:], given[0]), *[(3, 4)] * count)
    add(f"edge: {count} in turn", lambda x, n=count: sum([F.sin(x + i) for i in range(n)], x), (5, 4))
add("edge: halves of sums in a row", lambda x, y: F.concat([F.sum(x, 1), y], 0), (3, 4), (3,))
add("edge: a part twice in a row", lambda x: F.concat([F.sum(x, 1)] * 2, 0), (3, 4))
add("edge: nothing in a row", lambda x: F.concat([F.sum(x, 1), x[:0, 0], F.max(x, 1)], 0), (3, 4))
add("edge: long chains", lambda x: repeated(x, 60), (6, 5))
add("edge: forks that join", lambda x, y: (
    joined(F.sum(x, 1), 5), joined(F.sum(x, 1), 30), joined(x @ y, 5), joined(F.softmax(x, 1), 3)),
    (6, 5), (5, 7))  # fmt: skip
add("edge: forks that do not join", lambda x: (F.exp(F.sum(x, 1)), F.sin(F.sum(x, 1))), (6, 5))
add("edge: a fork with another shape", lambda x: F.exp(F.sum(x, 1)) * F.sum(x, 1)[:1], (6, 5))
add("edge: two sums in one", lambda x, y: F.sum(x, 1) * F.max(y, 1), (6, 5), (6, 9))
add("edge: a sum and a product in one", lambda x, y: F.sum(x, 1, keepdims=True) + x @ y, (6, 5), (5, 1))
add("edge: computed again", lambda x, y: (F.exp(x)[:, None] + y, (x * 2)[:, None] * y), (6,), (6, 9))
add("edge: normalizations", lambda x: (
    (x - F.mean(x, 1, keepdims=True)) / F.sqrt(F.var(x, 1, keepdims=True) + 1e-5),
    F.log_softmax(x, 0), x / F.max(F.abs(x)), F.sum(x, 1, keepdims=True) * 2), (6, 12))  # fmt: skip
add("edge: a normalization that is also read inside", lambda x: (
    F.softmax(x, 1), F.sum(F.exp(x - F.max(x, 1, keepdims=True)), 1, keepdims=True)), (6, 12))  # fmt: skip
add("edge: rows of ints and bools", lambda x: (
    x - F.max(x, 1, keepdims=True), F.astype(F.all(x > 0, 1, keepdims=True), "int32") * x),
    ("int32", (6, 12)))  # fmt: skip
add("edge: rows over two axes", lambda x: x - F.mean(x, (1, 2), keepdims=True), (6, 3, 4))
add("edge: rows over axes apart", lambda x: x - F.mean(x, (0, 2), keepdims=True), (6, 3, 4))
for start, stop, step in [(0, 6, 2), (5, None, -1), (1, 5, 3)]:
    add(f"edge: parts {start}:{stop}:{step}", lambda x, s=slice(start, stop, step): (
        x[s] * 2, x[:, s] + 1, F.sum(x[s], 0), x[s] @ x[:, s]), (6, 6))  # fmt: skip

# -- operations on fewer elements than a vector has -------------------------------------------------------------------

for dtype in DTYPES:
    add(f"edge: unary operations on few {dtype}", each(lambda op, x: x.backend.unary(op, x), of(UNARY, dtype)),
        (dtype, (3,)))  # fmt: skip
    add(f"edge: binary operations on few {dtype}", each(lambda op, x, y: x.backend.binary(op, x, y), of(BINARY, dtype)),
        (dtype, (3,)), (dtype, (1,)))  # fmt: skip
    add(
        f"edge: casts of few {dtype}",
        lambda x: tuple(F.astype(x, d) for d in DTYPES if d != x.dtype.name),
        (dtype, (3,)),
    )
    add(f"edge: order of few {dtype}", lambda x: (F.sort(x), F.sort(x, descending=True)), (dtype, (3,)))
    names = [n for n in REDUCE if (dtype == "bool") == (n in ("any", "all"))]
    add(
        f"edge: reductions of few {dtype}",
        each(lambda op, x: x.backend.reduce(op, x, (1,), False), names),
        (dtype, (3, 3)),
    )
    add(f"edge: choices of {dtype}", lambda c, x, y: (
        F.where(c, x, y), F.where(c[:, None], F.permute_dims(x[None], (1, 0)), y), F.concat([x, y], 0)[1:5]),
        ("bool", (3,)), (dtype, (3,)), (dtype, (3,)))  # fmt: skip
for one, other in [("float32", "int32"), ("uint32", "float32"), ("int32", "uint32"), ("float16", "int16"),
                   ("uint16", "float16"), ("int8", "uint8"), ("bfloat16", "uint16"),
                   ("int16", "bfloat16")]:  # fmt: skip
    for count in (3, 8):
        add(f"edge: bits of {count} {one} as {other}", lambda x, a=one, b=other: x.backend.bitcast(
            F.astype(x, a), getattr(dtypes, b)), (count,))  # fmt: skip
NUMBERS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, -1.0, float("inf"), float("nan"))
for op in ("pow", "maximum", "minimum", "add", "lt"):
    for count in (3, 8):
        add(f"edge: {op} of {count} and numbers", each(lambda n, x, op=op: x.backend.binary(
            op, x, x.backend.full((), n, x.dtype)), NUMBERS), (count,))  # fmt: skip
for way, made in {
    "joined and turned": lambda x, y: F.permute_dims(F.concat([x, y], 1), (1, 0)),
    "joined and backwards": lambda x, y: F.flip(F.concat([x, y], 1), 1),
    "joined and reshaped": lambda x, y: F.reshape(F.concat([x, y], 1), (-1, 9)),
    "joined, every other": lambda x, y: F.concat([x, y], 1)[:, ::2],
    "joined with a constant": lambda x, y: F.concat([x, F.ones((6, 2), device=x.backend), y], 1),
    "padded and turned": lambda x, y: F.permute_dims(F.pad(x, ((1, 0), (2, 3))), (1, 0)),
    "padded and backwards": lambda x, y: F.flip(F.pad(x, ((1, 0), (2, 3))), 1),
    "padded and reshaped": lambda x, y: F.reshape(F.pad(x, ((1, 1), (2, 1))), (-1, 6)),
    "padded by rows": lambda x, y: F.pad(x, ((1, 2), (0, 0))),
    "padded sum": lambda x, y: F.pad(x + y[:, :9], ((0, 0), (1, 1)), value=2.0),
    "padded counter": lambda x, y: F.pad(F.arange(9, dtype="float32", device=x.backend) * 2, ((2, 2),)) + y[0, :1],
    "turned back": lambda x, y: F.permute_dims(F.permute_dims(x, (1, 0)) + 1, (1, 0)),
    "three axes turned": lambda x, y: F.permute_dims(F.reshape(y, (3, 4, 6)), (2, 0, 1)) + 1,
    "three axes partly turned": lambda x, y: F.permute_dims(F.reshape(y, (3, 4, 6)), (1, 0, 2)) * 2,
    "expanded": lambda x, y: F.broadcast_to(x[:, :1], (6, 12)) * y,
    "expanded rows": lambda x, y: F.broadcast_to(y[:1], (6, 12)) - y,
    "by digits": lambda x, y: F.reshape(F.tile(x, (2, 2)), (-1,)) + 1,
    "repeated": lambda x, y: F.repeat(x, 3, axis=1) + 1,
    "taken": lambda x, y: F.take(y, F.astype(x[0], "int32"), axis=1),
    "taken rows": lambda x, y: F.take(y, F.astype(x[0], "int32"), axis=0),
    "taken and summed": lambda x, y: F.sum(F.take(y, F.astype(x[0], "int32"), axis=0), 0),
    "gathered": lambda x, y: x.backend.gather(y, F.astype(x, "int32"), 1),
    "negative positions": lambda x, y: F.take(y, F.astype(x[0], "int32") - 3, axis=1),
    "bools": lambda x, y: F.logical_xor(x > 0, F.flip(x, 1) < 1),
    "bools summed": lambda x, y: F.sum(F.astype(x > 0, "int32"), 1) + F.astype(F.any(y > 1, 1), "int32"),
    "narrow": lambda x, y: F.astype(F.flip(F.astype(x, "int8"), 1), "int32") + F.astype(F.astype(x, "uint8"), "int32"),
    "narrow, every other": lambda x, y: F.astype(F.astype(y, "int8")[:, ::2], "int32") + 1,
    "narrow, turned": lambda x, y: F.permute_dims(F.astype(y, "uint8"), (1, 0)),
}.items():  # fmt: skip
    add(f"edge: {way}", lambda x, y, made=made: (made(x, y), F.exp(F.astype(made(x, y), "float32"))), (6, 9), (6, 12))
    add(f"edge: {way}, numbers at run time", lambda x, y, made=made: F.sum(F.astype(made(x * 2, y + 1), "float32")),
        (6, 9), (6, 12))  # fmt: skip
for dtypes_of in (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")):
    add(f"edge: quantized products of {' and '.join(dtypes_of)}", lambda a, b, x, y: (
        F.matmul_integer(a, b, x, y), F.matmul_integer(a, b), F.matmul_integer(a[:1], b, x)),
        (dtypes_of[0], (7, 12)), (dtypes_of[1], (12, 40)), (dtypes_of[0], ()), (dtypes_of[1], ()))  # fmt: skip
    add(f"edge: quantized convolutions of {' and '.join(dtypes_of)}", lambda a, b, x, y: (
        F.conv_integer(a, b, x, y, padding=1), F.conv_integer(a, b), F.conv_integer(a, b, x, stride=2)),
        (dtypes_of[0], (1, 3, 9, 9)), (dtypes_of[1], (5, 3, 3, 3)), (dtypes_of[0], ()), (dtypes_of[1], ()))  # fmt: skip
add("edge: one of three numbers in a row", lambda x, y, z: F.concat([x, y * 2, z], 0)[1:2] + 1, (1,), (1,), (1,))

# -- how much one kernel takes -----------------------------------------------------------------------------------------

for count in (4, 5, 6, 7, 8):
    add(f"edge: {count} added to sums", lambda x, *given: sum(given, F.sum(x, 1)), (3, 9), *[(3,)] * count)
    add(f"edge: {count} added to a product", lambda x, *given: sum(given, x @ x), (6, 6), *[(6, 6)] * count)
    add(f"edge: {count} added to a fork", lambda x, *given: forked(F.sum(x, 1), given), (3, 9), *[(3,)] * count)
    add(f"edge: {count} chosen for a sum", lambda x, *given: F.sum(
        sum([F.exp(y) for y in given], x), 1), (3, 9), *[(3, 9)] * count)  # fmt: skip
    add(f"edge: {count} chosen for rows", lambda x, *given: F.softmax(
        sum([F.abs(y) for y in given], x), 1), (3, 9), *[(3, 9)] * count)  # fmt: skip
for length in (*range(44, 52), 95, 100):
    add(f"edge: {length} steps", lambda x, n=length: (chained(F.sum(x, 1), n), chained(x, n)), (3, 9))
for length in range(8, 15):
    add(f"edge: forks of {length}", lambda x, n=length: (joined(F.sum(x, 1), n), chained(joined(F.max(x, 1), n), 20)),
        (3, 9))  # fmt: skip
for length in range(18, 34):
    add(f"edge: {length} steps before a fork", lambda x, n=length: joined(chained(F.sum(x, 1), n), 10), (3, 9))
add("edge: cheap and costly, read twice", lambda x, y: (
    (x + 1)[:, None] * y, (x + 1 + x * 2)[:, None] * y, F.exp(x)[:, None] + y, F.sum(F.exp(y), 1) + F.max(F.exp(y), 1),
    F.sum(F.abs(y) + 1, 1) + F.max(F.abs(y) + 1, 1), F.sum(F.exp(y) + F.sin(y) + F.cos(y), 1, keepdims=True) + y),
    (6,), (6, 9))  # fmt: skip
add("edge: computed once or at every read", lambda x, y: (
    (x + 1) @ y, (x * 2 + 1 - x) @ y, (F.abs(x) + x * 2 - 3) @ y, F.exp(x) @ y, F.concat([x, x], 1)[:, ::2] @ y,
    F.pad(x[:, 1:], ((0, 0), (1, 0))) @ y), (40, 40), (40, 40))  # fmt: skip
for count in range(3, 9):
    add(f"edge: rows with {count} others", lambda x, *given: normalized(x, given), (3, 9), *[(3, 9)] * count)
    add(f"edge: {count} plain in a row", lambda *given: F.concat(list(given), 0), *[(3, 4)] * count)
    add(f"edge: a sum and {count} others in a row", lambda x, *given: F.concat([F.sum(x, 1), *given], 0), (3, 9),
        *[(3,)] * (count - 2))  # fmt: skip
add("edge: a fork with a result inside", lambda x: (
    y := F.sum(x, 1), z := F.exp(y), z * y, F.sin(z) + z), (3, 9))  # fmt: skip
add("edge: a fork whose inner step is a result", lambda x: inside(F.sum(x, 1)), (3, 9))
add("edge: a fork of another shape", lambda x: F.exp(F.sum(x, 1, keepdims=True))
    + F.sum(x, 1, keepdims=True) * x[:, :2], (3, 9))  # fmt: skip

# -- parts of what is joined, padding of what is computed -------------------------------------------------------------

add("edge: parts of what is joined", lambda x, y: tuple(
    F.concat([x, y * 2, x + 1], 0)[n] for n in (0, 3, 4, 8, 9, 12)), (4, 6), (5, 6))  # fmt: skip
add("edge: parts across what is joined", lambda x, y: tuple(
    F.concat([x, y * 2, x + 1], 0)[a:b] for a, b in [(0, 4), (3, 5), (4, 9), (2, 11)]), (4, 6), (5, 6))  # fmt: skip
add("edge: nothing joined", lambda x, y: F.concat([x[:0], y, x[:0]], 0) + 1, (4, 6), (5, 6))
for fill in (0, 1.5):
    add(f"edge: a ramp padded with {fill}", lambda x, fill=fill: (
        F.pad(F.arange(6, dtype="float32", device=x.backend), ((1, 2),), value=fill) * x,
        F.pad(F.arange(8, dtype="float32", device=x.backend) * 2, ((4, 4),), value=fill)), (9,))  # fmt: skip
add("edge: ramps of integers padded", lambda x: F.pad(F.arange(7, dtype="int32", device=x.backend), ((3, 1),)) + x,
    ("int32", (11,)))  # fmt: skip
for dtype in ("bool", "int32", "uint32", "int8"):
    add(f"edge: comparisons of {dtype}", lambda x, y: tuple(
        F.astype(x.backend.binary(op, x, y), "uint8")
        for op in ("eq", "ne", *(("lt", "le", "gt", "ge") if x.dtype.name != "bool" else ()))),
        (dtype, (160, 128)), (dtype, (160, 128)))  # fmt: skip
