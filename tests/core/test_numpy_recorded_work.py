"""The calls of NumPy that the numpy backend makes for operations whose work it chooses: in blocks, in tiles, without
copies. What they compute is compared elsewhere; here the calls are as recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet.host.numpy_backend import (
    attention,
    block_weights,
    composites,
    convolution,
    elementwise,
    integers,
    recurrent,
    storage,
    windows,
)
from support.plan_programs import ACTIVATIONS, ELEMENTWISE, MOVEMENT, PRODUCTS, WINDOWS, given
from support.recorded import assert_recorded

RECORDED = Path(__file__).parent / "recorded_numpy_work.txt"
MODULES = (
    attention, block_weights, composites, convolution, elementwise, integers, recurrent, storage, windows,
)  # fmt: skip


class Noted:
    """numpy, with a line for each function that is called."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return _Function(name, found, self._lines)


class _Function:
    def __init__(self, name: str, function: Any, lines: list[str]) -> None:
        self._name, self._function, self._lines = name, function, lines

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._function, name)
        return _Function(f"{self._name}.{name}", found, self._lines) if callable(found) else found

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        said = [_said(a) for a in args] + [f"{k}={_said(v)}" for k, v in keywords.items()]
        if self._name != "errstate":
            self._lines.append(f"{self._name}({', '.join(said)})")
        return self._function(*args, **keywords)


def _said(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype.name}{list(x.shape)}"
    if isinstance(x, list | tuple):
        return f"({', '.join(map(_said, x))})"
    if isinstance(x, np.generic | np.dtype):
        return str(x)
    return x.__name__ if callable(x) and hasattr(x, "__name__") else str(x)


def mixed(*shape: int, dtype: str = "uint8") -> Any:
    return emberlet.asarray((np.arange(int(np.prod(shape))) * 7 % 251).reshape(shape).astype(dtype), backend="numpy")


def nbits(bits: int, size: int, **more: Any) -> Callable[[], Any]:
    def run() -> Any:
        blocks = -(-10 // size)
        weight = mixed(6, blocks, size * bits // 8)
        scales = given(6 * blocks)
        return F.matmul_nbits(given(2, 10), weight, scales, rows=10, columns=6, bits=bits, block_size=size, **more)

    return run


Q, K = given(1, 4, 40, 8), given(1, 2, 50, 8)
BAND = emberlet.asarray(np.tri(40, 50, -3, dtype=bool), backend="numpy")
CASES: dict[str, tuple[Callable[[], Any], tuple[tuple[Any, str, int], ...]]] = {
    "attention at once": (lambda: F.attention(Q, K, K), ((attention, "_TILE", 8000),)),
    "attention in tiles": (lambda: F.attention(Q, K, K), ((attention, "_TILE", 7999), (attention, "_ROWS", 7))),
    "attention in rows": (lambda: F.attention(Q, K, K), ((attention, "_TILE", 4800), (attention, "_ROWS", 7))),
    "attention with a band in tiles": (
        lambda: F.attention(Q, K, K, BAND), ((attention, "_TILE", 100), (attention, "_ROWS", 16))),
    "attention that is causal in tiles": (
        lambda: F.attention(Q, Q, Q, is_causal=True), ((attention, "_TILE", 100), (attention, "_ROWS", 16))),
    "attention with a mask of heads in tiles": (
        lambda: F.attention(Q, K, K, given(1, 4, 40, 50)), ((attention, "_TILE", 100), (attention, "_ROWS", 30))),
    "attention of nothing": (lambda: F.attention(Q[:, :, :0], K, K), ()),
    "attention with a cap": (lambda: F.attention(Q, K, K, softcap=2.0), ()),
    **{f"conv in blocks of {n}": (lambda: F.conv2d(given(2, 2, 6, 5), given(4, 2, 3, 3), given(4), padding=1),
                                 ((convolution, "BLOCK", n),)) for n in (1, 180, 1000)},
    "conv of single positions": (lambda: F.conv2d(given(2, 2, 6, 5), given(4, 2, 1, 1)), ()),
    "conv of single positions with steps": (lambda: F.conv2d(given(2, 2, 6, 5), given(4, 2, 1, 1), stride=2), ()),
    "conv in groups": (lambda: F.conv2d(given(2, 4, 6, 5), given(4, 2, 3, 3), groups=2), ()),
    **{f"{bits} bits in blocks of {size}": (nbits(bits, size), ()) for bits in (2, 4, 8) for size in (4, 16)},
    **{f"4 bits, {n} at once": (nbits(4, 4), ((block_weights, "AT_ONCE", n),)) for n in (1, 24, 30, 72)},
    "4 bits with zero points": (nbits(4, 4, zero_points=mixed(6 * 2)), ()),
    "4 bits with zero points of floats": (nbits(4, 4, zero_points=given(6 * 3)), ()),
    "4 bits with groups": (nbits(4, 4, group_indices=F.astype(mixed(10) % 3, "int32")), ()),
    "4 bits with a bias": (nbits(4, 4, bias=given(6)), ()),
    "small integers": (lambda: F.matmul_integer(mixed(2, 300), mixed(300, 3)), ()),
    "smaller integers": (lambda: F.matmul_integer(mixed(2, 300) % 16, mixed(300, 3) % 16), ()),
    "few integers": (lambda: F.matmul_integer(mixed(2, 258), mixed(258, 3)), ()),
}  # fmt: skip
for known in (ELEMENTWISE, MOVEMENT, ACTIVATIONS, PRODUCTS, WINDOWS):
    for word, (function, arguments) in known.items():
        if "bias in" not in word and "terms" not in word and "65" not in word and "64" not in word:
            CASES.setdefault(f"{word}", (lambda f=function, a=arguments: f(*a), ()))  # type: ignore[misc]


@pytest.mark.parametrize("name", CASES)
def test_an_operation_makes_the_calls_of_numpy_that_are_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, settings = CASES[name]
    for module, attribute, value in settings:
        monkeypatch.setattr(module, attribute, value)
    lines: list[str] = []
    for module in MODULES:
        monkeypatch.setattr(module, "np", Noted(lines))
    block_weights._numbers.cache_clear()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        call()
    said: list[str] = []
    for line in lines:
        if said and said[-1].partition("× ")[2] == line:
            said[-1] = f"{int(said[-1].partition('×')[0]) + 1}× {line}"
        else:
            said.append(f"1× {line}")
    assert_recorded(RECORDED, name, "\n".join(line.removeprefix("1× ") for line in said) or "none")
