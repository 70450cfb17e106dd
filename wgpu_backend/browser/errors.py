"""Translates JavaScript's exceptions to those of wgpu-py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pyodide.ffi import JsException
from wgpu import classes

from ...errors import UnsupportedError


class DeviceLostError(classes.GPUInternalError):
    """The GPU device is gone (`reason`: "unknown" or "destroyed"); its objects are unusable, and a new device is
    needed."""

    def __init__(self, message: str, reason: str = "unknown") -> None:
        super().__init__(f"The GPU device was lost ({reason}): {message or 'the browser gives no cause'}")
        self.reason = reason


class GPUPipelineError(classes.GPUPipelineError):
    """A pipeline could not be created; `reason` is "validation" or "internal"."""

    @property
    def reason(self) -> str:
        return str(self._options["reason"])


_BY_NAME: dict[str, Callable[[str], Exception]] = {
    "GPUValidationError": classes.GPUValidationError,
    "GPUOutOfMemoryError": classes.GPUOutOfMemoryError,
    "GPUInternalError": classes.GPUInternalError,
    "RangeError": classes.GPUOutOfMemoryError,  # how a browser reports that mapped memory cannot be allocated
    "TypeError": TypeError,
}


def named(name: str, message: str) -> Any:
    """The wgpu-py error of a WebGPU error's class name."""
    return _BY_NAME.get(name, classes.GPUInternalError)(message)


def translate(error: JsException) -> Exception:
    """The Python exception for a JavaScript one; those without a counterpart in wgpu-py become a GPUInternalError."""
    name, message = str(error.name), str(error.message)
    if name == "DeviceLostError":
        return DeviceLostError(message, str(error.reason))
    if name == "GPUPipelineError":
        return GPUPipelineError(message, {"reason": str(error.reason)})
    if name in _BY_NAME:
        return _BY_NAME[name](message)
    return classes.GPUInternalError(f"{name}: {message}")


def unsupported(what: str) -> Callable[..., NoReturn]:
    """A method that raises an error: `what` belongs to a part of wgpu-py's API that this backend omits."""

    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{what} is not available in the browser: emberlet's backend for wgpu-py covers buffers and compute, "
            "not textures and rendering"
        )

    method.__name__ = what.rpartition(".")[2]
    return method
