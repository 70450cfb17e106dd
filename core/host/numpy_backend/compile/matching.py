"""Whether the arguments of a call are those that a plan was made for, checked before every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....tensor import Tensor


def matcher(key: Any, arguments: list[Any]) -> Callable[..., bool]:
    """A function of as many arguments as the key has: whether they are Tensors of NumPy with its dtypes, shapes and,
    where the key has them, values. arguments: Tensors that fit.

    It is made as source, because a loop takes four times as long, as much as a fifth of a small function's time.
    """
    names: dict[str, Any] = {"Tensor": Tensor, "ndarray": np.ndarray}
    conditions = []
    for i, (entry, x) in enumerate(zip(key, arguments, strict=True)):
        names |= {f"dtype{i}": x.dtype, f"shape{i}": x.shape}
        conditions.append(f"type(x{i}) is Tensor and x{i}.dtype is dtype{i} and x{i}.shape == shape{i}")
        conditions.append(f"type(x{i}.data) is ndarray")
        if type(entry[0]) is tuple:
            names[f"values{i}"] = entry[0][2]
            conditions.append(f"x{i}.data.tobytes() == values{i}")
    parameters = ", ".join(f"x{i}" for i in range(len(key)))
    found: Callable[..., bool] = eval(f"lambda {parameters}: {' and '.join(conditions) or True}", names)
    return found
