"""What layers of two tensors compute, in NumPy's own arithmetic: their references are the lines that boards run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emberlet.micro.builder.kernels.elementwise import Binary, BinaryFloat, ImputeFloat, WholeQuotientFloat
from emberlet.micro.builder.kernels.layer import Array
from emberlet.micro.builder.kernels.pairs import Compare, CompareFloat, Extreme, ExtremeFloat, Quotient
from emberlet.micro.builder.kernels.power import Power, PowerFloat
from emberlet.micro.builder.quantization.reference import requantize
from support.draws import generator
from support.microcontrollers.edge_float_layers import float_layers
from support.microcontrollers.float_layers import float_cases

from tools.microcontrollers.random_layers import binary, pair

ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power}
ARITHMETIC |= {"max": np.maximum, "min": np.minimum}

Exact = Callable[[Any, Array, Array], Array]


def _sum_or_product(layer: Binary, a: Array, b: Array) -> Array:
    a, b = a - layer.zeros[0], b - layer.zeros[1]
    if layer.operation == "mul":
        return requantize(a * b, layer.requant)
    return (a * layer.factors[0] + b * layer.factors[1]) / 2.0**layer.requant.shift + layer.requant.zero


def _extreme(layer: Extreme, a: Array, b: Array) -> Array:
    a, b = ((x - zero) * factor for x, zero, factor in zip((a, b), layer.zeros, layer.factors, strict=True))
    return ARITHMETIC[layer.operation](a, b) / 2.0**layer.requant.shift + layer.requant.zero


def _comparison(layer: Compare, a: Array, b: Array) -> Array:
    apart = a * layer.factors[0] - b * layer.factors[1] + layer.start
    low, high = (end if end is not None else side for end, side in ((layer.low, -np.inf), (layer.high, np.inf)))
    return (apart >= low) & (apart <= high)


EXACT: dict[type, Exact] = {Binary: _sum_or_product, Extreme: _extreme, Compare: _comparison}


def _drawn(kinds: tuple[type, ...], count: int) -> list[Any]:
    rng = generator(__name__)
    made = [kind(rng) for _ in range(count) for kind in (binary, pair)]
    return [case for case in made if isinstance(case.layer, kinds)]


def test_bytes_are_the_exact_numbers_rounded_half_up() -> None:
    for case in _drawn(tuple(EXACT), 400):
        layer = case.layer
        a, b = (x.astype(float) for x in layer.operands(case.inputs))
        numbers = np.floor(EXACT[type(layer)](layer, a, b) + 0.5)
        r = getattr(layer, "requant", None)
        due = numbers if r is None else np.clip(numbers, r.low, r.high)
        np.testing.assert_array_equal(layer.reference(*case.inputs), due.reshape(layer.shape), str(layer))


def test_a_quotient_of_bytes_is_nearly_exact_and_saturates_at_a_divisor_of_zero() -> None:
    for case in _drawn((Quotient,), 600):
        layer, r = case.layer, case.layer.requant
        a, b = (x.astype(float) - zero for x, zero in zip(layer.operands(case.inputs), layer.zeros, strict=True))
        with np.errstate(all="ignore"):
            exact = np.where((a == 0) & (b == 0), 0, a / b * np.where(b == 0, np.sign(1 / b), 1)) * layer.factor
        due = np.clip(exact / 2.0**r.shift + r.zero, r.low, r.high)
        off = np.abs(layer.reference(*case.inputs) - due.reshape(layer.shape))
        assert off.max() <= 0.5 + 0.51 / 2.0**r.shift, layer


def test_a_power_of_bytes_is_about_a_step_off() -> None:
    for case in _drawn((Power,), 900):
        layer = case.layer
        numbers = [x.astype(float) - zero for x, zero in zip(layer.operands(case.inputs), layer.zeros, strict=False)]
        base, exponent = (x * scale for x, scale in zip(numbers, layer.scales, strict=False))
        with np.errstate(all="ignore"):
            exact = np.clip(base**exponent / layer.scales[2] + layer.zeros[2], 0, 255)
        # A logarithm is off by half of its last bit, times the exponent, and the output by a part as great.
        room = 1.5 + 255 * np.abs(numbers[1]) * 2.0**-layer.bits
        off = np.abs(layer.reference(*case.inputs).reshape(exact.shape) - exact)
        assert (off <= room).all(), layer


HELD: dict[type, Exact] = {
    BinaryFloat: lambda layer, a, b: np.clip(ARITHMETIC[layer.operation](a, b), layer.low, layer.high),
    ExtremeFloat: lambda layer, a, b: ARITHMETIC[layer.operation](a, b),
    PowerFloat: lambda _, a, b: np.power(a, b),
    CompareFloat: lambda layer, a, b: getattr(np, layer.operation)(a, b),
    ImputeFloat: lambda layer, a, b: np.where(np.isnan(a) if np.isnan(layer.gap) else a == np.float32(layer.gap), b, a),
    WholeQuotientFloat: lambda _, a, b: np.where(b == 0, 0, np.trunc(a / np.where(b == 0, 1, b))),
}


def test_floats_are_numpys() -> None:
    found = set()
    for case in [*float_cases(5, 390), *float_layers()]:
        if (exact := HELD.get(type(case.layer))) is None:
            continue
        found.add(type(case.layer))
        a, b = (x.astype(float) for x in case.layer.operands(case.inputs))  # type: ignore[attr-defined]
        with np.errstate(all="ignore"):
            due = np.broadcast_to(exact(case.layer, a, b), a.shape).reshape(case.shape)
        np.testing.assert_allclose(case.layer.reference(*case.inputs), due, 1e-6, err_msg=str(case.layer))
    assert found == set(HELD)
