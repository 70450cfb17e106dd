"""The functions of bridge.js, and how Python waits for JavaScript."""

from __future__ import annotations

import importlib
from importlib.resources import files
from typing import Any

from emberlet.errors import BackendError
from pyodide.ffi import JsException, can_run_sync
from pyodide.ffi import run_sync as _run_sync


def _bridge() -> Any:
    """The module that the page imported and registered; else the evaluated text, which some pages forbid."""
    try:
        return importlib.import_module("emberlet_webgpu")
    except ImportError:
        pass
    from pyodide.code import run_js

    try:
        return run_js(files(__package__).joinpath("bridge.js").read_text(encoding="utf-8"))
    except JsException as error:
        raise BackendError(
            f"JavaScript's eval failed ({error}): a page whose content security policy forbids it must "
            "register webgpu.mjs, as docs/browser.md shows"
        ) from None


bridge: Any = _bridge()


def run_sync(promise: Any) -> Any:
    """The promise's result; suspends Python until it is available.

    Raises:
        RuntimeError: Python cannot be suspended here. JsException: The promise was rejected.
    """
    if not can_run_sync():
        raise RuntimeError(
            "cannot wait here: Python can be suspended only in a browser with JavaScript Promise Integration, and only "
            "when it was entered through pyodide.runPythonAsync or callPromising; await the _async twin of this method"
        )
    return _run_sync(promise)
