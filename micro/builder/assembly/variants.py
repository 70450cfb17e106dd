"""The instruction sets that have kernels in assembly, and the variants of a kernel: how they are made and named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from ..quantization.doubled import LEFT, DoubledRequant
from ..quantization.reference import Requant
from . import dsp, scalar_dot
from .assembler import Assembler
from .scalar import Scalar
from .scalar_rv32 import ScalarRv32
from .scalar_thumb import ScalarThumb
from .scalar_xtensa import ScalarXtensa, ScalarXtensaWindowed

DSP, THUMB, RV32, XTENSA, XTENSA_WINDOWED = "dsp", "thumb", "rv32", "xtensa", "xtensawin"

FAMILIES = {
    "armv6m": THUMB,
    "armv7m": THUMB,
    "armv7em": DSP,
    "armv7emsp": DSP,
    "armv7emdp": DSP,
    "rv32imc": RV32,
    "xtensa": XTENSA,
    "xtensawin": XTENSA_WINDOWED,
}
"""mpy-cross's instruction sets that have kernels in assembly."""

VFP = ("armv7emsp", "armv7emdp")
"""Those with a floating-point unit."""

ALL = tuple(sorted(set(FAMILIES.values())))
"""The families of instruction sets."""

SCALAR: dict[str, type[Scalar]] = {
    THUMB: ScalarThumb,
    RV32: ScalarRv32,
    XTENSA: ScalarXtensa,
    XTENSA_WINDOWED: ScalarXtensaWindowed,
}
"""The families that use the kernels of scalar.py."""

MOST_SHIFT = 26
"""The longest right shift of a product in TensorFlow Lite's arithmetic."""


def bound(requant: Requant, family: str) -> dict[str, int] | None:
    """The fields of requantization, or None if an instruction set's arithmetic does not support it."""
    if isinstance(requant, DoubledRequant):
        # Shifts by a word's width or more are not valid.
        if min(requant.shifts) < -MOST_SHIFT or max(requant.shifts) > LEFT:
            return None
    elif type(requant) is not Requant:
        return None
    return dsp.requant_fields(requant) if family == DSP else scalar_dot.requant_fields(requant)


def how_often(requant: Requant) -> str:
    """How often TensorFlow Lite's arithmetic rounds ("once" or "twice", or "shifted": twice, and DoubledRequant's
    `shifted`); "" for other arithmetic."""
    if not isinstance(requant, DoubledRequant):
        return ""
    return "shifted" if requant.shifted else "twice" if requant.twice else "once"


@cache
def bind(make: Callable[..., Assembler], *options: object) -> Callable[[], Assembler]:
    """A kernel's `make`, the same object for the same options."""
    return lambda: make(*options)


@cache
def scalar(make: Callable[..., Scalar], family: str, *options: object) -> Callable[[], Assembler]:
    """The same for a kernel of scalar.py."""
    return lambda: make(SCALAR[family](), *options)


def name_of(kind: str, how: str = "", **flags: bool) -> str:
    """A kernel's name. how: as how_often; flags: those that are set are part of it."""
    return "_".join([kind, *([how] if how else []), *(name for name, is_set in flags.items() if is_set)])


def fills_bytes(requant: Mapping[str, int]) -> bool:
    """Whether the outputs of a kernel for ARMv7E-M range over whole bytes."""
    return not (requant["c1"] or requant["c2"])


def arithmetic(apart: str, full: bool) -> dict[str, bool]:
    """Flags of names, for scalar_dot.halves and is_full."""
    return {apart: True, "full": full} if apart else {"full": full}
