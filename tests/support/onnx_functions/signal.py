"""Windows and transforms of signals."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


@handles("DFT")
def dft(c: Call) -> Any:
    axis = c.get("axis", 1) if c.opset < 20 else c.value(2, -2)
    return F.dft(c.tensor(0), c.value(1), axis, c.get("inverse", 0), c.get("onesided", 0))


@handles("STFT")
def stft(c: Call) -> Any:
    window = c.array(2)
    return F.stft(
        c.tensor(0),
        c.value(1),
        None if window is None or not window.size else c.tensor(2),
        c.value(3),
        c.get("onesided", 1),
    )


@handles("MelWeightMatrix")
def mel_weight_matrix(c: Call) -> Any:
    return F.mel_weight_matrix(*(c.value(i, 0) for i in range(5)), backend=c.backend)


@handles("HannWindow", "HammingWindow", "BlackmanWindow")
def window(c: Call) -> Any:
    function = getattr(F, c.node.op_type.removesuffix("Window").lower() + "_window")
    return function(c.value(0), c.get("periodic", 1), backend=c.backend)
