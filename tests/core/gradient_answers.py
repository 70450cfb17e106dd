"""What is kept of PyTorch's gradients for the configurations of torch_configurations.py."""

from __future__ import annotations

from typing import Any

import numpy as np

KEPT = 24  # elements of a gradient that are kept, evenly spread over it


def kept(x: Any) -> Any:
    flat = np.asarray(x).reshape(-1)
    return flat[np.linspace(0, flat.size - 1, min(flat.size, KEPT)).round().astype(int)]


def weights(shape: tuple[int, ...]) -> Any:
    """What a result is multiplied with before it is summed."""
    size = int(np.prod(shape, dtype=int))
    return np.cos(np.arange(size, dtype=np.float64) * 1.7 + 0.3).astype(np.float32).reshape(shape)


def wanted(kind: str, arrays: dict[str, Any]) -> list[str]:
    """The arrays of a configuration that require a gradient; in PyTorch, running statistics and targets have none."""
    fixed = {"batch_norm": ("mean", "var"), "regression": ("target",), "classification": ("weight",)}.get(kind, ())
    return [k for k, v in arrays.items() if np.asarray(v).dtype.kind == "f" and k not in fixed]
