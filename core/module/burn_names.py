"""Burn's names of parameters, where ours are PyTorch's: a norm's gamma and beta, a PRelu's alpha.

A layer declares them in BURN_NAMES: its own attribute -> Burn's.
"""

from ..param import Param
from . import Module, items
from .record import Record


def burn_names(module):
    """Name of each parameter -> its name in a record of Burn."""
    out = {}
    for own, burn in _pairs(module, "", "", ()):
        out[own] = burn
    return out


def _pairs(value, own, burn, path):
    path += (value,)
    other = getattr(value, "BURN_NAMES", {}) if isinstance(value, Module) else {}
    for key, child in items(value):
        theirs = burn + str(other.get(key, key))
        if isinstance(child, Param):
            yield own + str(key), theirs
        elif isinstance(child, (Module, list, tuple, dict)) and not any(p is child for p in path):
            yield from _pairs(child, own + str(key) + ".", theirs + ".", path)


def renamed(module, record):
    """`record` under this library's names if it has Burn's, else None."""
    pack = hasattr(record, "raw")
    names = record.tensors if pack else record
    ours = {}
    found = False
    pairs = burn_names(module)
    for own in pairs:
        burn = pairs[own]
        if burn in names:
            ours[burn] = own
            found = found or (burn != own and burn not in pairs)
    if not found:
        return None
    if pack:
        return _Renamed(record, ours)
    tensors = {}
    ids = {}
    for name in names:
        own = ours.get(name, name)
        tensors[own] = record[name]
        if name in getattr(record, "param_ids", ()):
            ids[own] = record.param_ids[name]
    return Record(tensors, ids) if hasattr(record, "param_ids") else tensors


class _Renamed:
    """A burnpack with renamed tensors; those that are not in `ours` keep their names."""

    def __init__(self, pack, ours):
        self._names = {}
        self._pack = pack
        self.metadata = pack.metadata
        self.tensors = {}
        for name in pack.tensors:
            own = ours.get(name, name)
            self._names[own] = name
            self.tensors[own] = pack.tensors[name]

    def raw(self, name):
        return self._pack.raw(self._names[name])

    def tensor(self, name, backend=None):
        return self._pack.tensor(self._names[name], backend)


def as_burn(module, record):
    """The Record of `module` under Burn's names."""
    pairs = burn_names(module)
    tensors = {}
    ids = {}
    for name in record.tensors:
        tensors[pairs[name]] = record.tensors[name]
        ids[pairs[name]] = record.param_ids[name]
    return Record(tensors, ids)
