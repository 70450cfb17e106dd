"""The engines that run modules: wasmtime on a desktop, the browser's own in a tab.

Each of desktop.py, pyodide.py and micropython.py has `available`, `relaxed` and `compiled`.
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
    """A module from its bytes: `instance()` of it has a memory of its own, with `write(at, data)`, `read(at, nbytes)`,
    `run()` and `nbytes()`.

    Raises ValueError where they are none, and BackendError where nothing here runs WebAssembly.
    """
    return _here().compiled(source)


def relaxed():
    """Whether the engine has relaxed SIMD."""
    return _here().relaxed()


def available():
    """Raise BackendError where nothing here runs WebAssembly with 128-bit vectors."""
    _here().available()
