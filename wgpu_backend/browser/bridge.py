"""The functions of bridge.js, and how Python waits for JavaScript."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from pyodide.code import run_js
from pyodide.ffi import can_run_sync
from pyodide.ffi import run_sync as _run_sync

bridge: Any = run_js(files(__package__).joinpath("bridge.js").read_text(encoding="utf-8"))


def run_sync(promise: Any) -> Any:
    """The promise's result, with Python suspended until it is there.

    Raises:
        RuntimeError: Python cannot be suspended here.
        JsException: The promise was rejected.
    """
    if not can_run_sync():
        raise RuntimeError(
            "cannot wait here: Python can be suspended only in a browser with JavaScript Promise Integration, and only "
            "when it was entered through pyodide.runPythonAsync or callPromising; await the _async twin of this method"
        )
    return _run_sync(promise)
