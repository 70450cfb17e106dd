"""Plans of NumPy calls give what the operations give one by one, bit for bit, in every dtype and for every shape of
operand: whatever a plan cannot write in place, it leaves to the backend."""

from __future__ import annotations

import warnings
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.errors import EmberletError
from emberlet.host.numpy_backend.compile import compile
from emberlet.tensor import Tensor
from support.rows import every

NAMES = [d.name for d in dtypes.ALL if d.kind != "string"]
I = F.asarray(np.array([2, 0, -1]), backend="numpy")  # noqa: E741
MASK = F.asarray(np.array([[True], [False], [True]]), backend="numpy")

FUNCTIONS: dict[str, Any] = {
    "add": lambda x, y: x + y,
    "subtract a row": lambda x, y: x - y[1],
    "times a number": lambda x, y: x * 2,
    "divide": lambda x, y: x / y,
    "floor divide": lambda x, y: F.floor_divide(x, y),
    "remainder": lambda x, y: F.remainder(x, y),
    "fmod": lambda x, y: F.fmod(x, y),
    "power": lambda x, y: F.pow(x, 3),
    "negative": lambda x, y: -x,
    "absolute": lambda x, y: F.abs(x),
    "sign": lambda x, y: F.sign(x),
    "round": lambda x, y: (F.round(x), F.floor(x), F.ceil(y), F.trunc(y)),
    "roots": lambda x, y: (F.sqrt(F.abs(x)), F.exp(y), F.log1p(F.abs(y)), F.tanh(x), F.erf(x)),
    "largest": lambda x, y: (F.maximum(x, y), F.minimum(x, y[:1])),
    "compared": lambda x, y: (x < y, x <= y, x == y, x != y, x > y[:1], x >= y),
    "where": lambda x, y: (F.where(MASK, x, y), F.where(MASK, x[:1], y), F.where(x != y, x[:, :1], y[0])),
    "joined": lambda x, y: (F.concat([x, y], axis=1), F.stack([x, y, x])),
    "padded": lambda x, y: (F.pad(x, [(1, 0), (0, 2)], 1), F.pad(x + y, [(0, 1), (1, 0)])),
    "parts": lambda x, y: (x[1], x[::-1, 1:], F.permute_dims(x, (1, 0)), F.broadcast_to(y[:1], (2, 3, 4))),
    "chosen": lambda x, y: (F.take(x, I, axis=0), F.take(y, I[:1], axis=1), x[I], F.take(x, I[0], axis=1)),
    "reductions": lambda x, y: (F.sum(x, axis=0), F.max(x, axis=1, keepdims=True), F.min(y), F.prod(x, axis=(0, 1))),
    "any": lambda x, y: (F.any(x, axis=0), F.all(y), F.count_nonzero(x)),
    "means": lambda x, y: (F.mean(x, axis=1), F.var(y), F.norm(x, axis=0)),
    "running": lambda x, y: (F.cumulative_sum(x, axis=1), F.argmax(x, axis=0), F.sort(y, axis=1)),
    "product": lambda x, y: x @ F.permute_dims(y, (1, 0)),
    "activations": lambda x, y: (F.relu(x), F.sigmoid(y), F.gelu(x), F.gelu(y, approximate="tanh")),
    "shares": lambda x, y: (F.softmax(x, 0), F.log_softmax(y, 1)),
    "norms": lambda x, y: (F.layer_norm(x, y[0], y[1]), F.rms_norm(x, y[0]), F.layer_norm(x, axis=0)),
    "limited": lambda x, y: (F.clip(x, 0, 1), F.clip(y, None, 1), F.clip(x, 0), F.clip(x, y, y + 1)),
    "bits": lambda x, y: (F.bitwise_and(x, y), F.bitwise_or(x, y), F.bitwise_invert(x), F.bitwise_left_shift(x, x)),
    "logic": lambda x, y: (F.logical_and(x, y), F.logical_not(x), F.logical_or(x, y[0])),
    "casts": lambda x, y: tuple(F.astype(x, d) for d in ("float32", "float64", "int8", "uint16", "bool", "float16")),
    "narrow casts": lambda x, y: tuple(F.astype(x, d) for d in ("bfloat16", "float8_e5m2", "int4", "uint2")),
    "chains": lambda x, y: F.maximum(x + y, x) * (x + y) - F.permute_dims(F.permute_dims(y, (1, 0)) + 1, (1, 0)),
    "shapes": lambda x, y: (F.reshape(x + y, (2, 6)), F.reshape(F.permute_dims(x, (1, 0)), (12,)), F.flip(x, 1)),
    "nothing": lambda x, y: (F.sum(x[:0], axis=0), x[:0] + y[:0], F.concat([x[:0], y])),
}  # fmt: skip


def drawn(name: str, seed: int) -> Any:
    dtype = dtypes.dtype(name)
    numbers = np.random.default_rng(seed).integers(0 if dtype.kind == "uint" or dtype.is_bool else -2, 2, (3, 4))
    x = F.astype(F.asarray(numbers, backend="numpy"), name)
    return x if not dtype.is_float else F.astype(F.asarray(numbers * 1.5 + 0.25, backend="numpy"), name)


def outcome(call: Any, *args: Any) -> Any:
    """What a call gives, as bytes, or the class of its error."""
    try:
        found = call(*args)
    except EmberletError as error:
        return type(error).__name__
    found = found if isinstance(found, tuple) else (found,)
    return [(x.dtype.name, x.shape, bytes(x.to_data().bytes)) for x in found]


@every("name", NAMES)
def test_a_plan_gives_what_the_operations_give_in_every_dtype(name: str) -> None:
    differ = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for word, function in FUNCTIONS.items():
            planned = compile(function, backend="numpy")
            for seed in (1, 2):  # the second call runs the plan of the first
                x, y = drawn(name, seed), drawn(name, seed + 5)
                if outcome(planned, x, y) != outcome(function, x, y):
                    differ.append(word)
    assert not differ


# Functions of x and y (length, 4) that any length fits.
OPEN: dict[str, Any] = {
    **{word: FUNCTIONS[word] for word in (
        "add", "times a number", "divide", "floor divide", "largest", "compared", "joined", "padded", "reductions",
        "any", "means", "running", "product", "activations", "shares", "limited", "casts", "chains")},
    "reshaped": lambda x, y: (F.reshape(x + y, (-1,)), F.reshape(x, (x.shape[0], 2, 2)), F.reshape(y, (2, -1))),
    "turned": lambda x, y: (F.flip(x, axis=0), x[::-1, ::2] * 2, F.permute_dims(y, (1, 0))[1:]),
    "ends": lambda x, y: (x[:1] + y, x[-1], F.concat([x[-1:], y, x[:1]]), x[1:] if x.shape[0] > 1 else x),
    "repeated": lambda x, y: (F.tile(x, (2, 1)), F.broadcast_to(y, (3, y.shape[0], 4)), F.stack([x, y], axis=1)),
    "positions": lambda x, y: F.arange(x.shape[0], backend="numpy") * 2 + F.reshape(F.astype(y[:, 0], "int64"), (-1,)),
    "nothing but sizes": lambda x, y: (F.zeros_like(x), F.full((x.shape[0], 2), 7, backend="numpy") + x[:, :2]),
    "windows": lambda x, y: F.max_pool(F.reshape(x, (1, 1, x.shape[0], 4)), (1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "uint8"])
@every("word", OPEN)
def test_a_plan_with_an_open_length_gives_what_the_operations_give(word: str, dtype: str) -> None:
    def given(n: int, seed: int) -> Any:
        numbers = np.random.default_rng(seed).integers(0, 5, (n, 4))
        return F.astype(F.asarray(numbers, backend="numpy"), dtype)

    function = OPEN[word]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planned = compile(function, given(4, 1), given(4, 2), dims={"x": {0: "n"}, "y": {0: "n"}})
        for n in (4, 1, 2, 7, 30, 3):
            x, y = given(n, n), given(n, n + 1)
            assert outcome(planned, x, y) == outcome(function, x, y), n


def test_texts_pass_through_plans() -> None:
    x = F.asarray([["a", "b"], ["", "d"]], backend="numpy")
    for function in (lambda x: x[::-1], lambda x: F.concat([x, x]), lambda x: F.take(x, I[1:], axis=0),
                     lambda x: F.reshape(x, (4,)), lambda x: F.where(MASK[:2], x, x[0])):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compile(function, backend="numpy")(x)
        assert isinstance(found, Tensor) and found.tolist() == function(x).tolist()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_pooling_is_planned_in_every_float(dtype: str, pool: Any) -> None:
    x = F.cast(emberlet.asarray(np.arange(50, dtype=np.float32).reshape(1, 2, 5, 5) % 7 - 3, backend="numpy"), dtype)

    def model(x: Any) -> Any:
        return pool(x + x, 2, padding=1)

    found = compile(model, x)(x)
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(np.asarray(F.cast(found, "float32")), np.asarray(F.cast(model(x), "float32")))
