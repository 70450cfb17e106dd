"""Values that a plan on NumPy quantizes and dequantizes are the model's, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
from emberlet import functional as F
from emberlet.host.numpy_backend.compile import compile
from support.rows import every

SCALE, OTHER = 0.0390625, 0.11


def rounded(x: Any, scale: float = SCALE, zero: Any = 128, dtype: str = "uint8") -> Any:
    return F.dequantize_linear(F.quantize_linear(x, scale, zero, dtype=dtype), scale, zero)


def twice(x: Any) -> Any:
    q = F.quantize_linear(x, SCALE, 3)
    return F.dequantize_linear(q, SCALE, 3) + F.dequantize_linear(q, OTHER, 3), F.dequantize_linear(q, SCALE, 3)


def levels_too(x: Any) -> Any:
    q = F.quantize_linear(x, SCALE, 128)
    return F.dequantize_linear(q, SCALE, 128), q


def pooled(x: Any) -> Any:
    return rounded(F.max_pool(rounded(x), 2, stride=1))


def padded(x: Any) -> Any:
    return rounded(F.max_pool(rounded(x, zero=0), 3, padding=1), zero=0)


def per_channel(x: Any) -> Any:
    scale = emberlet.asarray(np.array([0.05, 0.1, 0.2], np.float32), backend=x.backend)
    zero = emberlet.asarray(np.array([100, 0, 255], np.uint8), backend=x.backend)
    return F.dequantize_linear(F.quantize_linear(x, scale, zero), scale, zero)


def between_convolutions(x: Any) -> Any:
    return rounded(F.conv(rounded(x), emberlet.ones((4, 3, 3, 3), backend=x.backend), padding=1), 1.5)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "once": rounded,
    "signed": lambda x: rounded(x, zero=-5, dtype="int8"),
    "16 bits": lambda x: rounded(x, 0.0001, 700, "uint16"),
    "4 bits": lambda x: rounded(x, 0.3, 7, "uint4"),
    "without a zero point": lambda x: F.dequantize_linear(F.quantize_linear(x, SCALE), SCALE),
    "by another scale": lambda x: rounded(rounded(x), OTHER),
    "by another zero point": lambda x: F.dequantize_linear(F.quantize_linear(x, SCALE, 128), SCALE, 4),
    "the same again": lambda x: rounded(rounded(x)),
    "the same as other integers": lambda x: rounded(rounded(x, zero=100), zero=100, dtype="int8"),
    "moved": lambda x: rounded(rounded(x).reshape((3, -1)).permute(1, 0)),
    "joined": lambda x: rounded(F.concat([rounded(x), rounded(x + 1)], axis=1)),
    "joined of two scales": lambda x: rounded(F.concat([rounded(x), rounded(x, OTHER)], axis=1)),
    "pooled": pooled,
    "pooled with a border": padded,
    "relu before": lambda x: rounded(F.relu(x), zero=0),
    "relu before a zero point": lambda x: rounded(F.relu(x), zero=9),
    "relu that is read twice": lambda x: (lambda y: rounded(y, zero=0) + y)(F.relu(x)),
    "read twice": twice,
    "levels too": levels_too,
    "a scale for each channel": per_channel,
    "infinite in between": lambda x: rounded(rounded(x) * 3e38 * 0),
    "levels alone": lambda x: F.quantize_linear(x * 2, SCALE, 128),
    "from an input": lambda x: F.dequantize_linear(F.quantize_linear(x, SCALE, 7).permute(0, 1, 3, 2), SCALE, 7) * 2,
    "hard swish": lambda x: rounded(F.hard_swish(rounded(x)), 0.02, 18),
    "a mean of channels": lambda x: rounded(F.mean(F.relu(rounded(x)), axis=(2, 3), keepdims=True), 0.001, 5),
    "numbers beyond floats": lambda x: rounded(rounded(x) * 3e38 - rounded(x, OTHER) * 3e38),
    "between convolutions": lambda x: rounded(
        F.conv(rounded(x), emberlet.ones((4, 3, 3, 3), backend=x.backend), padding=1), 1.5
    ),
}


@every("name, side", [(name, side) for name in PROGRAMS for side in (6, 160)])
def test_a_plan_rounds_as_the_model_does(name: str, side: int) -> None:
    draw = np.random.default_rng(side)
    x = (draw.standard_normal((1, 3, side, side)) * 4).astype(np.float32)
    x.flat[:9] = [np.nan, np.inf, -np.inf, -0.0, -1e-3, 3e38, -3e38, SCALE / 2, 1.5 * SCALE]
    image = emberlet.asarray(x, backend="numpy")
    program = PROGRAMS[name]
    with np.errstate(all="ignore"):
        wanted, found = program(image), compile(program, image)(image)
    for want, one in zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, found)), strict=True):
        assert want.dtype is one.dtype
        a, b = np.asarray(want), np.asarray(one)
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
