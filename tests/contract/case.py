"""A case: Python source that makes something to call, and the values that it is called with."""

from __future__ import annotations

import itertools
import sys
import types
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import emberlet
import numpy as np

HEAD = """from math import inf, nan

import numpy as np
import emberlet
from emberlet import dtypes as D, functional as F, nn
"""
_numbers = itertools.count()
# What the cases were: their kinds, ways, calls, and the reasons for which ways were left out.
COUNTED: Counter[str] = Counter()


class Case(NamedTuple):
    """source: defines `make(B)`, which returns a function or a module for tensors on the backend B. calls: the arrays
    of each call, in order. seed: which thresholds are lowered, which ways are tried, what is overwritten. kind: what it
    is counted as."""

    source: str
    calls: tuple[tuple[Any, ...], ...]
    seed: int = 0
    kind: str = "programs"

    def make(self, backend: str = "numpy") -> Any:
        """What the case calls. Modules are made on NumPy, and copied from there."""
        module = loaded(self.source)
        emberlet.functional.manual_seed(0)
        made = module.make("numpy")
        if hasattr(made, "fork"):
            for param in made.params():
                param.val()  # drawn now, so that every way has the same
            return made if backend == "numpy" else made.fork(backend)
        return made

    def text(self) -> str:
        """A program that shows the case on every backend."""
        lines = [HEAD, self.source, "", "calls = ["]
        for arrays in self.calls:
            lines.append(f"    ({', '.join(map(shown, arrays))}{',' if len(arrays) == 1 else ''}),")
        lines.append("]")
        return "\n".join(lines)


@cache
def loaded(source: str) -> Any:
    """The module of a source, importable so that what it defines can be pickled."""
    module = types.ModuleType(f"contract_case_{next(_numbers)}")
    sys.modules[module.__name__] = module
    exec(compile(HEAD + source, f"<{module.__name__}>", "exec"), module.__dict__)
    return module


def shown(array: Any) -> str:
    """An array as Python source."""
    if not isinstance(array, np.ndarray):
        return repr(array)
    if array.size > 400:
        return f"np.{array.dtype.name}(np.random.default_rng(0).standard_normal({array.shape}))"
    shape = f".reshape({array.shape})" if array.ndim != 1 else ""
    text = str(array.reshape(-1).tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f'np.array({text}, "{array.dtype.name}"){shape}'


def other_values(array: Any, choose: Any) -> Any:
    """An array of the same dtype, shape and range of values."""
    if not isinstance(array, np.ndarray) or not array.size:
        return array
    flat = array.reshape(-1)
    picked = [choose.randrange(flat.size) for _ in range(flat.size)]
    found = flat[picked]
    if array.dtype.kind == "f" and choose.random() < 0.7:
        found = found * choose.choice([0.5, 2.0, -1.0]) if choose.random() < 0.5 else found
    return np.ascontiguousarray(found.astype(array.dtype)).reshape(array.shape)


def of_other_lengths(arrays: tuple[Any, ...], choose: Any) -> tuple[Any, ...]:
    """The arrays with one of their lengths changed, along every axis that has it."""
    lengths = sorted({n for a in arrays if isinstance(a, np.ndarray) for n in a.shape if n > 1})
    if not lengths:
        return arrays
    was = choose.choice(lengths)
    return of_length(arrays, was, choose.choice([1, was - 1, was + 1, was + 3, 2 * was]))


def of_length(arrays: tuple[Any, ...], was: int, now: int) -> tuple[Any, ...]:
    """The arrays with the length `now` along every axis of the length `was`."""

    def changed(a: Any) -> Any:
        for axis in range(a.ndim if isinstance(a, np.ndarray) else 0):
            if a.shape[axis] == was:
                a = np.take(a, np.arange(now) % was, axis)
        return np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a

    return tuple(map(changed, arrays))


def of_growing_lengths(arrays: tuple[Any, ...], choose: Any) -> list[tuple[Any, ...]]:
    """The arrays with one of their lengths growing by a little, twice."""
    lengths = sorted({n for a in arrays if isinstance(a, np.ndarray) for n in a.shape if n > 1})
    if not lengths:
        return []
    was = choose.choice(lengths)
    return [of_length(arrays, was, was + 1), of_length(arrays, was, was + 1 + choose.randint(1, was))]


def of_other_dtypes(arrays: tuple[Any, ...], widened: bool = True) -> tuple[Any, ...]:
    """The arrays with floats of another precision (widened: also of more), and integers of another width."""
    other = {"float64": "float32", "int64": "int32", "int32": "int64", **({"float32": "float64"} if widened else {})}
    return tuple(a.astype(other.get(a.dtype.name, a.dtype)) if isinstance(a, np.ndarray) else a for a in arrays)


def of_other_kinds(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arrays with floats as integers of the same width, and the other way around."""
    other = {"float32": "int32", "int32": "float32", "uint32": "float32", "float64": "int64", "int64": "float64"}
    return tuple(a.astype(other.get(a.dtype.name, a.dtype)) if isinstance(a, np.ndarray) else a for a in arrays)
