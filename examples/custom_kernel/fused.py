"""A custom operation: matrix product, addition and ReLU in one, added to the backends from outside.

`matmul_add_relu(lhs, rhs, bias)` works on every backend: on wgpu with the kernel in kernel.wgsl, and with the one in
backward.wgsl for its gradient, on the others as a composition of existing operations.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

from emberlet import autodiff, dtypes
from emberlet import functional as F
from emberlet.backend import extend, operation
from emberlet.errors import BackendError, ShapeError
from emberlet.shapes import broadcast, strides
from emberlet.tensor import Tensor
from emberlet.wgpu_backend import WgpuBackend

TEMPLATE = pathlib.Path(__file__).with_name("kernel.wgsl")
BACKWARD = pathlib.Path(__file__).with_name("backward.wgsl")
WORKGROUP = (16, 16)
BACKWARD_WORKGROUP = 64
MAX_GROUPS = 65535  # along each dimension, WebGPU's limit


def matmul_add_relu(lhs: Tensor, rhs: Tensor, bias: Tensor) -> Tensor:
    """max(lhs @ rhs + bias, 0): lhs (…, m, k), rhs (…, k, n), bias (…, m, n); leading dimensions broadcast, and so do
    bias's last two. Raises ShapeError if the shapes do not fit, BackendError if the tensors are on different backends.
    """
    if not lhs.backend is rhs.backend is bias.backend:
        raise BackendError(f"lhs is on {lhs.backend}, rhs on {rhs.backend}, bias on {bias.backend}; move them together")
    if min(lhs.ndim, rhs.ndim) < 2 or lhs.shape[-1] != rhs.shape[-2]:
        raise ShapeError(f"matmul_add_relu: {lhs.shape} @ {rhs.shape}: columns of lhs must equal rows of rhs")
    shape = (*broadcast(lhs.shape[:-2], rhs.shape[:-2]), lhs.shape[-2], rhs.shape[-1])
    if broadcast(shape, bias.shape) != shape:
        raise ShapeError(f"matmul_add_relu: bias {bias.shape} does not broadcast to the product's {shape}")
    own = operation(lhs.backend, "matmul_add_relu")
    if own is not None:
        return own(lhs, rhs, bias, shape)
    return reference(lhs, rhs, bias)


def reference(lhs: Tensor, rhs: Tensor, bias: Tensor) -> Tensor:
    """The same from existing operations, for backends without a kernel and for comparison in tests."""
    return F.relu(lhs @ rhs + bias)


@extend(WgpuBackend, "matmul_add_relu")
def on_gpu(backend: Any, lhs: Tensor, rhs: Tensor, bias: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`matmul_add_relu` on a GPU, with one kernel where possible. The caller has checked the shapes."""
    *lead, m, n = shape
    batches = 1
    for size in lead:
        batches *= size
    groups = (-(-n // WORKGROUP[0]), -(-m // WORKGROUP[1]), batches)
    kinds = {lhs.dtype, rhs.dtype, bias.dtype}
    if kinds != {dtypes.float32} or 0 in (*shape, lhs.shape[-1]) or max(groups) > MAX_GROUPS:
        return reference(lhs, rhs, bias)  # cases that the kernel does not support
    rank = len(shape)
    info = [s for x in (lhs, rhs, bias) for s in broadcast_strides(x.shape, rank)]
    info += [*strides(shape), *shape]
    values = {
        "elem": "f32",
        "rank": rank,
        "k": lhs.shape[-1],
        "workgroup_size_x": WORKGROUP[0],
        "workgroup_size_y": WORKGROUP[1],
    }
    inputs = (lhs, rhs, bias, backend.from_list(info, dtypes.uint32, (len(info),)))
    return backend.launch("matmul_add_relu", str(TEMPLATE), inputs, dtypes.float32, shape, groups, values)


def broadcast_strides(shape: Sequence[int], rank: int) -> list[int]:
    """The strides of a contiguous tensor of `shape` seen as one of `rank` dimensions; 0 where it broadcasts."""
    own = [0 if n == 1 else s for n, s in zip(shape, strides(shape), strict=True)]
    return [0] * (rank - len(own)) + own


@autodiff.backward("matmul_add_relu", WgpuBackend, saves=lambda y, lhs, rhs, bias, shape: (y, lhs, rhs, bias.shape))
def backward_on_gpu(
    gradient: Tensor, y: Tensor, lhs: Tensor, rhs: Tensor, bias_shape: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of lhs, rhs and bias, from that of the result y."""
    inside = relu_backward(gradient, y)
    return (
        summed_to(inside @ rhs.mT, lhs.shape),
        summed_to(lhs.mT @ inside, rhs.shape),
        summed_to(inside, bias_shape),
    )


def relu_backward(gradient: Tensor, y: Tensor) -> Tensor:
    """gradient where y > 0, else 0, with the kernel in backward.wgsl where possible."""
    groups = (-(-y.size // BACKWARD_WORKGROUP), 1, 1)
    if y.dtype is not dtypes.float32 or not y.size or groups[0] > MAX_GROUPS:
        return F.where(y > 0, gradient, 0.0)
    values = {"elem": "f32", "workgroup_size": BACKWARD_WORKGROUP}
    inputs = (gradient, y)
    return y.backend.launch("relu_backward", str(BACKWARD), inputs, dtypes.float32, y.shape, groups, values)


def summed_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x summed over the axes along which a tensor of `shape` was broadcast to x's shape."""
    lead = x.ndim - len(shape)
    axes = [i for i in range(x.ndim) if i < lead or (shape[i - lead] == 1 and x.shape[i] != 1)]
    return F.sum(x, tuple(axes), keepdims=True).reshape(shape) if axes else x.reshape(shape)
