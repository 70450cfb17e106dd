"""Small models for plans of NumPy calls: each decision of a plan is taken by one of them and just missed by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet.tensor import Tensor

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def given(*shape: int, dtype: str = "float32") -> Any:
    """Numbers between -2 and 2, the same each time."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape) * 7 % 17 / 4 - 2
    return F.astype(emberlet.asarray(numbers.astype(np.float32), backend="numpy"), dtype)


X, V = given(3, 4), given(4)
SQUARE, BATCH, IMAGE = given(4, 4), given(2, 3, 4), given(1, 2, 6, 5)
HALF, DOUBLE, WHOLE = given(3, 4, dtype="float16"), given(3, 4, dtype="float64"), given(3, 4, dtype="int32")
BRAIN, FLAGS = given(3, 4, dtype="bfloat16"), given(3, 4, dtype="bool")
INDICES = emberlet.asarray(np.array([2, 0, -1]), backend="numpy")
ONE = emberlet.asarray(np.array(1), backend="numpy")
Q, K = given(1, 4, 3, 8), given(1, 2, 5, 8)


def at(x: Any, places: Any = INDICES) -> Any:
    """Constant indices beside x."""
    return Tensor(places.data, places.dtype, places.shape, x.backend)


def of(function: Callable[..., Any], *arguments: Any) -> Program:
    return function, arguments


def fixed(function: Callable[..., Any], *arguments: Any) -> Program:
    """A function whose first argument, c(*shape), makes constants of it."""

    def run(*given_: Any) -> Any:
        def constant(*shape: int, dtype: str = "float32") -> Any:
            x = given(*shape, dtype=dtype)
            return Tensor(x.data, x.dtype, x.shape, given_[0].backend)

        return function(constant, *given_)

    return run, arguments


def twice(x: Any) -> Any:
    """What a step reads that must not be overwritten."""
    y = F.exp(x)
    return y, F.sqrt(y)


def recurrent(function: Callable[..., Any], gates: int, directions: int = 1, steps: int = 3, **options: Any) -> Program:
    def run(c: Any, x: Any) -> Any:
        w, r, b = c(directions, gates * 2, 3), c(directions, gates * 2, 2), c(directions, gates * 4)
        return function(x, w, r, b, **options)

    return fixed(run, given(steps, 2, 3))


def conv(
    shape: tuple[int, ...], weight: tuple[int, ...], bias: bool = True, dtype: str = "float32", **options: Any
) -> Program:
    function = F.conv1d if len(shape) == 3 else F.conv2d

    def run(c: Any, x: Any) -> Any:
        return function(x, c(*weight, dtype=dtype), c(weight[0], dtype=dtype) if bias else None, **options)

    return fixed(run, given(*shape, dtype=dtype))


def joined(*parts: Callable[[Any], Any], axis: int = 0) -> Program:
    return of(lambda x: F.concat([part(x) for part in parts], axis=axis), X)


ELEMENTWISE: dict[str, Program] = {
    "a result is an input": of(lambda x: x, X),
    "a result is a part of an input": of(lambda x: x[1:, ::2], X),
    "a result twice": of(lambda x: (F.exp(x),) * 2, X),
    "results in another order": of(lambda x, y: [y + 1, x * y, F.reshape(x, (12,))], X, X),
    "results in a dict": of(lambda x: {"a": F.exp(x), "b": 3}, X),
    "nothing depends on the input": fixed(lambda c, x: c(3, 4) * 2, X),
    "an input that is not used": of(lambda x, y: F.exp(y), X, X),
    "a chain in place": of(lambda x: F.exp(F.sqrt(F.abs(x))), X),
    "a value that is read twice": of(twice, X),
    "a value that is read by two": of(lambda x: F.exp(F.exp(x)) + F.exp(x), X),
    "the operand and the result differ in shape": of(lambda x, y: F.exp(x) + y, V, X),
    "the operand and the result differ in dtype": of(lambda x: F.astype(F.exp(x) < 1, "float32") + 1, X),
    "over the second operand": of(lambda x, y: x - F.exp(y), X, X),
    "over the second operand only": of(lambda x, y: x / F.exp(y), V, X),
    "the operand twice": of(lambda x: F.exp(x) * F.exp(x), X),
    "one operand for both": of(lambda x: (lambda y: y * y)(F.exp(x)), X),
    "a view of the operand lives on": of(lambda x: (lambda y: (F.sqrt(y), y[0] * 2))(F.exp(x)), X),
    "a view of the operand is needed no more": of(lambda x: F.sqrt(F.exp(x)[1:]), X),
    "a turned operand": of(lambda x: F.sqrt(F.permute_dims(F.exp(x), (1, 0))), X),
    "a turned operand and its own": of(lambda x: (lambda y: F.permute_dims(y, (1, 0)) + y)(F.exp(x)), SQUARE),
    "a broadcast operand": of(lambda x: F.exp(F.broadcast_to(x, (3, 4))), V),
    "a constant operand": fixed(lambda c, x: c(3, 4) + x * 2, X),
    "negative": of(lambda x: -x, X),
    "negative of integers": of(lambda x: -x, WHOLE),
    "floor of integers": of(lambda x: F.floor(x) + 1, WHOLE),
    "floor of floats": of(lambda x: F.floor(x), X),
    "floor of halves": of(lambda x: F.floor(x), HALF),
    "floor of bfloat16": of(lambda x: F.floor(x), BRAIN),
    "erf": of(lambda x: F.erf(x), X),
    "erf of float64": of(lambda x: F.erf(x), DOUBLE),
    "erf of nothing": of(lambda x: F.erf(x[:0]), X),
    "sign": of(lambda x: (F.sign(x), F.abs(x)), X),
    "division": of(lambda x, y: x / y, X, X),
    "division of integers": of(lambda x, y: F.floor_divide(x, y), WHOLE, WHOLE),
    "powers": of(lambda x, y: F.pow(x, y), X, X),
    "powers of integers": of(lambda x: F.pow(x, 2), WHOLE),
    "powers of bfloat16": of(lambda x: F.pow(x, 2), BRAIN),
    "the largest": of(lambda x, y: F.maximum(F.minimum(x, y), 0), X, X),
    "comparisons": of(lambda x, y: (x < y, x == y), X, X),
    "comparisons of bfloat16": of(lambda x, y: x < y, BRAIN, BRAIN),
    "logic": of(lambda x, y: F.logical_and(x, F.logical_not(y)), FLAGS, FLAGS),
    "remainder": of(lambda x, y: F.remainder(x, y), X, X),
    "where": of(lambda c, x, y: F.where(c, x, y), FLAGS, X, X),
    "where of a row": of(lambda c, x, y: F.where(c, x, y), FLAGS, X, V),
    "cast to itself": of(lambda x: F.exp(F.astype(x, "float32")), X),
    "cast to bool": of(lambda x: F.astype(x, "bool"), X),
    "cast to integers": of(lambda x: F.astype(x, "int32"), X),
    "cast of integers": of(lambda x: F.astype(x, "int8"), WHOLE),
    "cast of integers to floats": of(lambda x: F.astype(x, "float16"), WHOLE),
    "cast to bfloat16": of(lambda x: F.astype(x, "bfloat16"), X),
    "cast of bfloat16": of(lambda x: F.astype(x, "float32"), BRAIN),
    "chain with a cast to doubles": of(lambda x: F.astype(F.exp(x), "float64") * 2, X),
    "chain with a cast of halves to doubles": of(lambda x: F.astype(F.sqrt(x), "float64") * 2, HALF),
    "bits": of(lambda x: F.bitcast(F.exp(x), "int32"), X),
    "bits of a turned operand": of(lambda x: F.bitcast(F.permute_dims(x, (1, 0)), "int32"), X),
}

MOVEMENT: dict[str, Program] = {
    "reshape": of(lambda x: F.exp(F.reshape(x, (2, 6))), X),
    "reshape of a turned operand": of(lambda x: F.reshape(F.permute_dims(x, (1, 0)), (2, 6)), X),
    "reshape of a part": of(lambda x: F.reshape(F.exp(x)[:, :2], (6,)), X),
    "slice": of(lambda x: (x[::-1], x[1:3, ::2], x[2:0:-1, 3:]), X),
    "slice to the front": of(lambda x: x[1::-1, ::-2], X),
    "pad": of(lambda x: F.pad(F.exp(x), ((1, 0), (0, 2)), value=3), X),
    "pad of an input": of(lambda x: F.pad(x, ((1, 0), (0, 2))), X),
    "pad of a value that is read twice": of(lambda x: (lambda y: (F.pad(y, ((1, 0), (0, 2))), y + 1))(F.exp(x)), X),
    "pad by two": of(lambda x: (lambda y: (F.pad(y, ((1, 1), (0, 0))), F.pad(y, ((1, 1), (0, 0)))))(F.exp(x)), X),
    "pad twice": of(lambda x: F.pad(F.pad(F.exp(x), ((1, 0), (0, 0))), ((0, 0), (0, 1)), value=1), X),
    "pad by another fill": of(
        lambda x: (lambda y: F.pad(y, ((1, 1), (0, 0))) + F.pad(y, ((1, 1), (0, 0)), value=1))(F.exp(x)), X
    ),
    "pad of bfloat16": of(lambda x: F.pad(x, ((1, 0), (0, 2))), BRAIN),
    "pads one after the other": of(
        lambda x: F.exp(F.pad(F.exp(F.pad(F.exp(x), ((1, 1), (0, 0)))[1:4]), ((1, 1), (0, 0)))), X
    ),
    "concatenation": joined(F.exp, F.sqrt),
    "concatenation along the last axis": joined(F.exp, F.sqrt, axis=1),
    "concatenation of three": joined(F.exp, lambda x: x, F.sqrt, axis=1),
    "concatenation of one twice": of(lambda x: (lambda y: F.concat([y, y]))(F.exp(x)), X),
    "concatenation of a result": of(lambda x: (lambda y: (y, F.concat([y, F.sqrt(x)])))(F.exp(x)), X),
    "concatenation of a value that is read twice": of(lambda x: (lambda y: F.concat([y, F.sqrt(y)]) * 2)(F.exp(x)), X),
    "concatenation of concatenations": of(lambda x: F.concat([F.concat([F.exp(x), F.sqrt(x)]), F.abs(x)], axis=0), X),
    "concatenation with a constant": fixed(lambda c, x: F.concat([F.exp(x), c(3, 4)]), X),
    "concatenation of sums": of(lambda x, y: F.concat([x + y, x * y], axis=1), X, X),
    "concatenation of products": fixed(lambda c, x: F.concat([x @ c(4, 4), F.exp(x)], axis=1), X),
    "relu behind a concatenation": joined(lambda x: F.relu(F.exp(x)), lambda x: F.relu(F.sqrt(x))),
    "relu of a part of a concatenation": joined(lambda x: F.relu(F.exp(x)), F.sqrt),
    "relu that is read twice": of(lambda x: (lambda y: F.concat([y, F.relu(x + 1)]) + y[:1])(F.relu(x)), X),
    "relu of an input alone": of(lambda x: F.concat([F.relu(x)]), X),
    "take": of(lambda x: F.take(x, at(x), axis=0), X),
    "take along the last axis": of(lambda x: F.take(F.exp(x), at(x), axis=1), X),
    "take one": of(lambda x: F.take(x, at(x, ONE), axis=1), X),
    "take by an input": of(lambda x, i: F.take(x, i, axis=0), X, INDICES),
    "take into a part": of(lambda x: F.concat([F.take(x, at(x), axis=1), x], axis=1), X),
    "take of bfloat16": of(lambda x: F.take(x, at(x), axis=0), BRAIN),
    "sums": of(lambda x: (F.sum(x, axis=0), F.sum(x, axis=1, keepdims=True), F.sum(x)), X),
    "the largest of an axis": of(lambda x: (F.max(x, axis=0), F.min(x, axis=(0, 1)), F.prod(x, axis=1)), X),
    "sums of halves": of(lambda x: F.sum(x, axis=0), HALF),
    "sums of bfloat16": of(lambda x: F.sum(x, axis=0), BRAIN),
    "sums of integers": of(lambda x: F.sum(x, axis=0), WHOLE),
    "sums of nothing": of(lambda x: F.sum(x[:0], axis=0), X),
    "any": of(lambda x: F.any(x, axis=0), FLAGS),
    "any of floats": of(lambda x: F.all(x, axis=0), X),
    "the place of the largest": of(lambda x: F.argmax(x, axis=1), X),
    "sorted": of(lambda x: F.sort(x, axis=1), X),
    "largest with places": of(lambda x: F.topk(x, 2), X),
}

ACTIVATIONS: dict[str, Program] = {
    f"{name} of {dtype}": of(function, x)
    for name, function in {
        "relu": F.relu, "sigmoid": F.sigmoid, "gelu": F.gelu, "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
        "softmax": lambda x: F.softmax(x, axis=1), "softmax of the first axis": lambda x: F.softmax(F.exp(x), axis=0),
        "log_softmax": lambda x: F.log_softmax(x, axis=1), "clip": lambda x: F.clip(x, 0, 1),
        "clip from below": lambda x: F.clip(x, 0), "clip from above": lambda x: F.clip(x, None, 1),
        "clip of a value": lambda x: F.clip(F.exp(x), 0, 1), "relu of a value": lambda x: F.relu(F.exp(x)),
        "layer_norm": lambda x: F.layer_norm(F.exp(x)), "rms_norm": lambda x: F.rms_norm(F.exp(x)),
    }.items()
    for dtype, x in {"float32": X, "float64": DOUBLE, "float16": HALF, "bfloat16": BRAIN, "int32": WHOLE}.items()
    if dtype == "float32" or name in ("relu", "gelu", "softmax", "clip", "layer_norm", "rms_norm")
    if dtype != "int32" or name in ("relu", "clip")
}  # fmt: skip
ACTIVATIONS |= {
    "clip of nothing": of(lambda x: F.clip(x), X),
    "clip by an input": of(lambda x, y: F.clip(x, y, 1), X, given()),
    "clip by a second input": of(lambda x, y: F.clip(x, 0, y), X, given()),
    "clip by a constant": fixed(lambda c, x: F.clip(x, c(), None), X),
    "clip by a second constant": fixed(lambda c, x: F.clip(x, 0.0, c()), X),
    "relu of nothing": of(lambda x: F.relu(x[:0]), X),
    "layer_norm with parameters": fixed(lambda c, x: F.layer_norm(x, c(4), c(4)), X),
    "layer_norm with a weight": fixed(lambda c, x: F.layer_norm(x, c(4)), X),
    "layer_norm over two axes": fixed(lambda c, x: F.layer_norm(x, c(3, 4), c(3, 4), axis=1), BATCH),
    "layer_norm with an input": of(lambda x, y: F.layer_norm(x * 2, y), X, V),
    "layer_norm over its own operand": of(lambda x: (lambda y: F.layer_norm(y, y[0]))(x * 2), X),
    "layer_norm with a weight of another dtype": fixed(lambda c, x: F.layer_norm(x, c(4, dtype="float64")), X),
    "rms_norm with a weight": fixed(lambda c, x: F.rms_norm(x, c(4)), X),
    "rms_norm with an input": of(lambda x, y: F.rms_norm(x * 2, y), X, V),
    "rms_norm over two axes": fixed(lambda c, x: F.rms_norm(x, c(3, 4), axis=1), BATCH),
    "batch_norm": fixed(lambda c, x: F.batch_norm(x, c(2), F.abs(c(2)), c(2), c(2)), IMAGE),
    "batch_norm without a weight": fixed(lambda c, x: F.batch_norm(x * 2, c(2), F.abs(c(2))), IMAGE),
    "batch_norm with a bias": fixed(lambda c, x: F.batch_norm(x, c(2), F.abs(c(2)), None, c(2)), IMAGE),
    "batch_norm by inputs": fixed(lambda c, x, m: F.batch_norm(x, m, F.abs(c(2))), IMAGE, given(2)),
    "batch_norm of halves": fixed(lambda c, x: F.batch_norm(x, c(2), c(2)), given(1, 2, 3, dtype="float16")),
}

PRODUCTS: dict[str, Program] = {
    "product": fixed(lambda c, x: x @ c(4, 4), X),
    "product of inputs": of(lambda x, y: x @ y, X, SQUARE),
    "product of matrices with one": fixed(lambda c, x: x @ c(4, 4), BATCH),
    "product of turned matrices with one": fixed(lambda c, x: F.permute_dims(x, (1, 0, 2)) @ c(4, 4), BATCH),
    "product of turned rows with one": fixed(lambda c, x: F.permute_dims(x, (0, 2, 1)) @ c(3, 2), BATCH),
    "product of matrices": of(lambda x: x @ F.permute_dims(x, (0, 2, 1)), BATCH),
    "product into a part": fixed(lambda c, x: F.concat([x @ c(4, 4), x], axis=2), BATCH),
    "product of nothing": fixed(lambda c, x: x[:0] @ c(4, 4), X),
    "product over nothing": fixed(lambda c, x: x[:, :0] @ c(4, 4)[:0], X),
    "product of integers": fixed(lambda c, x: x @ c(4, 2, dtype="int32"), WHOLE),
    "product of halves": fixed(lambda c, x: x @ c(4, 2, dtype="float16"), HALF),
    "product of bfloat16": fixed(lambda c, x: x @ c(4, 2, dtype="bfloat16"), BRAIN),
    "dense": fixed(lambda c, x: F.linear(x, c(4, 4), c(4), layout="burn"), X),
    "dense without bias": fixed(lambda c, x: F.linear(x, c(4, 4), layout="burn"), BATCH),
    "dense of halves": fixed(lambda c, x: F.linear(x, c(4, 2, dtype="float16"), c(2, dtype="float16")), HALF),
    "dense of bfloat16": fixed(lambda c, x: F.linear(x, c(4, 2, dtype="bfloat16")), BRAIN),
    "attention": of(lambda q, k: F.attention(q, k, k), Q, Q),
    "attention with shared heads": of(lambda q, k: F.attention(q, k, k), Q, K),
    "attention with a bias": fixed(
        lambda c, q, b: F.attention(q, c(1, 2, 5, 8), c(1, 2, 5, 8), b), Q, given(1, 4, 3, 5)
    ),
    "attention with a bias of all heads": fixed(
        lambda c, q, b: F.attention(q, c(1, 2, 5, 8), c(1, 2, 5, 8), b), Q, given(3, 5)
    ),
    "attention with a turned bias": fixed(
        lambda c, q, b: F.attention(q, c(1, 2, 5, 8), c(1, 2, 5, 8), F.permute_dims(b, (0, 3, 1, 2))),
        Q,
        given(1, 3, 5, 4),
    ),
    "attention into a part": fixed(lambda c, q: F.concat([F.attention(q, c(1, 2, 5, 8), c(1, 2, 5, 8)), q], axis=3), Q),
    "attention that is causal": of(lambda q: F.attention(q, q, q, is_causal=True), Q),
    "lstm": recurrent(F.lstm, 4),
    "lstm backwards": recurrent(F.lstm, 4, direction="reverse"),
    "lstm both ways": recurrent(F.lstm, 4, 2, direction="bidirectional"),
    "lstm of 64 steps": recurrent(F.lstm, 4, steps=64),
    "lstm of 65 steps": recurrent(F.lstm, 4, steps=65),
    "gru": recurrent(F.gru, 3),
    "gru with reset first": recurrent(F.gru, 3, linear_before_reset=True),
    "gru both ways": recurrent(F.gru, 3, 2, direction="bidirectional", linear_before_reset=True),
    "gru backwards": recurrent(F.gru, 3, direction="reverse"),
    "gru of 65 steps": recurrent(F.gru, 3, steps=65),
}

WINDOWS: dict[str, Program] = {
    "conv": conv((1, 2, 6, 5), (3, 2, 3, 3)),
    "conv without bias": conv((1, 2, 6, 5), (3, 2, 3, 3), False),
    "conv of a batch": conv((2, 2, 6, 5), (3, 2, 3, 2)),
    "conv with a border": conv((1, 2, 6, 5), (3, 2, 3, 3), padding=1),
    "conv with a border on one side": conv((1, 2, 6, 5), (3, 2, 3, 3), padding=((1, 0), (0, 2))),
    "conv with steps": conv((1, 2, 6, 7), (3, 2, 3, 2), stride=(2, 3), dilation=(1, 2)),
    "conv in groups": conv((1, 4, 6, 5), (6, 2, 3, 3), groups=2),
    "conv of single positions": conv((1, 2, 6, 5), (3, 2, 1, 1)),
    "conv of single positions of a batch": conv((2, 2, 6, 5), (3, 2, 1, 1)),
    "conv of single positions with steps": conv((1, 2, 6, 5), (3, 2, 1, 1), stride=2),
    "conv of single positions with a border": conv((1, 2, 6, 5), (3, 2, 1, 1), padding=1),
    "conv over one axis": conv((2, 2, 9), (3, 2, 3), padding=1),
    "conv over one axis with steps": conv((2, 2, 9), (3, 2, 1), stride=2),
    "conv of halves": conv((1, 2, 6, 5), (3, 2, 3, 3), dtype="float16"),
    "conv of bfloat16": conv((1, 2, 6, 5), (3, 2, 3, 3), dtype="bfloat16"),
    "conv with weights that are computed": of(
        lambda x, w: F.conv2d(F.exp(x), w * 2, padding=1), IMAGE, given(3, 2, 3, 3)
    ),
    "conv of a value in place": fixed(lambda c, x: F.conv2d(F.exp(x), c(3, 2, 3, 3), padding=1), IMAGE),
    "conv of a value that is read twice": fixed(
        lambda c, x: (lambda y: (F.conv2d(y, c(3, 2, 3, 3), padding=1), y + 1))(F.exp(x)), IMAGE
    ),
    "conv of a constant": fixed(lambda c, w: F.conv2d(c(1, 2, 6, 5), w, padding=1), given(3, 2, 3, 3)),
    "conv into a part": fixed(lambda c, x: F.concat([F.conv2d(x, c(3, 2, 1, 1)), x], axis=1), IMAGE),
    "conv into a part of lines": fixed(
        lambda c, x: F.concat([F.conv2d(x, c(2, 1, 1, 1), c(2), groups=2), x, x * 2], axis=3), given(3, 2, 6, 5)
    ),
    "conv of a batch in groups into a part of lines": fixed(
        lambda c, x: F.concat([F.conv2d(x, c(6, 2, 3, 3), groups=2), c(3, 6, 4, 2)], axis=3), given(3, 4, 6, 5)
    ),
    "conv of nothing": fixed(lambda c, x: F.conv2d(x[:0], c(3, 2, 3, 3)), IMAGE),
    "a bias in the product": conv((1, 8, 64, 64), (4, 8, 3, 3)),
    "a bias in the product of single positions": fixed(
        lambda c, x: F.conv2d(F.exp(x), c(64, 16, 1, 1), c(64)), given(1, 16, 32, 32)
    ),
    "a bias behind the product of single positions": fixed(
        lambda c, x: F.conv2d(F.exp(x), c(63, 16, 1, 1), c(63)), given(1, 16, 32, 32)
    ),
    "a bias of single positions with steps": fixed(
        lambda c, x: F.conv2d(F.exp(x), c(64, 16, 1, 1), c(64), stride=2), given(1, 16, 64, 64)
    ),
    "a bias of single positions with a border on one side": fixed(
        lambda c, x: F.conv2d(F.exp(x), c(64, 16, 1, 1), c(64), padding=((1, 0), (0, 0))), given(1, 16, 32, 32)
    ),
    "a bias in groups": conv((1, 8, 64, 64), (8, 4, 3, 3), groups=2),
    "a bias in the product of 2^20": conv((1, 4, 34, 130), (8, 4, 2, 16)),
    "a bias that is an input": fixed(lambda c, x, b: F.conv2d(x, c(4, 8, 3, 3), b), given(1, 8, 64, 64), given(4)),
    "weights that are an input": fixed(lambda c, x, w: F.conv2d(x, w, c(4)), given(1, 8, 64, 64), given(4, 8, 3, 3)),
    "a bias in the product of doubles": conv((1, 8, 64, 64), (4, 8, 3, 3), dtype="float64"),
    "a bias of 384 terms": conv((1, 96, 22, 22), (8, 96, 2, 2)),
    "a bias of 385 terms": conv((1, 77, 22, 26), (8, 77, 1, 5)),
    "max pooling": of(lambda x: F.max_pool2d(x, 2), IMAGE),
    "max pooling with a border": of(lambda x: F.max_pool2d(F.exp(x), 3, stride=2, padding=1), IMAGE),
    "max pooling with dilation": of(lambda x: F.max_pool2d(x, (2, 3), stride=1, dilation=(2, 1)), IMAGE),
    "max pooling of lines": of(lambda x: F.max_pool2d(x, (1, 3), stride=(2, 1)), IMAGE),
    "max pooling of columns": of(lambda x: F.max_pool2d(x, (3, 1), stride=(1, 2)), IMAGE),
    "max pooling of positions": of(lambda x: F.max_pool2d(x, 1, stride=2), IMAGE),
    "max pooling of bfloat16": of(lambda x: F.max_pool2d(x, 2), given(1, 1, 4, 4, dtype="bfloat16")),
    "max pooling of integers": of(lambda x: F.max_pool2d(x, 2, padding=1), given(1, 1, 4, 4, dtype="int32")),
    "average pooling": of(lambda x: F.avg_pool2d(x, 2), IMAGE),
    "average pooling with a border": of(lambda x: F.avg_pool2d(F.exp(x), 3, stride=1, padding=1), IMAGE),
    "relu behind max pooling": of(lambda x: F.max_pool2d(F.relu(x + 1), 2), IMAGE),
    "relu behind max pooling with a border": of(lambda x: F.max_pool2d(F.relu(x + 1), 3, padding=1), IMAGE),
    "relu where a window sees the border alone": of(
        lambda x: F.max_pool2d(F.relu(x + 1), (1, 1), padding=0, stride=1), IMAGE
    ),
    "relu where average pooling follows": of(lambda x: F.avg_pool2d(F.relu(x + 1), 2), IMAGE),
    "relu behind max pooling that is read twice": of(
        lambda x: (lambda y: (F.max_pool2d(y, 2), y))(F.relu(x + 1)), IMAGE
    ),
}


def images(weight: tuple[int, ...], size: int, then: Callable[..., Any] = lambda x: x, **options: Any) -> Program:
    """A convolution of an image whose channels lie last, and what follows."""

    def run(c: Any, x: Any) -> Any:
        y = F.conv2d(x, c(*weight), c(weight[0]), **options)
        return then(c, y) if then.__code__.co_argcount == 2 else then(y)

    return fixed(run, given(1, weight[1], size, size))


LAST: dict[str, Program] = {
    "conv": images((4, 2, 3, 3), 6),
    "conv with a border": images((4, 2, 3, 3), 6, padding=1),
    "conv of single positions": images((4, 2, 1, 1), 6),
    "conv with steps": images((4, 2, 3, 3), 7, stride=2),
    "two convs": images((2, 2, 3, 3), 7, lambda c, x: F.conv2d(x, c(3, 2, 3, 3), padding=1)),
    "conv of one channel": images((1, 2, 3, 3), 6, F.relu),
    "single positions behind": images((3, 2, 3, 3), 6, lambda c, x: F.conv2d(F.relu(x), c(2, 3, 1, 1), c(2))),
    "single positions with a step": images((3, 2, 3, 3), 6, lambda c, x: F.conv2d(x, c(2, 3, 1, 1), stride=2)),
    "relu": images((4, 2, 3, 3), 6, F.relu),
    "sum with itself": images((4, 2, 3, 3), 6, lambda x: F.relu(x + F.sigmoid(x))),
    "sum with a row": images((4, 2, 3, 3), 6, lambda c, x: x * c(4, 1, 1) + c(4)),
    "sum that broadcasts": images((1, 2, 3, 3), 6, lambda c, x: x + c(1, 3, 4, 4)),
    "max pooling": images((3, 2, 3, 3), 8, lambda x: F.max_pool2d(x, 2)),
    "max pooling with a border": images((3, 2, 3, 3), 8, lambda x: F.max_pool2d(x, 3, stride=2, padding=1)),
    "max pooling of lines": images((3, 2, 3, 3), 8, lambda x: F.max_pool2d(x, (1, 2))),
    "max pooling of positions": images((3, 2, 3, 3), 8, lambda x: F.max_pool2d(x, 1, stride=2)),
    "average pooling": images((3, 2, 3, 3), 8, lambda x: F.avg_pool2d(x, 2, stride=1)),
    "pad": images((3, 2, 3, 3), 6, lambda x: F.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2)))),
    "slice": images((3, 2, 3, 3), 6, lambda x: F.relu(x[:, 1:, ::2])),
    "turned": images((3, 2, 3, 3), 6, lambda x: F.relu(F.permute_dims(x, (0, 1, 3, 2)))),
    "concatenation": images((3, 2, 3, 3), 6, lambda x: F.concat([F.relu(x), F.sigmoid(x)], axis=1)),
    "concatenation of lines": images((3, 2, 3, 3), 6, lambda x: F.concat([F.relu(x), F.sigmoid(x)], axis=2)),
    "concatenation with an image": fixed(
        lambda c, x: F.concat([F.conv2d(x, c(3, 2, 1, 1)), x], axis=1), IMAGE
    ),
    "mean of positions": images((3, 2, 3, 3), 6, lambda x: F.mean(x, axis=(2, 3))),
    "reshape": images((3, 2, 3, 3), 6, lambda x: F.reshape(x, (1, -1))),
    "in groups": fixed(lambda c, x: F.conv2d(x, c(2, 1, 3, 3), groups=2), IMAGE),
    "a conv of a line": conv((1, 2, 9), (3, 2, 3)),
    "a batch": fixed(lambda c, x: F.relu(F.conv2d(x, c(3, 2, 2, 2), c(3))), given(2, 2, 5, 5)),
    "100 rows of 32 channels": images((32, 4, 1, 1), 10),
    "101 rows of 32 channels": fixed(lambda c, x: F.conv2d(x, c(32, 4, 1, 1)), given(1, 4, 1, 101)),
    "a row of 32 channels": images((32, 4, 1, 1), 1),
    "312 terms of 32 channels": images((32, 312, 1, 1), 10),
    "314 terms of 32 channels": images((32, 314, 1, 1), 10),
    "2^16 weights of 64 channels": images((64, 256, 2, 2), 3),
    "a few weights less of 64 channels": images((64, 255, 2, 2), 3),
    "a bias of 64 channels": images((64, 2, 2, 2), 4),
    "a bias of 63 channels": images((63, 2, 2, 2), 4),
    "a bias in the product": images((4, 8, 3, 3), 64, padding=1),
    "a bias in the product of single positions": images(
        (16, 2, 3, 3), 32, lambda c, x: F.conv2d(F.relu(x), c(64, 16, 1, 1), c(64)), padding=1
    ),
}  # fmt: skip
