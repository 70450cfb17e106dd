"""Operators that pick, place and sum elements by index or by name of axis."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


@handles("Einsum")
def einsum(c: Call) -> Any:
    return F.einsum(c.get("equation"), *c.tensors())


@handles("GatherND")
def gather_nd(c: Call) -> Any:
    return F.gather_nd(c.tensor(0), c.tensor(1), c.get("batch_dims", 0))


@handles("ScatterND")
def scatter_nd(c: Call) -> Any:
    return F.scatter_nd(*c.tensors(), c.get("reduction", "none"))


@handles("TensorScatter")
def tensor_scatter(c: Call) -> Any:
    past, update, where = (c.tensor(i) for i in range(3))
    return F.tensor_scatter(past, update, where, c.get("axis", -2), c.get("mode", "linear"))


@handles("GatherElements")
def gather_elements(c: Call) -> Any:
    return F.gather(c.tensor(0), c.get("axis", 0), c.tensor(1))


@handles("ScatterElements", "Scatter")
def scatter_elements(c: Call) -> Any:
    x, indices, updates = c.tensors()
    return F.scatter(x, c.get("axis", 0), indices, updates, c.get("reduction", "none"))


@handles("OneHot")
def one_hot(c: Call) -> Any:
    off, on = c.tensor(2)
    return F.one_hot(c.tensor(0), int(c.value(1)), c.get("axis", -1), off, on, dtype=off.dtype)


@handles("Compress")
def compress(c: Call) -> Any:
    return F.compress(c.tensor(0), c.tensor(1), c.get("axis"))


@handles("ReverseSequence")
def reverse_sequence(c: Call) -> Any:
    return F.reverse_sequence(c.tensor(0), c.tensor(1), c.get("batch_axis", 1), c.get("time_axis", 0))


@handles("TopK")
def top_k(c: Call) -> Any:
    return F.topk_with_indices(c.tensor(0), c.value(1), c.get("axis", -1), largest=bool(c.get("largest", 1)))


@handles("Unique")
def unique(c: Call) -> Any:
    return F.unique(c.tensor(0), c.get("axis"), bool(c.get("sorted", 1)))
