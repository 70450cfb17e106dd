"""More programs: every elementwise operation on every dtype, and recurrences."""

from __future__ import annotations

from typing import Any

import emberlet
from emberlet import functional as F
from emberlet.backend.protocol import BINARY, CUMULATIVE, REDUCE, SCATTER, UNARY
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
        if hidden <= 33:
            add(f"{kind} {said}", layer, (2, 3, 5) if options.get("batch_first") else (3, 2, 5), ("int32", (2,)))
