"""What changes when a program uses its first complex dtype: public functions check their operands, and the python
backend gets kernels for complex elements. The numpy backend needs none."""

from __future__ import annotations

from importlib import import_module
from threading import RLock

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
        import_module("emberlet.host.interface.guarding").complex_gate.extend((gate.check, gate.check_result))
