"""Tensors from objects that are neither numbers nor lists."""

from ...errors import refuse


def from_object(obj, dtype, target, copy):
    """See `asarray`."""
    if hasattr(obj, "to_tensor"):  # TensorData
        x = obj.to_tensor(target)
        return x if dtype is None or dtype is x.dtype else x.backend.cast(x, dtype)
    try:
        from ...host.interop import from_array
    except ImportError:
        refuse("no tensor", type(obj))
    return from_array(obj, dtype, target, copy)
