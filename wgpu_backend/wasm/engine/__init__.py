"""The engines that run modules: wasmtime on a desktop, the browser's own in a tab.

The files desktop.py, pyodide.py and micropython.py each have `available`, `relaxed` and `compiled`; those for browsers
also have `threaded`.
"""

import sys

from emberlet.errors import BackendError


def _here():
    if sys.implementation.name == "micropython":
        from . import micropython as found
    elif sys.platform == "emscripten":
        from . import pyodide as found
    else:
        from . import desktop as found
    return found


def compiled(source):
    """A compiled module: each `instance()` has its own memory, with `write(at, data)`, `read(at, nbytes)`, `run()`,
    `nbytes()` and `release()`.

    Raises BackendError without a WebAssembly engine, and if it refuses the bytes.
    """
    try:
        return _here().compiled(source)
    except ValueError as error:
        raise BackendError("a module that emberlet wrote is invalid, please report this: {}".format(error))


def opened(source):
    """`compiled` for the bytes of a file, which anybody may have written: on a desktop with limits of time and memory;
    a tab has its own. Raises ValueError if they are not a module."""
    here = _here()
    return here.compiled(source, True) if hasattr(here, "WasmtimeModule") else here.compiled(source)


_most = []  # the number that was set, if one was


def set_threads(count):
    """Set how many threads, 1 to 8, a model compiled or loaded from now on may have; None for the browser's number, at
    most 4. Returns the previous setting. Raises BackendError."""
    whole = isinstance(count, int) or hasattr(count, "__index__")  # the latter: NumPy's integers
    if count is not None and not (whole and 1 <= count <= 8):
        raise BackendError(
            "a model runs on 1 to 8 threads, or on the browser's number with None; found {!r}".format(count)
        )
    before = _most[0] if _most else None
    _most[:] = [] if count is None else [int(count)]
    return before


def shared(image):
    """An instance of an Image on several threads, with the same methods and `threads()`; None if only one thread is
    available."""
    if image.threads < 2 or not hasattr(_here(), "threaded"):
        return None
    return _here().threaded(image.shared_module(), image.pages, _most[0] if _most else None)


def shared_file(source, threads):
    """The same for the bytes of a compiled model that `threads` threads may run."""
    if threads < 2 or not hasattr(_here(), "threaded"):
        return None
    return _here().threaded(source, None, _most[0] if _most else None)


def relaxed():
    """Whether the engine has relaxed SIMD."""
    return _here().relaxed()


def available():
    """Raise BackendError without an engine for WebAssembly with 128-bit vectors."""
    _here().available()
