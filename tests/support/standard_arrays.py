"""Arrays drawn for the functions of the array API standard, and comparison with array_api_strict."""

from __future__ import annotations

import os
import warnings
from typing import Any

import array_api_strict as strict
import emberlet
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from support.backends import EPSILON, same, tensor

# `dev.py fuzz array-api` asks for more of them.
SETTINGS = {
    "max_examples": int(os.environ.get("EMBERLET_EXAMPLES", "6")),
}
REAL = ["float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = REAL + INTEGERS
COMPLEX = ["complex64", "complex128"]
EVERY = ["bool", *NUMBERS]
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def elements(dtype: str) -> st.SearchStrategy[Any]:
    if dtype == "bool":
        return st.booleans()
    if dtype in REAL:
        return st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.5, 7.25, np.inf, -np.inf, np.nan])
    return st.integers(0 if dtype.startswith("u") else -7, 9)


def finite(dtype: str) -> st.SearchStrategy[Any]:
    if dtype in COMPLEX:
        return st.sampled_from([0.5, -1.5, 2.0, 1j, 0.25 - 1j, -2.0 + 0.5j])
    return st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.5, -1.5]) if dtype in REAL else elements(dtype)


@st.composite
def arrays(draw: Any, kinds: list[str], shape: Any = shapes, of: Any = elements) -> Any:
    dtype = draw(st.sampled_from(kinds))
    return draw(hnp.arrays(dtype, shape, elements=of(dtype)))


def check(call: Any, *given_arrays: Any, rtol: float | None = None) -> None:
    """`call(namespace, *arrays)` gives the same result in both; calls that the reference refuses are not compared."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = call(strict, *map(strict.asarray, given_arrays))
        except (TypeError, ValueError, IndexError, NotImplementedError):
            assume(False)
    found = call(emberlet, *map(tensor, given_arrays))
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    found = found if isinstance(found, (tuple, list)) else [found]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        theirs = np.asarray(theirs)
        single = theirs.dtype.name in ("float32", "complex64") or getattr(ours.backend, "float64_is_float32", False)
        epsilon = EPSILON["float32" if single else "float64"] if theirs.dtype.kind in "fc" else 0
        # What is a sum, and so told its tolerance, may cancel.
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1) if rtol else 1
        same(ours, theirs, rtol=rtol or 8 * epsilon, atol=8 * epsilon * largest)
