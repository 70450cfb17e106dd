"""The fronts, as ways of running a model: `codegen.load` with its copies, `emberlet.onnxruntime`, `onnx_backend`,
`emberlet run`, `Predictor`.

A case's model is ONNX (`model_case`). A front has its own classes of errors, or prints them: it has to say the words
of the error that eager NumPy raises, and its class has to be the one that the front documents for it. Strings and the
types that NumPy lacks are no inputs here; the conformance tests hold the fronts to those.
"""

from __future__ import annotations

import base64
import contextlib
import io
import pickle
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from emberlet.codegen import load, onnx_backend
from emberlet.errors import EmberletError, IndexingError
from emberlet.host.cli import main
from emberlet.onnxruntime import InferenceSession
from emberlet.onnxruntime.errors import InvalidArgument, RuntimeException

from .case import Case, loaded
from .ways import Broken, Run, Unavailable, Way

_SOURCE = """import base64
import onnx
from emberlet.codegen import load

MODEL = onnx.load_model_from_string(base64.b85decode({text!r}))


def make(B):
    return load(MODEL, B)
"""
_printing = threading.Lock()  # sys.stdout is one for all threads


def model_case(model: onnx.ModelProto, calls: tuple[tuple[Any, ...], ...], seed: int) -> Case:
    """A case whose program is an ONNX model; the arrays of a call are in the order of the model's inputs."""
    text = base64.b85encode(model.SerializeToString()).decode("ascii")
    return Case(_SOURCE.format(text=text), calls, seed, "models by their fronts")


def model_of(case: Case) -> Any:
    """The ONNX model of a case."""
    return loaded(case.source).MODEL


def names_of(model: Any) -> list[str]:
    """The inputs that a call gives."""
    constants = {t.name for t in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name not in constants]


def _shown(results: Any) -> list[Any]:
    """What a front returns, where NumPy has no such dtype as a Tensor."""
    return [
        _shown(x) if isinstance(x, list | tuple)
        else x if isinstance(x, np.ndarray) and x.dtype.kind in "fiub"
        else x if x is None else onnx_backend.to_tensor(x, "numpy")
        for x in results
    ]  # fmt: skip


def _eager_error(model: Any, arrays: tuple[Any, ...]) -> EmberletError | None:
    """The error of eager NumPy for a call."""
    try:
        load(model, "numpy")(*[onnx_backend.to_tensor(a, "numpy") for a in arrays])
    except EmberletError as error:
        return error
    return None


def _session(provider: str) -> Any:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        model = model_of(case)
        session = InferenceSession(model.SerializeToString(), providers=[provider])
        names = names_of(model)

        def run(arrays: tuple[Any, ...]) -> Any:
            try:
                return _shown(session.run(None, dict(zip(names, arrays, strict=True))))
            except (InvalidArgument, RuntimeException) as error:
                cause = error.__cause__
                if not isinstance(cause, EmberletError):
                    raise
                if (type(error) is InvalidArgument) is not isinstance(cause, IndexingError):
                    raise Broken(f"{type(cause).__name__} is raised as {type(error).__name__}") from None
                if str(cause) not in str(error):
                    raise Broken(f"the words of {cause} are lost in {error}") from None
                raise cause from None

        return run

    return open_


def _prepared(device: str) -> Any:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        prepared = onnx_backend.prepare(model_of(case), device)
        return lambda arrays: _shown(prepared.run(list(arrays)))

    return open_


def _run_model(case: Case, example: tuple[Any, ...]) -> Run:
    model = model_of(case)
    return lambda arrays: _shown(onnx_backend.run_model(model, list(arrays), "CPU"))


def _command(backend: str) -> Any:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        model = model_of(case)
        names = names_of(model)
        if any(a is None or not isinstance(a, np.ndarray) for a in example):
            raise Unavailable("files hold arrays")
        repeat = "2" if case.seed % 2 else "1"

        def run(arrays: tuple[Any, ...]) -> Any:
            with tempfile.TemporaryDirectory() as folder:
                path, given, out = (Path(folder) / name for name in ("model.onnx", "given.npz", "out.npz"))
                onnx.save(model, path)
                with open(given, "wb") as file:
                    np.savez(file, **dict(zip(names, arrays, strict=True)))
                # An output is no input: neither the model nor the arrays are overwritten.
                for own in (path, given) if case.seed % 4 == 0 else ():
                    before = own.read_bytes()
                    with (
                        _printing,
                        contextlib.redirect_stdout(io.StringIO()),
                        contextlib.redirect_stderr(io.StringIO()),
                    ):
                        status = main(["run", str(path), "--input", str(given), "--out", str(own)])
                    if not status or own.read_bytes() != before:
                        raise Broken(f"--out {own.name} overwrites what the command reads")
                said = io.StringIO()
                with _printing, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                    arguments = ["--input", str(given), "--out", str(out), "--repeat", repeat, "--backend", backend]
                    status = main(["run", str(path), *arguments])
                if status:
                    error = _eager_error(model, arrays)
                    if (
                        status != 2
                        or error is None
                        or " ".join(str(error).split()) not in " ".join(said.getvalue().split())
                    ):
                        raise Broken(f"status {status}, {said.getvalue().strip()}; eagerly: {error}")
                    raise error
                with np.load(out) as found:
                    return _shown([found[name] for name in found.files])

        return run

    return open_


def _predictor(case: Case, example: tuple[Any, ...]) -> Run:
    from emberlet.batch import Predictor

    model = model_of(case)
    rows = {np.shape(a)[:1] for a in example}
    inputs = [i for i in model.graph.input if i.name in names_of(model)]
    axes = [[d.dim_param for d in v.type.tensor_type.shape.dim[:1]] for v in (*inputs, *model.graph.output)]
    if len(rows) != 1 or () in rows or axes[0] in ([], [""]) or any(axis != axes[0] for axis in axes):
        raise Unavailable("the inputs or outputs are no rows")
    names = names_of(model)
    predictor = Predictor(model, backend="numpy", compile=bool(case.seed % 2))
    return lambda arrays: _shown(list(predictor(dict(zip(names, arrays, strict=True))).values()))


def _loaded(change: Callable[[Any], Any], backend: str) -> Any:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        model = change(load(model_of(case), "numpy"))

        def run(arrays: tuple[Any, ...]) -> Any:
            found = model(*[onnx_backend.to_tensor(a, backend) for a in arrays])
            return list(found) if isinstance(found, tuple) else [found]

        return run

    return open_


FRONTS = [
    Way("load, pickled", "numpy", _loaded(lambda model: pickle.loads(pickle.dumps(model)), "numpy")),
    Way("load, compiled for its own backend", "numpy", _loaded(lambda model: model.compile(), "numpy")),
    Way("load, forked to python", "python", _loaded(lambda model: model.fork("python"), "python")),
    Way("load, forked to wasm", "wasm", _loaded(lambda model: model.fork("wasm"), "wasm")),
    Way("load, forked to native", "native", _loaded(lambda model: model.fork("native"), "native")),
    Way("emberlet.onnxruntime", "numpy", _session("CPUExecutionProvider")),
    Way("emberlet.onnxruntime on the GPU", "wgpu", _session("WebGPUExecutionProvider")),
    *(Way(f"onnx_backend on {device}", backend, _prepared(device))
      for device, backend in (("CPU", "numpy"), ("PYTHON", "python"), ("WASM", "wasm"), ("NATIVE", "native"),
                              ("WGPU", "wgpu"))),
    Way("onnx_backend.run_model", "numpy", _run_model),
    *(Way(f"emberlet run on {backend}", backend, _command(backend))
      for backend in ("numpy", "python", "wasm", "native")),
    Way("Predictor", "numpy", _predictor),
]  # fmt: skip


def fronts() -> list[Way]:
    """The fronts of this machine."""
    from .ways import available

    backends = {w.backend for w in available()}
    return [w for w in FRONTS if w.backend in backends]
