"""The engines that run modules: wasmtime on a desktop, the browser's own in a tab.

The files desktop.py, pyodide.py and micropython.py each have `available`, `relaxed` and `compiled`.
"""

import sys


def _here():
    if sys.implementation.name == "micropython":
        from . import micropython as found
    elif sys.platform == "emscripten":
        from . import pyodide as found
    else:
        from . import desktop as found
    return found


def compiled(source):
    """A compiled module: each `instance()` has its own memory, with `write(at, data)`, `read(at, nbytes)`, `run()` and
    `nbytes()`.

    Raises ValueError if the bytes are not a module, BackendError without a WebAssembly engine.
    """
    return _here().compiled(source)


def relaxed():
    """Whether the engine has relaxed SIMD."""
    return _here().relaxed()


def available():
    """Raise BackendError without an engine for WebAssembly with 128-bit vectors."""
    _here().available()
