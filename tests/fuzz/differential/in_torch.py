"""The functional layer in PyTorch's terms, in float64: what a drawn program computes there.

A function or an argument that is missing raises NotImplementedError or whatever PyTorch raises; such a program is not
compared with PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .straight import Program

_SAME = (
    "exp tanh sin cos erf sigmoid expm1 atan log1p sqrt log relu abs square floor ceil round trunc sign isnan isinf "
    "flip roll tile stack softmax log_softmax matmul less less_equal greater greater_equal equal not_equal logaddexp "
    "atan2 hypot selu celu einsum"
).split()
_OTHER = {
    "equal": "eq", "not_equal": "ne", "negative": "neg", "permute_dims": "permute", "expand_dims": "unsqueeze",
    "bitwise_invert": "bitwise_not",
}  # fmt: skip
_ACTIVATIONS = {
    "silu": "silu", "softplus": "softplus", "elu": "elu", "mish": "mish", "hard_swish": "hardswish", "relu6": "relu6",
    "leaky_relu": "leaky_relu", "hardtanh": "hardtanh", "softsign": "softsign", "log_sigmoid": "logsigmoid",
    "glu": "glu",
}  # fmt: skip


class TorchTypes:
    """The dtypes by name, with float64 in the place of every float."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return torch.float64 if "float" in name else getattr(torch, name)


class TorchFunctions:
    """F for a program that runs in PyTorch."""

    def __init__(self) -> None:
        import torch

        self.t = torch
        self.n = torch.nn.functional

    def __getattr__(self, name: str) -> Any:
        if name in _ACTIVATIONS:
            return getattr(self.n, _ACTIVATIONS[name])
        if name in _SAME or name in _OTHER:
            return lambda *args, **kwargs: self._called(_OTHER.get(name, name), args, kwargs)
        raise NotImplementedError(name)

    def _called(self, name: str, args: Any, kwargs: Any) -> Any:
        if name in ("einsum", "stack", "tile", "flip", "roll", "softmax", "log_softmax", "permute", "unsqueeze"):
            if name == "stack":
                kwargs = {"dim": kwargs["axis"]}
            return getattr(self.t, name)(*args, **kwargs) if name != "flip" else self.t.flip(args[0], (args[1],))
        like = next(a for a in args if isinstance(a, self.t.Tensor))
        return getattr(self.t, name)(*[self._tensor(a, like) for a in args], **kwargs)

    def _tensor(self, a: Any, like: Any) -> Any:
        return a if isinstance(a, self.t.Tensor) else self.t.tensor(a, dtype=like.dtype)

    def _pair(self, a: Any, b: Any) -> tuple[Any, Any]:
        like = a if isinstance(a, self.t.Tensor) else b
        return self._tensor(a, like), self._tensor(b, like)

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def subtract(self, a: Any, b: Any) -> Any:
        return a - b

    def multiply(self, a: Any, b: Any) -> Any:
        return a * b

    def maximum(self, a: Any, b: Any) -> Any:
        return self.t.maximum(*self._pair(a, b))

    def minimum(self, a: Any, b: Any) -> Any:
        return self.t.minimum(*self._pair(a, b))

    def where(self, mask: Any, a: Any, b: Any) -> Any:
        return self.t.where(mask, *self._pair(a, b))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.t.clamp(x, low, high)

    def gelu(self, x: Any, approximate: str = "none") -> Any:
        return self.n.gelu(x, approximate=approximate)

    def prelu(self, x: Any, alpha: float) -> Any:
        return self.n.prelu(x, self.t.tensor([alpha], dtype=x.dtype))

    def cast(self, x: Any, dtype: Any) -> Any:
        return x.to(dtype)

    def pow(self, x: Any, y: Any) -> Any:
        return x**y

    # -- creation and movement ----------------------------------------------------------------------------------------

    def arange(self, n: int, dtype: Any = None, device: Any = None) -> Any:
        return self.t.arange(n, dtype=dtype or self.t.int64)

    def zeros(self, shape: Any, dtype: Any, device: Any = None) -> Any:
        return self.t.zeros(shape, dtype=dtype)

    def ones(self, shape: Any, dtype: Any, device: Any = None) -> Any:
        return self.t.ones(shape, dtype=dtype)

    def full(self, shape: Any, fill: Any, dtype: Any, device: Any = None) -> Any:
        return self.t.full(shape, fill, dtype=dtype)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    def squeeze(self, x: Any, axis: int) -> Any:
        return x.squeeze(axis)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return x.expand(shape)

    def swap_dims(self, x: Any, a: int, b: int) -> Any:
        return x.transpose(a, b)

    def repeat(self, x: Any, n: int, *, axis: int) -> Any:
        return x.repeat_interleave(n, axis)

    def tril(self, x: Any, *, k: int) -> Any:
        return self.t.tril(x, k)

    def triu(self, x: Any, *, k: int) -> Any:
        return self.t.triu(x, k)

    def pad(self, x: Any, pads: Any, value: Any = 0, mode: str = "constant") -> Any:
        if mode == "constant":
            return self.n.pad(x, [n for pair in reversed(pads) for n in pair], value=value)
        for axis, pair in enumerate(pads):
            x = x.index_select(axis, self.t.from_numpy(np.pad(np.arange(x.shape[axis]), pair, mode=mode)))
        return x

    def concat(self, parts: Any, *, axis: int) -> Any:
        return self.t.cat(list(parts), axis)

    def split(self, x: Any, sizes: Any, *, axis: int) -> Any:
        return self.t.split(x, sizes, axis)

    def slice_assign(self, x: Any, ranges: Any, values: Any) -> Any:
        x = x.clone()
        x[tuple(slice(*r) for r in ranges)] = values
        return x

    # -- indexing -----------------------------------------------------------------------------------------------------

    def _places(self, indices: Any, n: int) -> Any:
        indices = self.t.as_tensor(indices).long()
        return self.t.where(indices < 0, indices + n, indices)

    def take(self, x: Any, indices: Any, *, axis: int) -> Any:
        return x.index_select(axis, self._places(indices, x.shape[axis]))

    def gather(self, x: Any, axis: int, indices: Any) -> Any:
        return self.t.gather(x, axis, self._places(indices, x.shape[axis]))

    def embedding(self, indices: Any, weight: Any) -> Any:
        return self.n.embedding(self._places(indices, weight.shape[0]), weight)

    def scatter(self, x: Any, axis: int, indices: Any, values: Any, reduction: str) -> Any:
        places = self._places(indices, x.shape[axis])
        if reduction == "none":
            raise NotImplementedError("of several updates of one element PyTorch takes any")
        how = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[reduction]
        if how == "sum":
            return x.scatter_add(axis, places, values)
        return x.scatter_reduce(axis, places, values, how)

    # -- reductions, scans, order -------------------------------------------------------------------------------------

    def _axes(self, x: Any, axes: Any) -> tuple[int, ...]:
        if axes is None:
            return tuple(range(x.ndim))
        return tuple(sorted(a % x.ndim for a in ((axes,) if isinstance(axes, int) else axes)))

    def sum(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.sum(self._axes(x, axes), keepdim=keepdims, dtype=x.dtype)

    def max(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.amax(self._axes(x, axes), keepdim=keepdims)

    def min(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.amin(self._axes(x, axes), keepdim=keepdims)

    def prod(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        for axis in reversed(self._axes(x, axes)):
            x = x.prod(axis, keepdim=keepdims, dtype=x.dtype)
        return x

    def mean(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.mean(self._axes(x, axes), keepdim=keepdims)

    def var(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.var(self._axes(x, axes), correction=0, keepdim=keepdims)

    def logsumexp(self, x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return self.t.logsumexp(x, self._axes(x, axes), keepdim=keepdims)

    def cumulative_sum(self, x: Any, *, axis: int) -> Any:
        return x.cumsum(axis)

    def cumulative_prod(self, x: Any, *, axis: int) -> Any:
        return x.cumprod(axis)

    def cummax(self, x: Any, axis: int) -> Any:
        return x.cummax(axis).values

    def cummin(self, x: Any, axis: int) -> Any:
        return x.cummin(axis).values

    def cumsum(self, x: Any, axis: int, *, exclusive: bool, reverse: bool) -> Any:
        out = x.flip(axis).cumsum(axis)
        if exclusive:
            out = out - x.flip(axis)
        return out.flip(axis)

    def sort(self, x: Any, axis: int, *, descending: bool) -> Any:
        return self.t.sort(x, dim=axis, descending=descending, stable=True).values

    # -- networks -----------------------------------------------------------------------------------------------------

    def linear(self, x: Any, weight: Any, bias: Any = None) -> Any:
        return x @ weight if bias is None else x @ weight + bias

    def layer_norm(self, x: Any, weight: Any = None, bias: Any = None, *, axis: int, epsilon: float) -> Any:
        return self.n.layer_norm(x, x.shape[axis:], weight, bias, epsilon)

    def rms_norm(self, x: Any, weight: Any = None, *, axis: int, epsilon: float) -> Any:
        return self.n.rms_norm(x, x.shape[axis:], weight, epsilon)

    def group_norm(self, x: Any, groups: int, weight: Any, bias: Any, epsilon: float) -> Any:
        return self.n.group_norm(x, groups, weight, bias, epsilon)

    def batch_norm(self, x: Any, mean: Any, var: Any, weight: Any, bias: Any, epsilon: float) -> Any:
        mean, var, weight, bias = (p.reshape(-1, *[1] * (x.ndim - 2)) for p in (mean, var, weight, bias))
        return (x - mean) / self.t.sqrt(var + epsilon) * weight + bias

    def attention(self, q: Any, k: Any, v: Any, mask: Any = None, *, is_causal: bool = False) -> Any:
        return self.n.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)

    def conv2d(self, x: Any, weight: Any, bias: Any = None, **settings: Any) -> Any:
        return self.n.conv2d(x, weight, bias, **settings)

    def conv1d(self, x: Any, weight: Any, bias: Any = None, **settings: Any) -> Any:
        return self.n.conv1d(x, weight, bias, **settings)

    def conv_transpose(self, x: Any, weight: Any, bias: Any = None, **settings: Any) -> Any:
        return getattr(self.n, f"conv_transpose{x.ndim - 2}d")(x, weight, bias, **settings)

    def max_pool2d(self, x: Any, kernel: Any, **settings: Any) -> Any:
        return self.n.max_pool2d(x, kernel, **settings)

    def avg_pool2d(self, x: Any, kernel: Any, **settings: Any) -> Any:
        return self.n.avg_pool2d(x, kernel, **settings)

    def cross_entropy(self, x: Any, target: Any) -> Any:
        return self.n.cross_entropy(x, target.long())

    def lstm(self, x: Any, w: Any, r: Any, b: Any = None) -> Any:
        """ONNX's layout, one direction: gates i, o, f, c."""
        n = r.shape[2]
        h = c = self.t.zeros((x.shape[1], n), dtype=x.dtype)
        out = []
        for row in x:
            gates = row @ w[0].T + h @ r[0].T
            if b is not None:
                gates = gates + b[0, : 4 * n] + b[0, 4 * n :]
            i, o, f, g = gates.split(n, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return self.t.stack(out)[:, None], h[None], c[None]

    def gru(self, x: Any, w: Any, r: Any, b: Any = None, *, linear_before_reset: bool = False) -> Any:
        """ONNX's layout, one direction: gates z, r, h."""
        n = r.shape[2]
        h = self.t.zeros((x.shape[1], n), dtype=x.dtype)
        bias = self.t.zeros((1, 6 * n), dtype=x.dtype) if b is None else b
        left, right = bias[0, : 3 * n].split(n), bias[0, 3 * n :].split(n)
        ws, rs = w[0].split(n), r[0].split(n)
        out = []
        for row in x:
            z, s = (
                (row @ ws[k].T + h @ rs[k].T + left[k] + right[k]).sigmoid() for k in range(2)
            )  # fmt: skip
            inside = s * (h @ rs[2].T + right[2]) if linear_before_reset else (s * h) @ rs[2].T + right[2]
            h = (1 - z) * (row @ ws[2].T + inside + left[2]).tanh() + z * h
            out.append(h)
        return self.t.stack(out)[:, None], h[None]


def gradients(case: Program, wide: list[Any], seeds: Any) -> tuple[list[Any], list[Any]]:
    """(the results, the gradients of the inputs that are floats) of a program in PyTorch, as arrays. wide: the inputs;
    seeds(shape): what the results' gradients are."""
    import torch

    tensors = [torch.tensor(np.asarray(x)) for x in wide]
    for x in tensors:
        x.requires_grad_(x.dtype.is_floating_point)
    names: dict[str, Any] = {"F": TorchFunctions(), "D": TorchTypes()}
    exec(
        compile(case.body().replace(f"    B = {case.inputs[0].name}.backend\n", "    B = None\n"), "<p>", "exec"), names
    )
    found = names["program"](*tensors)
    loss = sum(
        ((y * torch.tensor(seeds(tuple(y.shape)))).sum() for y in found if y.dtype.is_floating_point),
        start=torch.zeros((), dtype=torch.float64),
    )
    if loss.requires_grad:
        loss.backward()
    out = [x.grad.numpy() if x.grad is not None else np.zeros(x.shape) for x in tensors if x.requires_grad]
    return [y.detach().numpy() for y in found], out


def installed() -> bool:
    """Whether PyTorch is."""
    import importlib.util

    return importlib.util.find_spec("torch") is not None
