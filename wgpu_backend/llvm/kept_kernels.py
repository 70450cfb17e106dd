"""Keeps the functions that a plan's kernels were written to beside their machine code (kept.py): a later process that
makes the same plan neither writes nor compiles them."""

from __future__ import annotations

import marshal
from functools import cache
from typing import Any

from ..kernel_cache import Known, digest_of_code
from ..wasm.assembler import Function
from . import kept, processor


class KernelFile:
    """The kernels of a plan, from an earlier process or for later ones, as ../kernel_cache.py has them of a GPU's."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self._name = processor.kept_name("kernels", _code() + "\n".join(keys).encode()) if _code() else None
        data = None if self._name is None else kept.read(self._name)
        self._new = data is None
        self.kernels: dict[str, Known] = {}
        if data is not None:
            functions, kernels = marshal.loads(data)
            made = [_function(*f) for f in functions]
            for key, (name, number, bindings, groups) in zip(keys, kernels, strict=True):
                self.kernels[key] = (name, made[number], bindings, groups)

    def save(self) -> None:
        """Write the kernels of a new plan, if all of them have been added."""
        if self._name is None or not self._new or any(key not in self.kernels for key in self._keys):
            return
        self._new = False
        numbers: dict[Function, int] = {}
        kernels = []
        for key in self._keys:
            name, f, bindings, groups = self.kernels[key]
            kernels.append((name, numbers.setdefault(f, len(numbers)), bindings, groups))
        functions = [(f.name, f._key, f.scratch, f.steps, f.streams, f.repeats) for f in numbers]
        kept.write(self._name, marshal.dumps((functions, kernels), 2))


def _function(name: str, key: Any, scratch: int, steps: int, streams: int | None, repeats: bool) -> Function:
    """A finished function whose `_key` is `key`."""
    params, results, local, code, _, _, work, lanes = key
    f = Function(name, params, results)
    f.locals, f.buffers, f._key = list(local), [list(code)], key
    f.scratch, f.steps, f.work, f.lanes, f.streams, f.repeats = scratch, steps, work, lanes, streams, repeats
    return f


@cache
def _code() -> bytes:
    """A digest of the code that plans and writes kernels; empty if it lies in an archive."""
    return digest_of_code(("wasm", "wasm/kernels"))
