"""Real and imaginary parts of complex tensors, and complex tensors from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...backend import get_backend
from ...tensor import Tensor
from . import complex64, complex128, named, refuse_elsewhere


def _recorded(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of a tensor that a plan of NumPy calls has as one call, since it takes the array."""

    @wraps(function)
    def call(x: Any, *args: Any) -> Tensor:
        record = getattr(x.backend, "recorded", None) if x.backend.name == "numpy" else None
        found: Tensor = function(x, *args) if record is None else record(function, x, *args)
        return found

    return call


@_recorded
def part(x: Any, which: str) -> Tensor:
    """The parts `which` of a complex tensor: "real", "imag", or "pairs", (…, 2)."""
    dtype, backend = x.dtype.part, x.backend
    if backend.name == "numpy":
        array = x.data
        if which == "pairs":
            import numpy as np

            array = np.stack([array.real, array.imag], -1)
        else:
            array = getattr(array, which)
        return Tensor(array, dtype, array.shape, backend)
    values = backend.to_list(x)
    if which == "pairs":
        return backend.from_list([p for v in values for p in (v.real, v.imag)], dtype, (*x.shape, 2))
    return backend.from_list([getattr(v, which) for v in values], dtype, x.shape)


@_recorded
def conjugate(x: Any) -> Tensor:
    """The conjugates of a complex tensor."""
    if x.backend.name == "numpy":
        import numpy as np

        return Tensor(np.asarray(x.data.conj()), x.dtype, x.shape, x.backend)
    return x.backend.from_list([v.conjugate() for v in x.backend.to_list(x)], x.dtype, x.shape)


@_recorded
def joined(pairs: Any) -> Tensor:
    """The complex tensor (…) of pairs (…, 2), float32 or float64."""
    backend = get_backend(pairs.backend)
    refuse_elsewhere(backend)
    dtype = complex128 if pairs.dtype.name == "float64" else complex64
    named(dtype.name)
    shape = pairs.shape[:-1]
    if backend.name == "numpy":
        import numpy as np

        array = np.ascontiguousarray(pairs.data).view(dtype.name).reshape(shape)
        return Tensor(array, dtype, shape, backend)
    flat = backend.to_list(pairs)
    return backend.from_list([complex(*flat[i : i + 2]) for i in range(0, len(flat), 2)], dtype, shape)
