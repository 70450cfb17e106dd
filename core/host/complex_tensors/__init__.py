"""Complex numbers: the dtypes complex64 and complex128, on the backends numpy and python, on CPython.

Nothing of this is loaded before a program uses a complex dtype (`emberlet.complex64`, a Python complex, an array
of them). Then the public functions ask `gate.check` before they run: those of NAMES take complex tensors, all others
refuse them by name, since a formula that is right for real numbers may be wrong for complex ones.
"""

from __future__ import annotations

from typing import Any

from ...dtypes import DType, float32, float64
from ...errors import UnsupportedError


class ComplexDType(DType):
    """A complex dtype; `part` is the dtype of its real and imaginary parts. Its arithmetic is that of floats."""

    def __init__(self, name: str, part: DType) -> None:
        self.name = name
        self.kind = "complex"
        self.bits = 2 * part.bits
        self.code = None
        self.burn = None
        self.part = part

    @property
    def is_float(self) -> bool:
        """True: functions that take integers and floats convert the former."""
        return True


complex64 = ComplexDType("complex64", float32)
complex128 = ComplexDType("complex128", float64)
_NAMES = {"complex64": complex64, "complex128": complex128, "c8": complex64, "c16": complex128, "complex": complex64}
HOSTS = ("numpy", "python")


def named(name: str) -> DType | None:
    """The complex dtype called `name`, or None. Loads what complex tensors need."""
    found = _NAMES.get(name)
    if found is not None:
        from .installing import install

        install()
    return found


def promoted(a: Any, b: Any) -> DType:
    """The dtype of a complex number and another number."""
    parts = [getattr(d, "part", d) for d in (a, b)]
    return complex128 if float64 in parts else complex64


def refuse_elsewhere(backend: Any) -> None:
    """Raise UnsupportedError unless `backend` has complex tensors."""
    if backend.name not in HOSTS:
        raise UnsupportedError(
            f"complex numbers are on the backends numpy and python, not on {backend!r}; write x.to('numpy'), or keep "
            "real and imaginary parts as a last axis of length 2, as F.dft and F.stft do"
        )
