"""Intel's MKL: its matrix products in float32, for the compiled NumPy plans that it is faster for.

`pip install "emberlet[mkl]"` installs it. On an Intel processor with AVX-512 plans then use it unasked. Only its
products for one thread are used: a plan has threads of its own. It brings its OpenMP threads too, but they end the
process where another copy of that library is loaded, and wait for each other by spinning.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any

from ..errors import BackendError
from . import blas_kernels, extras

VARIABLE = "EMBERLET_BLAS"
NUMPY, MKL = "numpy", "mkl"

# The libraries of the package that a product may need. MKL ends the process if one is missing.
_NEEDED = ("rt", "core", "sequential", "intel_lp64", "def", "mc3", "avx2", "avx512", "avx10", "vml_")
_FUNCTIONS = (
    "cblas_sgemm", "cblas_sgemm_batch", "cblas_sgemm_compute", "cblas_sgemm_pack", "cblas_sgemm_pack_get_size",
    "vmsCdfNorm", "vmsExp", "MKL_Set_Interface_Layer", "MKL_Set_Threading_Layer",
)  # fmt: skip
_LP64, _SEQUENTIAL = 0, 1  # integers of 32 bits; one thread


class Absent(Exception):
    """Why MKL cannot be used."""


def asked(environment: Any = os.environ) -> str:
    """What EMBERLET_BLAS asks for: "numpy", "mkl", or "" where it is not set. Raises BackendError for other values."""
    found: str = environment.get(VARIABLE, "")
    if found not in ("", NUMPY, MKL):
        raise BackendError(f"{VARIABLE}={found} is neither {NUMPY} nor {MKL}: set it to one of them, or not at all")
    return found


def suits(found: blas_kernels.Processor | None = None) -> bool:
    """Whether MKL is faster than NumPy's OpenBLAS on this processor."""
    if sys.platform != "linux":
        return False
    vendor, _, avx512 = blas_kernels.processor() if found is None else found
    return vendor == "GenuineIntel" and avx512


def library() -> Any:
    """MKL for ctypes where plans use it, else None. Raises BackendError where EMBERLET_BLAS asks for it in vain."""
    wanted = asked()
    if wanted == NUMPY or not (wanted or suits()):
        return None
    found = _loaded()
    if not isinstance(found, Absent):
        return found
    if wanted == MKL:
        raise BackendError(f"{VARIABLE}={MKL}, but {found}")
    return None


def summary() -> str | None:
    """What plans use instead of NumPy's BLAS: "MKL 2026.2.0"; None if nothing."""
    try:
        return None if library() is None else f"MKL {_distribution().version}"
    except (BackendError, Absent):
        return None


def advice() -> str | None:
    """How to get faster products than NumPy's, or why what was asked for is not used; None if there is nothing to
    do."""
    try:
        wanted = asked()
    except BackendError as error:
        return str(error)
    if wanted == NUMPY or not (wanted or suits()):
        return None
    found = _loaded()
    if not isinstance(found, Absent):
        return None
    return f"compiled plans are faster with MKL, but {found}"


def _distribution() -> Any:
    from importlib import metadata

    try:
        return metadata.distribution("mkl")
    except metadata.PackageNotFoundError:
        raise Absent(f"it is not installed: {extras.advice(['mkl'])}") from None


@cache
def _loaded() -> Any:
    """The library, or the Absent that says why there is none."""
    try:
        return _load()
    except Absent as error:
        return error


def _load() -> Any:
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        raise Absent("emberlet uses it on 64-bit Linux only")
    path = _checked(_distribution())
    if _in_use():
        raise Absent("another library of this process uses MKL already")
    try:
        found = ctypes.CDLL(path)
    except OSError as error:
        raise Absent(f"it does not load ({error})") from None
    missing = [name for name in _FUNCTIONS if not hasattr(found, name)]
    if missing:
        raise Absent(f"this release has no {missing[0]}: pip install --upgrade mkl")
    if found.MKL_Set_Interface_Layer(_LP64) != _LP64 or found.MKL_Set_Threading_Layer(_SEQUENTIAL) != _SEQUENTIAL:
        raise Absent("it was set up for other uses before")
    number, pointer = ctypes.c_int, ctypes.c_void_p
    for name in _FUNCTIONS[:4]:
        getattr(found, name).restype = None
    found.cblas_sgemm_pack_get_size.restype = ctypes.c_size_t
    found.cblas_sgemm_pack_get_size.argtypes = [number] * 4
    found.cblas_sgemm_pack.argtypes = [number] * 6 + [ctypes.c_float, pointer, number, pointer]
    return found


def _checked(distribution: Any) -> str:
    """The path of the library, once all that it loads is there."""
    files = [f for f in distribution.files or () if f.name.startswith("libmkl_") and ".so" in f.name]
    found = None
    for file in files:
        name = file.name[len("libmkl_") :].partition(".")[0]
        if name not in _NEEDED and not name.startswith("vml_"):
            continue
        path = os.path.realpath(file.locate())
        try:
            size = os.stat(path).st_size
        except OSError:
            size = -1
        if size < 0 or file.size not in (None, size):
            raise Absent(f"its file {path} is missing or damaged: pip install --force-reinstall mkl")
        if name == "rt":
            found = path
    if found is None:
        raise Absent("the package has no libmkl_rt: pip install --force-reinstall mkl")
    return found


def _in_use() -> bool:
    """Whether the process has MKL loaded: its number of threads is the other library's."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            return any("libmkl_" in line for line in file)
    except OSError:
        return False
