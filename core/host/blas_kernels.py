"""Which kernels NumPy's OpenBLAS runs, and asking it for those that suit the processor before NumPy is loaded.

OpenBLAS chooses its kernels once, when it is loaded, by the processor's family. A release that is older than the
processor falls back to what it knows: on an AMD processor with AVX-512, to the AVX2 kernels of Haswell, at half the
speed. The environment variable OPENBLAS_CORETYPE names the kernels to take instead.

Every emberlet process runs this first, so it imports as little as possible, and never NumPy.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, MutableMapping

VARIABLE = "OPENBLAS_CORETYPE"
BEST = "SkylakeX"  # what OpenBLAS calls its kernels for AVX-512; every processor with AVX-512 runs them
WITH_AVX512 = ("SkylakeX", "Cooperlake", "SapphireRapids", "Zen4", "Zen5")

_NEEDED = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
_NEW_AMD = 26  # Zen 5: the first family of AMD that an OpenBLAS in use may not know
_GETTERS = ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename")

Processor = tuple[str, int, bool]
"""The vendor as the processor names it ("AuthenticAMD"), its family (0 where unknown), whether it has AVX-512."""


def processor() -> Processor:
    """This machine's processor, as far as the system tells at once."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return by_cpuinfo(file.read(8192))  # the first core says it all, and a large machine has hundreds
    except OSError:
        return by_identifier(os.environ.get("PROCESSOR_IDENTIFIER", ""))


def by_cpuinfo(text: str) -> Processor:
    """What Linux's /proc/cpuinfo says."""
    found = {}
    for line in text.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        found[key.strip()] = value.strip()
    family = found.get("cpu family", "")
    avx512 = set(found.get("flags", "").split()) >= _NEEDED
    return found.get("vendor_id", ""), int(family) if family.isdigit() else 0, avx512


def by_identifier(text: str) -> Processor:
    """What Windows says: "AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD". Every AMD of that family has AVX-512."""
    words = text.replace(",", " ").split()
    if "Family" not in words[:-1]:
        return "", 0, False
    number = words[words.index("Family") + 1]
    family, vendor = int(number) if number.isdigit() else 0, words[-1]
    return vendor, family, vendor == "AuthenticAMD" and family >= _NEW_AMD


def choose(environment: MutableMapping[str, str] = os.environ, found: Processor | None = None) -> str | None:
    """Ask OpenBLAS for kernels with AVX-512 where it might not take them by itself; returns what was asked for.

    For a process of our own, before NumPy is loaded. A variable that is set stays as it is.
    """
    if VARIABLE in environment or "numpy" in sys.modules:
        return None
    vendor, family, avx512 = processor() if found is None else found
    if not (avx512 and vendor == "AuthenticAMD" and family >= _NEW_AMD):
        return None
    environment[VARIABLE] = BEST
    return BEST


def running() -> str | None:
    """The name of the kernels that the OpenBLAS of this process runs; None where NumPy has another BLAS, or one that
    does not say."""
    import ctypes

    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _GETTERS:
            getter = getattr(library, name, None)
            if getter is not None:
                getter.restype = ctypes.c_char_p
                said: bytes = getter() or b""
                return said.decode("ascii", "replace") or None
    return None


def advice(kernels: str | None, found: Processor | None = None) -> str | None:
    """How to get faster kernels than `kernels`, a name from `running`, on this processor; None where they suit it."""
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
    """The OpenBLAS libraries that NumPy loaded, or that its wheel brings."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            loaded = {line.split(maxsplit=5)[5].strip() for line in file if "openblas" in line}
    except OSError:
        import numpy

        home = os.path.dirname(numpy.__file__)
        folders = (home + ".libs", os.path.join(home, ".libs"), os.path.join(home, ".dylibs"))
        loaded = {os.path.join(f, n) for f in folders if os.path.isdir(f) for n in os.listdir(f) if "openblas" in n}
    return sorted(loaded, key=lambda path: ("numpy" not in path, path))  # SciPy brings another
