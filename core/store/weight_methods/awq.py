"""AWQ: the weights of inputs that are large are multiplied before they are rounded, and those inputs divided.

Lin, Tang, Tang, Yang, Chen, Wang, Xiao, Dang, Gan, Han 2023, "AWQ: Activation-aware Weight Quantization for LLM
Compression and Acceleration", arXiv:2306.00978. The factors are not folded into the layer before, which a model need
not have; they are numbers of the layer, one for each input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...functional.quantized.weights import WeightScheme
from .gptq import errors, leveled, nearest
from .recording import Moments

STEPS = 20
"""Exponents tried, from 0 to 1; the paper's grid."""


def input_scales(w: NDArray[Any], seen: Moments, scheme: WeightScheme) -> NDArray[Any]:
    """What each input of a dense layer with weights (d_output, d_input) is multiplied by, float32: the best of some
    powers of the inputs' mean sizes. 1 for all where that is best."""
    gram = leveled(seen.grams[0])
    sizes = np.maximum(seen.sizes, 1e-4 * max(float(seen.sizes.max(initial=0)), 1e-30))
    best, least = np.ones(w.shape[1], np.float32), np.inf
    for step in range(STEPS):
        scale = sizes ** (step / STEPS)
        scale = (scale / np.sqrt(scale.max() * scale.min())).astype(np.float32)
        off = w - nearest(w * scale, scheme).real(w.shape[1]) / scale
        error = float(errors(off, gram).sum())
        if error < least:
            best, least = (1 / scale).astype(np.float32), error
    return best
