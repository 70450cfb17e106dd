"""Stores: weight files of every common format behind one interface. docs/store.md is the guide.

    weights = emberlet.store.open("model.safetensors")     # a mapping from names to Snapshots; nothing is read yet
    model.load_from(weights)                               # -> LoadResult
    model.save_into("model.bpk")

Reading needs no library for any format.
"""

from __future__ import annotations

from functools import partial

from ..burnpack.limits import Limits
from ..host.public import find
from .burn_stores import (
    BurnpackStore,
    BurnToPyTorchAdapter,
    ModuleStore,
    PathFilter,
    PytorchStore,
    PyTorchToBurnAdapter,
    SafetensorsStore,
)
from .filters import Filter
from .loading import LoadResult
from .naming import KeyRemapper
from .opening import config_from_file, open
from .snapshot import Snapshot
from .sources import from_module, merge, store_of
from .stored import Store
from .writing import dumps, save

__all__ = [
    "BurnToPyTorchAdapter",
    "BurnpackStore",
    "Filter",
    "KeyRemapper",
    "Limits",
    "LoadResult",
    "ModuleStore",
    "PathFilter",
    "PyTorchToBurnAdapter",
    "PytorchStore",
    "SafetensorsStore",
    "Snapshot",
    "Store",
    "config_from_file",
    "dumps",
    "from_module",
    "merge",
    "open",
    "save",
    "store_of",
]

__getattr__ = partial(find, __name__)
