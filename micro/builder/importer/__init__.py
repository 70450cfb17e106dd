"""Translates the compiler's typed IR to a graph of float32 layers. Each file handles a family of operators and
registers its functions in TRANSLATORS."""

from . import (
    activations,
    categories,
    distances,
    dynamic,
    lanes,
    linear_models,
    moves,
    normalizations,
    pairs,
    picks,
    products,
    quantized,
    recurrences,
    reductions,
    trees,
)
from .table import TRANSLATORS

__all__ = [
    "TRANSLATORS",
    "activations",
    "categories",
    "distances",
    "dynamic",
    "lanes",
    "linear_models",
    "moves",
    "normalizations",
    "pairs",
    "picks",
    "products",
    "quantized",
    "recurrences",
    "reductions",
    "trees",
]
