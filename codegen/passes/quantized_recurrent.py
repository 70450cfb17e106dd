"""DynamicQuantizeLSTM with constant weights as layers that hold their integers. Variants that the layers lack remain
calls of the functional layer, as those of LSTM do."""

from __future__ import annotations

from typing import Any

from emberlet import dtypes

from ..ir.choices import RecurrentKind
from ..ir.graph import Node
from ..ops.microsoft_quantized_products import DynamicQuantizeLSTM
from ..ops.quantized_recurrent import QuantizedRecurrentLayer
from ..ops.recurrent import DEFAULT_ACTIVATIONS
from ..ops.recurrent_layers import GATES, RecurrentLayerConfig
from .recurrent import as_layer
from .rewriting import Change, Walk


def step(node: Node[Any], walk: Walk) -> Change | None:
    r = node.value(2) if isinstance(node, DynamicQuantizeLSTM) else None
    config = held(node) if isinstance(node, DynamicQuantizeLSTM) else None
    if r is None or config is None:
        return None
    return as_layer(node, walk, config, r.shape[1], QuantizedRecurrentLayer, node.inputs[8:12])


def held(node: DynamicQuantizeLSTM) -> RecurrentLayerConfig | None:
    """The layer equivalent to the node; None if there is none."""
    c, n = node.config, 2 if node.config.direction == "bidirectional" else 1
    if node.has(4) or node.has(7) or c.alphas or c.betas or node.tensor(0).rank not in (None, 3):
        return None
    if node.dtype(0) is not dtypes.float32 or c.activations not in ((), DEFAULT_ACTIVATIONS["LSTM"] * n):
        return None
    r = node.value(2)
    columns = len(GATES[RecurrentKind.LSTM]) * (r.shape[1] if r is not None and len(r.shape) == 3 else 0)
    if not columns or not all(is_packed(node, *at, (n, columns)) for at in ((1, 8, 9), (2, 10, 11))):
        return None
    bias = node.value(3)
    if node.has(3) and (bias is None or bias.shape != (n, 2 * columns) or bias.dtype is not dtypes.float32):
        return None
    first = DEFAULT_ACTIVATIONS["LSTM"][0]
    return RecurrentLayerConfig(
        RecurrentKind.LSTM, n == 2, c.direction == "reverse", c.clip, False, c.input_forget, first
    )


def is_packed(node: DynamicQuantizeLSTM, i: int, scale: int, zero: int, shape: tuple[int, int]) -> bool:
    """Whether a weight (directions, …, columns) and its parts are constants of the forms that layers hold. shape: of
    its first and last axis."""
    w, scales, zeros = (node.value(k) for k in (i, scale, zero))
    if w is None or scales is None or zeros is None or w.dtype not in (dtypes.uint8, dtypes.int8):
        return False
    sizes = (shape[0], shape[0] * shape[1])
    return (
        (w.shape[0], w.shape[-1]) == shape and len(w.shape) == 3 and zeros.dtype is w.dtype
        and scales.dtype is dtypes.float32 and scales.size in sizes and zeros.size in sizes
    )  # fmt: skip
