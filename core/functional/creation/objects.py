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
    try:
        from ...host.interop import from_array
    except ImportError:
        refuse("no tensor", type(obj))
    return from_array(obj, dtype, target, copy)
