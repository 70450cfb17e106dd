"""Moving the tensors of a batch to a backend."""

from ..tensor import Tensor


def moved(batch, backend):
    """The batch with its tensors on `backend`: a tensor, or tuples, lists, dicts and objects with attributes that hold
    them. Objects are changed, everything else is new."""
    if isinstance(batch, Tensor):
        return batch.to(backend)
    if isinstance(batch, dict):
        return {name: moved(batch[name], backend) for name in batch}
    if isinstance(batch, tuple):
        parts = [moved(x, backend) for x in batch]
        return tuple(parts) if type(batch) is tuple else type(batch)(*parts)
    if isinstance(batch, list):
        return [moved(x, backend) for x in batch]
    for name in list(getattr(batch, "__dict__", ())):
        setattr(batch, name, moved(getattr(batch, name), backend))
    return batch
