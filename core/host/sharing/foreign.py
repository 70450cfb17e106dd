"""Arrays of other libraries as values of parameters."""

from __future__ import annotations

from typing import Any, cast

from ...functional.arrays import asarray
from ...tensor import Tensor


def tensor_of(value: Any) -> Tensor:
    """A copy of another library's array: NumPy's, or PyTorch's, which may need gradients or lie on a GPU."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":  # NumPy has none; its bits are the upper half of float32's
            value = value.float()
            return cast("Tensor", asarray(value.numpy(), dtype="bfloat16"))
        value = value.numpy()
    return cast("Tensor", asarray(value.__array__() if hasattr(value, "__array__") else value, copy=True))
