"""Moving a tensor to another backend, or to memory of its own."""

from ... import dtypes
from ...backend import Backend, get_backend, names
from ...errors import ArgumentError, DTypeError
from ..operands import alias


#: function; backend: Backend | str
def move(x, backend):
    """x on another backend, copied through host memory (not copied if it is there already)."""
    backend = get_backend(backend)
    if x.backend is backend or getattr(x.backend, "eager", None) is backend:  # or stands for it while a model is traced
        return alias(x)
    if getattr(backend, "inner", None) is x.backend:  # an autodiff backend around x's
        return backend.from_inner(x)
    if getattr(x.backend, "inner", None) is backend:
        return alias(x.data.inner)
    if x.dtype.kind == "string":
        return backend.from_list(x.backend.to_list(x), x.dtype, x.shape)
    return backend.from_bytes(x.backend.to_bytes(x), x.dtype, x.shape)


#: method; PyTorch to; Burn to_device; target: Backend | DType | str; more: Backend | DType | str
def to(x, target, *more):
    """x on another backend, in another dtype, or both: `x.to("wgpu")`, `x.to(emberlet.float16)`."""
    for t in (target,) + more:
        if isinstance(t, Backend) or (isinstance(t, str) and t.split(":")[0] in names()):
            x = move(x, t)
            continue
        try:
            dtype = dtypes.dtype(t)
        except DTypeError:
            x = move(x, t)  # which says what backends there are
            continue
        x = alias(x) if x.dtype is dtype else x.backend.cast(x, dtype)
    return x


#: method; stream: None
def to_device(x, device, *, stream=None):
    """x on the backend called `device` (array API)."""
    if stream is not None:
        raise ArgumentError("emberlet has no streams, stream must be None")
    return move(x, device)


def duplicate(x):
    """A copy of x in memory of its own."""
    if hasattr(x.backend, "from_inner"):  # nothing changes the elements of a tensor that records its history
        return alias(x)
    if x.dtype.kind == "string":
        return x.backend.from_list(list(x.backend.to_list(x)), x.dtype, x.shape)
    return x.backend.from_bytes(bytes(x.backend.to_bytes(x)), x.dtype, x.shape)


def converted(x, dtype, backend, copy):
    """`asarray` of a tensor."""
    target = x.backend if backend is None else get_backend(backend)
    if copy is False and (target is not x.backend or (dtype is not None and dtype is not x.dtype)):
        raise ArgumentError("another dtype or backend needs a copy, and copy=False forbids it")
    if target is not x.backend:
        x = move(x, target)
    if dtype is not None and dtype is not x.dtype:
        return x.backend.cast(x, dtype)
    return duplicate(x) if copy else x
