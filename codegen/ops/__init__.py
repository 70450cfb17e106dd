"""Operators: one class each, in a file per family. `AnyNode` is the union of all, and the registry is made from it.

Adding an operator: see docs/add-an-operator.md.
"""

from __future__ import annotations

from typing import Any, get_args

from ..ir.node import Node
from . import (
    arithmetic,
    attention,
    blocks,
    constant,
    control,
    convolution,
    elementwise,
    expansion,
    indexing,
    internal,
    joining,
    linear_algebra,
    losses,
    machine_learning_features,
    machine_learning_models,
    machine_learning_trees,
    microsoft,
    microsoft_attention,
    microsoft_normalization,
    microsoft_products,
    microsoft_quantized,
    microsoft_quantized_products,
    microsoft_standard,
    movement,
    normalization,
    pooling,
    quantization,
    random,
    recurrent,
    reduction,
    resizing,
    sampling,
    sequence,
    sets,
    signal,
    slicing,
    softmax,
    text,
    training,
)

AnyNode = (
    arithmetic.Family
    | attention.Family
    | blocks.Family
    | constant.Family
    | control.Family
    | convolution.Family
    | elementwise.Family
    | expansion.Family
    | indexing.Family
    | internal.Family
    | joining.Family
    | linear_algebra.Family
    | losses.Family
    | machine_learning_features.Family
    | machine_learning_models.Family
    | machine_learning_trees.Family
    | microsoft.Family
    | microsoft_attention.Family
    | microsoft_normalization.Family
    | microsoft_products.Family
    | microsoft_quantized.Family
    | microsoft_quantized_products.Family
    | microsoft_standard.Family
    | movement.Family
    | normalization.Family
    | pooling.Family
    | quantization.Family
    | random.Family
    | recurrent.Family
    | reduction.Family
    | resizing.Family
    | sampling.Family
    | sequence.Family
    | sets.Family
    | signal.Family
    | slicing.Family
    | softmax.Family
    | text.Family
    | training.Family
)

OPERATORS: tuple[type[Node[Any]], ...] = get_args(AnyNode)
REGISTRY: dict[tuple[str, str], type[Node[Any]]] = {(c.domain, c.op()): c for c in OPERATORS}
