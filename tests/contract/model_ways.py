"""The ways of running an ONNX model: from its path and arrays by name to the list of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from emberlet.codegen import onnx_backend
from emberlet.host.cli import main
from support.loaded import loaded

Arrays = dict[str, Any]
ModelWay = Callable[[Path, Arrays], list[Any]]
DEVICES = {"PYTHON": "python", "CPU": "numpy", "WGPU": "wgpu", "WASM": "wasm", "NATIVE": "native"}


def _results(found: Any) -> list[Any]:
    return [onnx_backend.to_array(x) for x in (found if isinstance(found, tuple) else (found,))]


def _tensors(arrays: Arrays, backend: str) -> list[Any]:
    return [onnx_backend.to_tensor(a, backend) for a in arrays.values()]


def _eager(backend: str) -> ModelWay:
    return lambda path, arrays: _results(loaded(path, backend)(*_tensors(arrays, backend)))


def _compiled(backend: str) -> ModelWay:
    def run(path: Path, arrays: Arrays) -> list[Any]:
        fast = loaded(path, "numpy").compile(backend=backend)
        given = _tensors(arrays, "numpy")
        fast(*given)
        return _results(fast(*given))

    return run


def _prepared(device: str) -> ModelWay:
    def run(path: Path, arrays: Arrays) -> list[Any]:
        prepared = onnx_backend.prepare(onnx.load(path), device)
        prepared.run(list(arrays.values()))
        return list(prepared.run(list(arrays.values())))

    return run


def _onnxruntime(provider: str) -> ModelWay:
    def run(path: Path, arrays: Arrays) -> list[Any]:
        from emberlet.onnxruntime import InferenceSession

        session = InferenceSession(str(path), providers=[provider])
        session.run(None, arrays)
        return list(session.run(None, arrays))

    return run


def _predictor(path: Path, arrays: Arrays) -> list[Any]:
    from emberlet.batch import Predictor

    found = Predictor(str(path), backend="numpy")(dict(arrays))
    return list(found.values())


def _command(path: Path, arrays: Arrays) -> list[Any]:
    given, out = path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
    np.savez(given, **arrays)
    status = main(["run", str(path), "--input", str(given), "--out", str(out), "--repeat", "2", "--backend", "numpy"])
    assert status == 0
    with np.load(out) as found:
        return [found[name] for name in found.files]


MODEL_WAYS: dict[str, tuple[str, ModelWay]] = {
    **{f"eager on {b}": (b, _eager(b)) for b in ("python", "numpy", "wgpu", "wasm", "native")},
    **{f"compiled for {b}": (b, _compiled(b)) for b in ("numpy", "wgpu", "wasm", "native")},
    **{f"onnx_backend on {d}": (b, _prepared(d)) for d, b in DEVICES.items() if b != "python"},
    "emberlet.onnxruntime": ("numpy", _onnxruntime("CPUExecutionProvider")),
    "emberlet.onnxruntime on the GPU": ("wgpu", _onnxruntime("WebGPUExecutionProvider")),
    "Predictor": ("numpy", _predictor),
    "emberlet run": ("numpy", _command),
}
