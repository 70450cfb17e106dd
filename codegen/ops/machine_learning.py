"""Shared by the operators of ai.onnx.ml: numbers as values, labels, and transforms of scores."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from emberlet import dtypes
from emberlet.dtypes import DType

from ..emit.emitter import Emitter
from ..emit.expression import Binary, Expr, List, Unary, lift
from ..ir.choices import PostTransform
from ..ir.graph import Node
from ..ir.problem import Problem
from ..ir.types import Dim, TensorType
from ..ir.value import Inline, Value
from .attributes import Attributes
from .base import dim_at, transposed

DOMAIN = "ai.onnx.ml"
Labels = tuple[int, ...] | tuple[str, ...]

TRANSFORMS = {
    "NONE": None,
    "SOFTMAX": PostTransform.SOFTMAX,
    "LOGISTIC": PostTransform.SIGMOID,
    "SOFTMAX_ZERO": PostTransform.SOFTMAX_ZERO,
    "PROBIT": PostTransform.PROBIT,
}
"""post_transform -> the function that does it."""


def transform_of(a: Attributes) -> PostTransform | None:
    """The attribute post_transform as a function's name."""
    return TRANSFORMS[a.string("post_transform", "NONE", tuple(TRANSFORMS))]


def labels_of(a: Attributes, numbers: str, words: str = "classlabels_strings") -> Labels:
    """The classes' labels, from whichever of the two attributes has them."""
    found: Labels = a.ints(numbers, ()) or a.strings(words, ())
    if not found:
        raise Problem(f"has neither {numbers} nor {words}")
    return found


def labels_dtype(labels: Labels) -> DType:
    return dtypes.string if isinstance(labels[0], str) else dtypes.int64


def floats_value(values: Sequence[float], shape: tuple[int, ...], dtype: DType = dtypes.float32) -> Value:
    """A constant of floats. Raises Problem if their number does not match the shape."""
    if len(values) != Value(dtype, shape, Inline(b"")).size:
        raise Problem(f"holds {len(values)} numbers where {shape} are needed")
    return Value(dtype, shape, Inline(struct.pack(f"<{len(values)}{dtype.code}", *values)))


def split_rows(values: Sequence[float], rows: int) -> int:
    """The width of a matrix of `rows` rows. Raises Problem if the numbers do not fill one."""
    if rows < 1 or not values or len(values) % rows:
        raise Problem(f"{len(values)} coefficients do not make {rows} rows")
    return len(values) // rows


def rows_of(node: Node[Any]) -> Dim:
    """The number of rows of input 0; a vector is one row."""
    shape = node.shape(0)
    if shape is not None and len(shape) > 2:
        raise Problem(f"expected rows of features, found rank {len(shape)}")
    return 1 if shape is not None and len(shape) < 2 else dim_at(shape, 0)


def matrix(node: Node[Any], e: Emitter) -> Expr:
    """Input 0 as a float32 matrix, a row for each sample."""
    x = e.x(0)
    if node.dtype(0) is not dtypes.float32:
        x = e.call("cast", x, dtypes.float32)
    return e.method(x, "reshape", (1, -1)) if node.tensor(0).rank == 1 else x


def check_features(node: Node[Any], features: int) -> None:
    """Raise Problem if input 0 is known to have another number of columns."""
    found = dim_at(node.shape(0), -1)
    if isinstance(found, int) and found != features:
        raise Problem(f"its input has {found} features, its coefficients are for {features}")


def linear(e: Emitter, x: Expr, coefficients: Sequence[float], rows: int, bias: Sequence[float]) -> Expr:
    """x through a dense layer whose outputs are the rows of coefficients."""
    features = split_rows(coefficients, rows)
    if bias and len(bias) != rows:
        raise Problem(f"{len(bias)} intercepts for {rows} rows of coefficients")
    weights = {
        "weight": transposed(floats_value(coefficients, (rows, features))),
        "bias": floats_value(bias, (rows,)) if bias else None,
    }
    layer = e.layer("Linear", features, rows, weights=weights, **({} if bias else {"bias": False}))
    return e.apply(layer, x)


def transformed(e: Emitter, scores: Expr, transform: str | None) -> Expr:
    return scores if transform is None else e.call(transform, scores)


def labeled(e: Emitter, index: Expr, labels: Labels) -> Expr:
    """The labels at the given positions: a look-up, unless the labels are the positions."""
    if labels == tuple(range(len(labels))):
        return index
    if isinstance(labels[0], str):
        keys = tuple(range(len(labels)))
        return e.call("label_encode", index, keys=keys, values=labels, default="", dtype=dtypes.string)
    return e.call("take", e.create("asarray", List(tuple(map(lift, labels)))), index)


def best(e: Emitter, scores: Expr, labels: Labels) -> Expr:
    """The label of the highest score of each row."""
    return labeled(e, e.call("argmax", scores, axis=-1), labels)


def positive(e: Emitter, score: Expr, labels: Labels, threshold: float = 0.0) -> Expr:
    """The second of two labels if a row's only score is over the threshold, else the first."""
    over = e.call("cast", Binary(">", score, lift(threshold)), dtypes.int64)
    return labeled(e, e.method(over, "reshape", (-1,)), labels)


def both_sides(e: Emitter, score: Expr, transform: str | None, opposite: bool) -> Expr:
    """The scores (rows, 2) of two classes from a single score s: (-s, s) or (1 - s, s).

    A sigmoid uses (-s, s). Softmax has no effect here, as in onnxruntime.
    """
    turned = transform == "sigmoid" or opposite
    other = Unary("-", score) if turned else Binary("-", lift(1.0), score)
    two = e.call("concat", List((other, score)), axis=-1)
    return transformed(e, two, transform if transform in ("sigmoid", "probit") else None)


def class_types(node: Node[Any], labels: Labels, columns: Dim) -> tuple[TensorType, TensorType]:
    """The types of a classifier's labels and scores."""
    rows = rows_of(node)
    return TensorType(labels_dtype(labels), (rows,)), TensorType(dtypes.float32, (rows, columns))
