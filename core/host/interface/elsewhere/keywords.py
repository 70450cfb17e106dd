"""Other libraries' keywords for Module's methods and the classes of data, optim and train, and answers to slips."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any

from ....errors import DTypeError
from .names import _ANY, nearest, renamed

# what PyTorch's DataLoader calls them -> ours
_KEYWORDS = {"num_workers": "workers", "collate_fn": "batcher", "multiprocessing_context": "context",
             "prefetch_factor": "prefetch"}  # fmt: skip
_LEFT_OUT = {"pin_memory": _ANY, "persistent_workers": _ANY, "timeout": 0, "sampler": None, "batch_sampler": None}
_INSTEAD = {"sampler": "write SamplerDataset(dataset, size)", "batch_sampler": "write SamplerDataset(dataset, size)"}


def ours(function: Callable[..., Any], kwargs: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The keyword arguments of a method under our names; None if the call failed for another reason. Raises
    ArgumentError for an option that there is not, and DTypeError for a keyword that nobody has."""
    found = renamed(function, kwargs, name, _KEYWORDS, _LEFT_OUT, _INSTEAD)
    if found is not None:
        return found
    parameters = list(signature(function).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY)]
    unknown = next((k for k in kwargs if k not in names), None)
    if unknown is None:
        return None
    said = f"got an unexpected keyword argument {unknown!r}{nearest(unknown, names)}"
    raise DTypeError(f"{name}: {said}; it is called as {name}{Signature(parameters)}")
