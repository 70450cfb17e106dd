"""The nodes that random models leave out, and why: the standard leaves their result open, or onnxruntime or ONNX's
reference is known to compute it wrong. No other file lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Node(NamedTuple):
    """inputs: the array of each input; None if an earlier node computes it or if it is absent. dtypes: those of the
    operator's type variables."""

    inputs: Sequence[Any]
    dtypes: Sequence[Any]
    attributes: dict[str, Any]

    def rank(self, i: int) -> int | None:
        array = self.inputs[i] if i < len(self.inputs) else None
        return None if array is None else array.ndim

    def may_hold_nan(self) -> bool:
        """Whether the first input holds NaN or is unknown."""
        array = self.inputs[0]
        return array is None or (array.dtype.kind == "f" and bool(np.isnan(array).any()))

    def has_float(self) -> bool:
        return any(np.dtype(d).kind == "f" for d in self.dtypes)

    def has_integer(self) -> bool:
        return any(np.dtype(d).kind in "iu" for d in self.dtypes)


KNOWN: list[tuple[tuple[str, ...], str, Callable[[Node], bool]]] = [
    (("ReduceLogSum", "ReduceLogSumExp"), "integers: their logarithms are fractions", lambda n: not n.has_float()),
    (("Cast",), "floats beyond the range of an integer, and NaN", Node.has_float),
    (("Compress",), "a condition that is not 1-D, as the standard requires", lambda n: n.rank(1) != 1),
    (
        ("HannWindow", "HammingWindow", "BlackmanWindow"),
        "a symmetric window of one sample is 0 / 0 by its formula; emberlet and NumPy have 1, the judges NaN",
        lambda n: n.attributes.get("periodic", 1) == 0,
    ),
    (
        ("GroupNormalization", "InstanceNormalization", "BatchNormalization"),
        "scales and biases that are not 1-D; onnxruntime accepts some",
        lambda n: any(n.rank(i) not in (None, 1) for i in range(1, len(n.inputs))),
    ),
    (
        ("ScatterElements", "ScatterND"),
        "reductions that the standard does not have and onnxruntime accepts",
        lambda n: n.attributes.get("reduction") in ("mean", "sum"),
    ),
    (
        ("MeanVarianceNormalization",),
        "lines of one value: 0 by the standard's function, which adds 1e-9 below the line; NaN by the judges",
        lambda n: n.inputs[0] is None or 1 in n.inputs[0].shape,
    ),
    (("Shrink",), "unsigned integers, whose results may be below 0", Node.has_integer),
    (
        ("CenterCropPad",),
        "not exactly one size for each axis",
        lambda n: n.inputs[1] is None or n.inputs[1].size != len(n.attributes.get("axes", [1] * (n.rank(0) or 0))),
    ),
    (
        ("CenterCropPad", "Squeeze"),
        "an empty list of axes, which may mean none or all",
        lambda n: n.attributes.get("axes") == [],
    ),
    (
        ("MaxPool",),
        "column-major indices of other than two spatial axes, which emberlet refuses",
        lambda n: bool(n.attributes.get("storage_order")) and n.rank(0) != 4,
    ),
    (
        ("OneHot",),
        "indices that are floats: the standard casts them to integers, the judges compare them uncast",
        lambda n: n.inputs[0] is None or n.inputs[0].dtype.kind == "f",
    ),
    (
        ("AveragePool", "LpPool", "MaxPool"),
        "dilations with auto_pad: onnxruntime pads as if there were no dilations",
        lambda n: "dilations" in n.attributes and n.attributes.get("auto_pad", "NOTSET") != "NOTSET",
    ),
    (("GlobalMaxPool",), "NaN: onnxruntime ignores it, and ONNX's reference returns a wrong shape", Node.may_hold_nan),
    (
        ("Hardmax",),
        "NaN before opset 13: onnxruntime ignores it, and ONNX's reference flattens no axes",
        Node.may_hold_nan,
    ),
    (
        ("ReduceMean",),
        "the mean of no elements: NaN by 0 / 0, 0 by onnxruntime",
        lambda n: n.inputs[0] is not None and 0 in n.inputs[0].shape,
    ),
]


def left_open(operator: str, inputs: Sequence[Any], dtypes: Sequence[Any], attributes: dict[str, Any]) -> bool:
    """Whether a node is one of KNOWN."""
    node = Node(inputs, dtypes, attributes)
    return any(operator in names and test(node) for names, _, test in KNOWN)
