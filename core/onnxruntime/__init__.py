"""onnxruntime's Python API on emberlet, for code written for onnxruntime: `install()`, then `import onnxruntime`.

It runs where onnxruntime has no build: in Pyodide, on the GPU of the tab, and on any Python with NumPy. Names,
arguments and exceptions are those of onnxruntime 1.32 (https://onnxruntime.ai/docs/api/python/api_summary.html);
docs/onnxruntime.md lists what differs. `CPUExecutionProvider` is the NumPy backend, `WebGPUExecutionProvider` the wgpu
backend.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..host.extras import require
from .errors import (
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoaded,
    NoModel,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)
from .metadata import ModelMetadata, NodeArg
from .options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .providers import get_all_providers, get_available_providers, get_device, prefer
from .session import InferenceSession

if TYPE_CHECKING:
    from .values import IOBinding, OrtDevice, OrtValue
    from .values import IOBinding as SessionIOBinding

__version__ = "1.32.0"
"""The release of onnxruntime whose API this is."""

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "install",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]

_ERRORS = (
    EPFail, EngineError, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoaded, NoModel, NoSuchFile,
    NotImplemented, RuntimeException,
)  # fmt: skip


_WITH_NUMPY = ("IOBinding", "OrtDevice", "OrtValue", "SessionIOBinding")


def __getattr__(name: str) -> Any:
    if name not in _WITH_NUMPY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("onnxruntime." + name, "numpy")
    from . import values

    return values.IOBinding if name == "SessionIOBinding" else getattr(values, name)


def install(providers: Sequence[str] | None = None) -> None:
    """Let `import onnxruntime` find this module, in this process. Call it before anything imports onnxruntime.

    providers: used by every session instead of its own, such as ["WebGPUExecutionProvider"]; None leaves the choice to
    each session. Raises ImportError if the real onnxruntime is imported already.
    """
    here = sys.modules[__name__]
    if sys.modules.get("onnxruntime", here) is not here:
        raise ImportError("onnxruntime is imported already; call emberlet.onnxruntime.install() before it")
    prefer(providers)
    state = ModuleType("onnxruntime.capi.onnxruntime_pybind11_state", "The exceptions and classes of onnxruntime.")
    for name in __all__:
        if name not in _WITH_NUMPY:
            setattr(state, name, getattr(here, name))
    state.__getattr__ = __getattr__  # type: ignore[method-assign]
    for error in _ERRORS:
        setattr(state, error.__name__, error)
    capi = ModuleType("onnxruntime.capi", "What some programs import from the inside of onnxruntime.")
    capi.__path__ = []
    capi.onnxruntime_pybind11_state = capi._pybind_state = state  # type: ignore[attr-defined]
    here.capi = capi  # type: ignore[attr-defined]
    sys.modules["onnxruntime"] = here
    sys.modules["onnxruntime.capi"] = capi
    for name in ("onnxruntime_pybind11_state", "_pybind_state"):
        sys.modules["onnxruntime.capi." + name] = state


def get_version_string() -> str:
    """The release of onnxruntime whose API this is."""
    return __version__


def get_build_info() -> str:
    """The engine that runs instead of onnxruntime, and its version."""
    import emberlet

    return f"emberlet {emberlet.__version__}"


def set_seed(seed: int) -> None:
    """Seed the random number generator."""
    from ..functional import manual_seed

    manual_seed(seed)


def set_default_logger_severity(severity: int) -> None:
    """Accepted; nothing is logged."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted; nothing is logged."""


def disable_telemetry_events() -> None:
    """Accepted; there is no telemetry."""


def enable_telemetry_events() -> None:
    """Accepted; there is no telemetry."""


def preload_dlls(*arguments: Any, **keywords: Any) -> None:
    """Accepted; there are no libraries to load."""
