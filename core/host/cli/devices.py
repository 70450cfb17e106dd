"""emberlet devices"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from .. import blas_kernels
from ..extras import advice


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--forget-tuning", action="store_true", help="delete what compile(…, tune=True) measured on GPUs, and exit"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.forget_tuning:
        return _forget_tuning()
    found = [_python(), _numpy(), _wasm(), _native(), *_adapters()]
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for device in found:
        missing = device.get("missing")
        print(f"{device['backend']}: {missing or device['description']}")
        for key in ("compile", "blas", "faster", "type", "driver", "tuning", "features", "limits"):
            value = device.get(key)
            if isinstance(value, dict):
                print(f"  {key}:")
                for name in sorted(value):
                    print(f"    {name}: {value[name]}")
            elif value:
                print(f"  {key}: {', '.join(value) if isinstance(value, list) else value}")
    return 0


def _tuning() -> Path | None:
    """The file of tile sizes measured on this machine's GPUs, if there is one."""
    from emberlet.wgpu_backend.tuning import cache_path

    path = cache_path()
    return path if path and path.exists() else None


def _forget_tuning() -> int:
    from emberlet.wgpu_backend import tuning

    found = _tuning()
    tuning.clear()
    print(f"deleted {found}" if found else f"nothing to forget: there is no {tuning.cache_path() or 'home folder'}")
    return 0


def _python() -> dict[str, Any]:
    return {"backend": "python", "description": f"{platform.python_implementation()} {platform.python_version()}"}


def _numpy() -> dict[str, Any]:
    try:
        import numpy as np
    except ImportError as error:
        return {"backend": "numpy", "missing": f"not installed: {advice(['numpy'])} ({error})"}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {"backend": "numpy", "description": f"NumPy {np.__version__} on {platform.machine()}, {cores} cores"}
    found["blas"] = blas_kernels.summary()
    if better := blas_kernels.advice(blas_kernels.running()):
        found["faster"] = better
    return found


def _wasm() -> dict[str, Any]:
    from importlib.metadata import version

    from emberlet.errors import BackendError
    from emberlet.wgpu_backend.wasm import engine

    try:
        engine.available()
    except BackendError as error:
        return {"backend": "wasm", "missing": str(error)}
    found = "the browser's WebAssembly" if sys.platform == "emscripten" else f"wasmtime {version('wasmtime')}"
    return {"backend": "wasm", "description": f"{found}, one thread"}


def _native() -> dict[str, Any]:
    from importlib.metadata import version

    from emberlet.errors import BackendError
    from emberlet.wgpu_backend.llvm import engine, processor, threads

    try:
        engine.available()
    except BackendError as error:
        return {"backend": "native", "missing": str(error)}
    name, _, lanes, *_ = processor.current()
    count = "one thread" if threads.threads() == 1 else f"{threads.threads()} threads"
    text = f"llvmlite {version('llvmlite')} for {name}, vectors of {32 * lanes} bits, {count}"
    return {"backend": "native", "description": text, "compile": "model.compile() of a model on a CPU takes this"}


def _adapters() -> list[dict[str, Any]]:
    """The GPU adapters, in the order of their index; "tuning" is the file with the measurements."""
    found = _wgpu_adapters()
    path = _tuning()
    return [{**device, "tuning": str(path)} for device in found] if path else found


def _wgpu_adapters() -> list[dict[str, Any]]:
    try:
        from emberlet.wgpu_backend.native import adapters, quiet

        quiet()
        import wgpu
    except ImportError as error:
        return [{"backend": "wgpu", "missing": f"not installed: {advice(['wgpu'])} ({error})"}]
    try:
        found = adapters(wgpu)
    except Exception as error:  # wgpu-py's errors have no common base
        return [{"backend": "wgpu", "missing": f"wgpu {wgpu.__version__} found no adapter: {error}"}]
    if not found:
        return [{"backend": "wgpu", "missing": f"wgpu {wgpu.__version__} found no adapter"}]
    return [_adapter(i, adapter) for i, adapter in enumerate(found)]


def _adapter(index: int, adapter: Any) -> dict[str, Any]:
    info = dict(adapter.info)
    limits = adapter.limits
    return {
        "backend": f"wgpu:{index}" if index else "wgpu",
        "description": f"{info.get('device') or info.get('description') or 'unnamed adapter'}",
        "type": f"{info.get('adapter_type', '?')} through {info.get('backend_type', '?')}",
        "driver": " ".join(str(info[k]) for k in ("vendor", "description") if info.get(k)),
        "features": sorted(str(f) for f in adapter.features),
        "limits": {str(k): int(limits[k]) for k in limits},
    }
