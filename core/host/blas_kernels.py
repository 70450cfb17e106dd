"""The kernels that NumPy's OpenBLAS runs, and choosing the right ones for the processor before NumPy is loaded.

OpenBLAS chooses its kernels once, when it is loaded, by the processor's family. A release older than the processor
falls back to kernels it knows: on an AMD processor with AVX-512, to the AVX2 kernels of Haswell, at half the speed. The
environment variable OPENBLAS_CORETYPE overrides the choice.

Every emberlet process runs this first, so it imports as little as possible, and never NumPy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any

VARIABLE = "OPENBLAS_CORETYPE"
BEST = "SkylakeX"  # OpenBLAS's name for its AVX-512 kernels, which run on every processor with AVX-512
WITH_AVX512 = ("SkylakeX", "Cooperlake", "SapphireRapids", "Zen4", "Zen5")

_NEEDED = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
_NEW_AMD = 26  # Zen 5: the first AMD family that an OpenBLAS release in use may not know
_SPELLINGS = ("scipy_openblas_{}64_", "openblas_{}64_", "openblas_{}")

Processor = tuple[str, int, bool]
"""The vendor as the processor names it ("AuthenticAMD"), its family (0 where unknown), whether it has AVX-512."""


def processor() -> Processor:
    """This machine's processor, as far as the system reports it quickly."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return by_cpuinfo(file.read(8192))  # the first core is enough, and a large machine has hundreds
    except OSError:
        return by_identifier(os.environ.get("PROCESSOR_IDENTIFIER", ""))


def by_cpuinfo(text: str) -> Processor:
    """The processor in Linux's /proc/cpuinfo."""
    found = {}
    for line in text.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        found[key.strip()] = value.strip()
    family = found.get("cpu family", "")
    avx512 = set(found.get("flags", "").split()) >= _NEEDED
    return found.get("vendor_id", ""), int(family) if family.isdigit() else 0, avx512


def by_identifier(text: str) -> Processor:
    """The processor in Windows's identifier: "AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD". Every AMD processor
    of that family has AVX-512."""
    words = text.replace(",", " ").split()
    if "Family" not in words[:-1]:
        return "", 0, False
    number = words[words.index("Family") + 1]
    family, vendor = int(number) if number.isdigit() else 0, words[-1]
    return vendor, family, vendor == "AuthenticAMD" and family >= _NEW_AMD


def choose(environment: MutableMapping[str, str] = os.environ, found: Processor | None = None) -> str | None:
    """Select OpenBLAS's AVX-512 kernels if it might not choose them itself; returns the selected name.

    Call it in your own process before NumPy is loaded. A variable that is already set is not changed.
    """
    if VARIABLE in environment or "numpy" in sys.modules:
        return None
    vendor, family, avx512 = processor() if found is None else found
    if not (avx512 and vendor == "AuthenticAMD" and family >= _NEW_AMD):
        return None
    environment[VARIABLE] = BEST
    return BEST


def running() -> str | None:
    """The name of the kernels that this process's OpenBLAS runs; None if NumPy has another BLAS or the name is
    unknown."""
    import ctypes

    said = _ask("get_corename", ctypes.c_char_p)
    return said.decode("ascii", "replace") or None if said else None


def threads() -> int | None:
    """How many threads this process's OpenBLAS uses for a large product; None if unknown."""
    import ctypes

    return _ask("get_num_threads", ctypes.c_int)


def _ask(name: str, kind: Any) -> Any:
    """The result of a function of this process's OpenBLAS; None if it has no function of that name."""
    getter = function(name)
    if getter is None:
        return None
    getter.restype = kind
    return getter()


def function(name: str) -> Any:
    """A function of this process's OpenBLAS, for ctypes; None if it has no function of that name."""
    try:
        import ctypes
    except ImportError:
        return None
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for spelling in _SPELLINGS:
            found = getattr(library, spelling.format(name), None)
            if found is not None:
                return found
    return None


def advice(kernels: str | None, found: Processor | None = None) -> str | None:
    """How to get faster kernels than `kernels`, a name from `running`, on this processor; None if they are the right
    ones."""
    if kernels is None or kernels in WITH_AVX512 or not (processor() if found is None else found)[2]:
        return None
    given = os.environ.get(VARIABLE)
    if given:
        return f"{VARIABLE}={given} asks for these; the processor has AVX-512, and {VARIABLE}={BEST} is faster"
    return f"the processor has AVX-512: set {VARIABLE}={BEST} before NumPy is imported"


def summary() -> str:
    """The BLAS that NumPy was built with, and its kernels: "scipy-openblas 0.3.31, kernels for SkylakeX"."""
    import numpy

    try:
        blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
        said = f"{blas['name']} {blas['version']}"
    except (KeyError, TypeError):
        said = "unknown"
    kernels = running()
    return said + (f", kernels for {kernels}" if kernels else "")


def _libraries() -> Iterable[str]:
    """The OpenBLAS libraries that NumPy loaded, or that its wheel contains."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            loaded = {line.split(maxsplit=5)[5].strip() for line in file if "openblas" in line}
    except OSError:
        import numpy

        home = os.path.dirname(numpy.__file__)
        folders = (home + ".libs", os.path.join(home, ".libs"), os.path.join(home, ".dylibs"))
        loaded = {os.path.join(f, n) for f in folders if os.path.isdir(f) for n in os.listdir(f) if "openblas" in n}
    return sorted(loaded, key=lambda path: ("numpy" not in path, path))  # SciPy brings another
