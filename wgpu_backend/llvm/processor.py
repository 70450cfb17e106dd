"""The processor that code is made for, and LLVM's part in finding out about it."""

from __future__ import annotations

import json
import os
import re
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from emberlet.host.digests import blake2b

from . import kept

# What the same processor says differently from one moment to the next, or from one core to another.
_VARIES = re.compile(rb"(processor|cpu MHz|bogomips|physical id|core id|apicid|initial apicid)\s*:.*")
NAMES = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")  # LLVM ends the process at a name that it does not know


class Processor(NamedTuple):
    """name: LLVM's; features: LLVM's list, None for those of the name; lanes: the float32 numbers in the longest
    vector; fused: whether it multiplies and adds in one instruction; dots: how many neighboring products one of x86's
    instructions sums in such a vector: 4 of bytes (VNNI) or 2 of 16 bits, 0 where LLVM finds the instructions."""

    name: str
    features: str | None
    lanes: int
    fused: bool
    dots: int


@cache
def llvm() -> Any:
    """llvmlite's binding, ready to make code for this processor. Raises ImportError, and OSError if it cannot be
    loaded."""
    import llvmlite.binding

    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    return llvmlite.binding


_chosen: list[str] = []  # the name that was set, if one was


def choose(name: str | None) -> None:
    """Make code for one of NAMES; None for this processor."""
    _chosen[:] = [] if name is None else [name]


def current() -> Processor:
    """The one that code is made for. Raises as `llvm` does."""
    if _chosen:
        lanes = {"x86-64-v4": 16, "x86-64-v3": 8}.get(_chosen[0], 4)
        return Processor(_chosen[0], None, lanes, lanes > 4, 2)
    return _here()


@cache
def _here() -> Processor:
    name = kept_name("processor", b"")
    if name is not None and (data := kept.read(name)) is not None:
        return Processor(*json.loads(data))
    binding = llvm()
    features = binding.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8 if features.get("avx2") and features.get("fma") else 4
    fused = bool(features.get("fma", not binding.get_process_triple().startswith("x86")))
    found = Processor(binding.get_host_cpu_name(), features.flatten(), lanes, fused, _dots(features, lanes))
    if name is not None:
        kept.write(name, json.dumps(found).encode())
    return found


def _dots(features: Any, lanes: int) -> int:
    if not llvm().get_process_triple().startswith("x86") or (lanes == 16 and not features.get("avx512bw")):
        return 0
    bytewise = lanes > 4 and features.get("avx512vnni") and features.get("avx512vl")
    return 4 if bytewise else 2


def kept_name(kind: str, key: bytes) -> str | None:
    """The name of a file of this kind and key for the processor that code is made for; None where none is kept."""
    identity = _identity()
    if not identity:
        return None
    digest = blake2b("".join(_chosen).encode() + b"\0" + key, digest_size=12, key=identity).hexdigest()
    return f"{kind}-{digest}"


@cache
def _identity() -> bytes:
    """A digest of what the code of a kernel depends on: this processor, llvmlite, and what writes code. Empty where no
    code is kept: on other systems than Linux on x86-64, whose objects are linked otherwise, and in an archive."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return b""
    found = blake2b(digest_size=32)
    try:
        for path in (_llvmlite() / "_version.py", *_sources()):
            found.update(path.read_bytes())
        with open("/proc/cpuinfo", "rb") as file:
            first = file.read(1 << 16).partition(b"\n\n")[0]
    except (ImportError, OSError):
        return b""
    found.update(_VARIES.sub(b"", first))
    return found.digest()


def _llvmlite() -> Path:
    """Its folder, without importing it. Raises ImportError."""
    try:
        spec = find_spec("llvmlite")
    except ValueError:  # its import is blocked
        spec = None
    if spec is None or spec.origin is None:
        raise ImportError("llvmlite is not installed")
    return Path(spec.origin).parent


def _sources() -> list[Path]:
    """The files that decide what a kernel's function is compiled to."""
    here = Path(__file__).parent
    wasm = here.parent / "wasm"
    beside = [wasm / f"{name}.py" for name in ("addresses", "assembler", "opcodes")]
    return [*sorted(here.glob("*.py")), *sorted(wasm.glob("library*.py")), *beside]
