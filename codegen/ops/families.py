"""Which family an operator belongs to, as a person would sort them."""

from __future__ import annotations

from typing import assert_never

from . import (
    AnyNode,
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


def family(node: AnyNode) -> str:
    """The name of a node's family. That every operator has one is proved by the type checker: what is in the union
    and in no branch here is an error at the last line."""
    if isinstance(node, arithmetic.Family):
        return "arithmetic"
    if isinstance(node, attention.Family):
        return "attention"
    if isinstance(node, constant.Family):
        return "constant"
    if isinstance(node, control.Family):
        return "control"
    if isinstance(node, convolution.Family):
        return "convolution"
    if isinstance(node, elementwise.Family):
        return "elementwise"
    if isinstance(node, indexing.Family):
        return "indexing"
    if isinstance(node, internal.Family):
        return "the compiler's own"
    if isinstance(node, linear_algebra.Family):
        return "linear algebra"
    if isinstance(node, losses.Family):
        return "losses"
    if isinstance(node, machine_learning_features.Family):
        return "machine learning"
    if isinstance(node, machine_learning_models.Family):
        return "machine learning"
    if isinstance(node, machine_learning_trees.Family):
        return "machine learning"
    if isinstance(node, microsoft.Family):
        return "com.microsoft"
    if isinstance(node, microsoft_attention.Family):
        return "com.microsoft"
    if isinstance(node, microsoft_normalization.Family):
        return "com.microsoft"
    if isinstance(node, microsoft_products.Family):
        return "com.microsoft"
    if isinstance(node, microsoft_quantized.Family):
        return "com.microsoft"
    if isinstance(node, microsoft_quantized_products.Family):
        return "com.microsoft"
    if isinstance(node, microsoft_standard.Family):
        return "com.microsoft"
    if isinstance(node, blocks.Family):
        return "movement"
    if isinstance(node, expansion.Family):
        return "movement"
    if isinstance(node, joining.Family):
        return "movement"
    if isinstance(node, slicing.Family):
        return "movement"
    if isinstance(node, softmax.Family):
        return "normalization"
    if isinstance(node, movement.Family):
        return "movement"
    if isinstance(node, normalization.Family):
        return "normalization"
    if isinstance(node, pooling.Family):
        return "pooling"
    if isinstance(node, quantization.Family):
        return "quantization"
    if isinstance(node, random.Family):
        return "random"
    if isinstance(node, recurrent.Family):
        return "recurrent"
    if isinstance(node, reduction.Family):
        return "reduction"
    if isinstance(node, resizing.Family):
        return "resizing"
    if isinstance(node, sampling.Family):
        return "sampling"
    if isinstance(node, sequence.Family):
        return "sequence"
    if isinstance(node, sets.Family):
        return "sets"
    if isinstance(node, signal.Family):
        return "signal"
    if isinstance(node, text.Family):
        return "text"
    if isinstance(node, training.Family):
        return "training"
    assert_never(node)
