"""What changes when a program uses its first complex dtype: public functions check their operands, and the python
backend gets kernels for complex elements. The numpy backend needs none."""

from __future__ import annotations

from importlib import import_module
from threading import RLock
from typing import Any

_done: list[bool] = []
_lock = RLock()


def install() -> None:
    """Load what complex tensors need, once. Another thread waits until they are there."""
    with _lock:
        if _done:
            return
        _done.append(True)
        # By name: an import statement would be a circle, since these files import Tensor.
        gate = import_module("emberlet.host.complex_tensors.gate")
        import_module("emberlet.host.complex_tensors.python_kernels").install()
        _install_logarithms()
        import_module("emberlet.host.interface.guarding").complex_gate.extend((gate.check, gate.check_result))


def _install_logarithms() -> None:
    """Let log2 and log10 divide real and imaginary parts one by one: a complex division makes NaN of (-inf+0j) / 2."""
    functions: Any = import_module("emberlet.functional.elementwise.transcendental")
    parts = import_module("emberlet.host.complex_tensors.parts")
    real_log = functions._log

    def log(x: Any, base: float) -> Any:
        if x.dtype.kind != "complex":
            return real_log(x, base)
        return parts.joined(parts.part(functions.log(x), "pairs") / base)

    functions._log = log
