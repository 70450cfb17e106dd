"""Tensors from objects that are neither numbers nor lists."""

from ...backend import get_backend
from ...errors import refuse


def from_object(obj, dtype, backend, copy):
    """See `asarray`."""
    if hasattr(obj, "dequantize") and hasattr(obj, "zero_point"):  # Quantized
        from .transfer import converted

        return converted(obj.dequantize(), dtype, backend, copy)
    target = get_backend(backend)
    if hasattr(obj, "to_tensor"):  # TensorData
        x = obj.to_tensor(target)
        return x if dtype is None or dtype is x.dtype else x.backend.cast(x, dtype)
    if isinstance(obj, range):
        from ..arrays import asarray

        return asarray(list(obj), dtype=dtype, backend=target)
    try:
        from ...host.interop import from_array
    except ImportError:
        refuse("no tensor", type(obj))
    return from_array(obj, dtype, target, copy)


def stacked(values, dtype, target):
    """Nested lists of arrays or tensors of one shape, as one tensor on backend `target`."""
    from ..arrays import asarray
    from ..movement.joining import stack

    parts = []
    for v in values:
        part = stacked(v, None, target) if isinstance(v, (list, tuple)) else asarray(v, backend=target)
        parts.append(part)
    x = stack(parts)
    return x if dtype is None or dtype is x.dtype else x.backend.cast(x, dtype)
