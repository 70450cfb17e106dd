"""More programs whose kernels are counted: every elementwise operation, recurrences, custom kernels, random graphs."""

from __future__ import annotations

import random
from typing import Any

import emberlet
from emberlet import functional as F
from emberlet.backend.protocol import BINARY, CUMULATIVE, REDUCE, SCATTER, UNARY
from emberlet.errors import EmberletError
from emberlet.tensor import Tensor

from .programs import add, weight

BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right")
LOGIC = ("logical_and", "logical_or", "logical_xor", "logical_not")
FLOAT_ONLY = ("div", "atan2", "isnan", "isinf", *UNARY[UNARY.index("sqrt") : UNARY.index("isnan")])
DTYPES = ("float32", "float16", "int32", "uint32", "int64", "uint8", "int8", "int16", "uint16", "bool")


def of(names: tuple[str, ...], dtype: str) -> list[str]:
    """The operations that a dtype has."""
    if dtype == "bool":
        return [n for n in names if n in (*LOGIC, "eq", "ne")]
    if dtype.startswith("float"):
        return [n for n in names if n not in BITS]
    return [n for n in names if n not in FLOAT_ONLY]


def each(make: Any, names: Any) -> Any:
    """A function with the results of several operations."""
    return lambda *tensors: tuple(make(name, *tensors) for name in names)


for dtype in DTYPES:
    add(f"unary operations on {dtype}", each(lambda op, x: x.backend.unary(op, x), of(UNARY, dtype)), (dtype, (6, 5)))
    add(f"binary operations on {dtype}", each(lambda op, x, y: x.backend.binary(op, x, y), of(BINARY, dtype)),
        (dtype, (6, 5)), (dtype, (5,)))  # fmt: skip
    names = [n for n in REDUCE if (dtype == "bool") == (n in ("any", "all"))]
    add(f"reductions of {dtype}", each(lambda op, x: x.backend.reduce(op, x, (1,), False), names), (dtype, (6, 70)))
    if dtype in ("float32", "int32", "uint8"):
        add(f"scans of {dtype}", each(lambda op, x: x.backend.cumulative(op, x, 0), CUMULATIVE), (dtype, (40, 3)))
    if dtype in ("float32", "int32", "uint8", "bool"):
        add(f"scatters of {dtype}", each(lambda op, x, i, u: x.backend.scatter(x, i, u, 0, op),
            SCATTER if dtype != "bool" else ("none",)),
            (dtype, (300, 60)), ("int32", (4, 60)), (dtype, (4, 60)))  # fmt: skip
    add(f"casts of {dtype}", lambda x: tuple(F.astype(x, d) for d in DTYPES if d != x.dtype.name), (dtype, (4, 7)))
    add(f"sort of {dtype}", lambda x: F.sort(x), (dtype, (3, 20)))
    add(f"where of {dtype}", lambda c, x: F.where(c, x, x[:1]), ("bool", (5, 3)), (dtype, (5, 3)))
    if dtype != "bool":
        add(f"arg of {dtype}", lambda x: (F.argmax(x, 0), F.argmin(x, 1)), (dtype, (5, 30)))
for one, other in [("float32", "int32"), ("uint32", "float32"), ("float16", "int16"), ("uint16", "float16"),
                   ("int8", "uint8"), ("bfloat16", "uint16"), ("int16", "bfloat16"), ("int32", "uint32")]:  # fmt: skip
    add(f"bits of {one} as {other}", lambda x, a=one, b=other: x.backend.bitcast(
        F.astype(x, a), getattr(emberlet, b)), ("float32", (4, 6)))  # fmt: skip
NUMBERS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -0.0, float("inf"), float("nan"), 1e-40, 1e30)
for name in ("mul", "div", "pow", "maximum", "eq", "ne", "lt"):
    add(f"{name} with a number", each(lambda n, x, op=name: x.backend.binary(
        op, x, x.backend.full((), n, x.dtype)), NUMBERS), (4, 6))  # fmt: skip
for name in ("mul", "floor_divide", "remainder", "shift_left", "shift_right"):
    add(f"{name} with an integer", each(lambda n, x, op=name: x.backend.binary(op, x, x.backend.full((), n, x.dtype)),
        (0, 1, 2, 7, 31) if name.startswith("shift") else (0, 1, 2, 7, -1, 8, 1 << 20)), ("int32", (4, 6)))  # fmt: skip
add("with itself", lambda x: (x / x, x - x, x == x, x != x), (4, 6))
for number in (0, 1, 2, 7, -1, 8, 31, 1 << 20):
    for name in ("mul", "floor_divide", "remainder", "shift_left", "shift_right"):
        if name.startswith("shift") and not 0 <= number < 32:
            continue
        add(f"{name} with the integer {number}", lambda x, op=name, n=number: x.backend.binary(
            op, x, x.backend.full((), n, x.dtype)), ("int32", (4, 6)))  # fmt: skip
add("from int64 to int32 and back", lambda x: F.astype(F.astype(x, "int32") + 1, "int64") * 2, ("int64", (5, 3)))
add("assign a region", lambda x, y: x.backend.assign_region(x, (1, 2), (2, 2), (1, 1), y), (5, 6), (2, 2))
add("assign backwards", lambda x, y: x.backend.assign_region(x, (3, 5), (2, 3), (-1, -1), y), (5, 6), (2, 3))
add("random numbers", lambda x: x.backend.random_bits((6, 7), 3, 5), (1,))
add("ramp", lambda x: x * x.backend.arange(3, 2, 6, x.dtype), (5, 6))

# -- recurrences ------------------------------------------------------------------------------------------------------

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
for kind, gates in GATES.items():
    for hidden, options in [
        (16, {}), (33, {"direction": "reverse"}), (300, {}), (600, {}), (24, {"direction": "bidirectional"}),
        (1, {"batch_first": True}), (16, {"lengths": True}), (20, {"lengths": True, "direction": "bidirectional"}),
    ]:  # fmt: skip

        def layer(x: Tensor, lengths: Tensor, kind: str = kind, gates: int = gates, hidden: int = hidden,
                  options: dict[str, Any] = options) -> Any:  # fmt: skip
            both = 2 if options.get("direction") == "bidirectional" else 1
            given = {k: v for k, v in options.items() if k != "lengths"}
            if "lengths" in options:
                given["sequence_lens"] = lengths
            w, r = weight(x, (both, gates * hidden, 5)), weight(x, (both, gates * hidden, hidden))
            return tuple(v for v in getattr(F, kind)(x, w, r, None, **given) if v is not None)

        said = " ".join([str(hidden), *map(str, options.values())])
        at = 1 if options.get("batch_first") else 0
        shape = (2, 9, 5) if at else (9, 2, 5)
        add(f"open {kind} {said}", layer, shape, ("int32", (2,)), dims={"x": {at: ("steps", (1, 512))}})
        if hidden <= 33:
            add(f"{kind} {said}", layer, (2, 3, 5) if at else (3, 2, 5), ("int32", (2,)))

# -- custom kernels ----------------------------------------------------------------------------------------------------
# ---------------------------------------------------------------------------------------------

SCALE = """
{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    if (i < {{ count }}u) {
        out[i] = in0[i] * {{ factor }} + erf_f32(in1[i]);
        out[i] += in0[i / 2u];
    }
}
"""


COPIED = """
{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    out[i] = f32(in0[i]);
}
"""


def launched(x: Tensor, y: Tensor) -> Any:
    return x.backend.launch("scale", SCALE, [x, y], x.dtype, x.shape, (x.size, 64), {"factor": "2.5"})


add("kernel of one's own", lambda x, y: F.exp(launched(x * 2, y)), (40, 70), (40, 70))
add("kernel of one's own on a large array", lambda x, y: launched(x, y), (3000, 1500), (3000, 1500))

for dtype in ("uint8", "bool", "float32"):
    add(f"kernel of one's own on reshaped {dtype}", lambda x, d=dtype: x.backend.launch(
        "copied", COPIED, [F.reshape(F.astype(x * 2, d), (64, 320))], x.dtype, x.shape, (x.size, 64), {}),
        (160, 128))  # fmt: skip

# -- random graphs ----------------------------------------------------------------------------------------------------

SIDES = (1, 2, 3, 4, 5, 8, 12, 16, 32, 33, 64)


class Drawn:
    """A graph of drawn operations; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        choose = random.Random(f"shapes {seed}")
        rank = choose.choice([1, 2, 2, 3, 3, 4])
        self.shape = tuple(choose.choice(SIDES) for _ in range(rank))
        self.inputs = [("float32", self.shape), ("float32", self.shape[-1:]), ("int32", self.shape)]

    def __call__(self, *inputs: Tensor) -> Any:
        choose = random.Random(self.seed)
        pool = list(inputs)
        for _ in range(choose.choice([3, 5, 8, 12])):
            try:
                y = self.step(choose, choose.choice(pool[-5:]), pool)
            except EmberletError:
                continue
            if isinstance(y, Tensor) and 0 < y.size <= 1 << 14:
                pool.append(y)
        return tuple(choose.sample(pool[3:], min(2, len(pool) - 3))) or pool[0] + 1

    def step(self, choose: random.Random, x: Tensor, pool: list[Tensor]) -> Any:
        k, axis = x.backend, choose.randrange(len(x.shape) or 1)
        others = [y for y in pool if y.shape == x.shape and y.dtype is x.dtype]
        kind = choose.randrange(20)
        if not x.shape or kind < 3:
            return k.unary(choose.choice(["neg", "abs"]), x) if not x.dtype.is_float else k.unary(
                choose.choice(["exp", "tanh", "floor", "sqrt"]), x)  # fmt: skip
        if kind < 6:
            y = choose.choice([*others, k.full((), 2, x.dtype)])
            return k.binary(choose.choice(["add", "mul", "maximum", "sub", "lt"]), x, y)
        if kind == 6:
            axes = tuple(sorted(choose.sample(range(len(x.shape)), choose.randint(1, len(x.shape)))))
            return k.reduce(choose.choice(["sum", "max", "min"]), x, axes, choose.random() < 0.7)
        if kind == 7:
            return F.softmax(x, axis)
        if kind == 8:
            return x - F.mean(x, axis, keepdims=True)
        if kind == 9:
            order = list(range(len(x.shape)))
            choose.shuffle(order)
            return k.permute(x, tuple(order))
        if kind == 10:
            return k.reshape(x, choose.choice([(x.size,), x.shape[::-1], (1, *x.shape)]))
        if kind == 11:
            low = tuple(choose.randrange(d) for d in x.shape)
            return k.slice(x, low, tuple(d - n for d, n in zip(x.shape, low, strict=True)), (1,) * len(low))
        if kind == 12:
            return F.flip(x, axis) if choose.random() < 0.5 else x[::2]
        if kind == 13:
            return k.pad(x, tuple((choose.randrange(2), choose.randrange(3)) for _ in x.shape), 0)
        if kind == 14:
            return k.concat([x, choose.choice(others)], axis)
        if kind == 15:
            return x @ k.permute(x, (*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2))
        if kind == 16:
            return k.cast(x, choose.choice([emberlet.float32, emberlet.int32, emberlet.uint8, emberlet.bool]))
        if kind == 17:
            return k.take(x, F.astype(F.arange(3, device=k), "int32"), axis)
        if kind == 18:
            return F.where(x > 0, x, choose.choice(others))
        return F.cumulative_sum(x, axis=axis)


for seed in range(70):
    drawn = Drawn(seed)
    add(f"drawn {seed}", drawn, *drawn.inputs)
