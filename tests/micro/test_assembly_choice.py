"""Which layers run in assembly: those whose arithmetic and shape the kernels support, up to the largest values that
fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.assembly import dsp
from emberlet.micro.builder.assembly.registry import calls
from emberlet.micro.builder.assembly.variants import ALL
from emberlet.micro.builder.emit.kernels import kernels_source, machine_code
from emberlet.micro.builder.kernels.dot import Dot
from emberlet.micro.builder.kernels.layer import dense_view
from emberlet.micro.builder.kernels.move import Copy
from emberlet.micro.builder.kernels.window import Window
from emberlet.micro.builder.quantization.doubled import DoubledRequant
from emberlet.micro.builder.quantization.reference import Requant, requantize
from support.rows import every

from tools.microcontrollers.random_layers import Case, program_of

PLACES = {"i0": 0, "o": 4096, "wo": 0, "to": 0, "zs": 8192}


def _dot(requant: Requant, groups: int = 1, packed: bool = False, side: int = 1) -> Dot:
    weights = np.full((len(requant.multipliers), 1, 1, 4), 130, np.uint8)
    bias = np.zeros(len(weights), np.int64)
    image = (side, side, 4 * groups)
    return Dot("layer", ("x",), "y", image, Window((1, 1)), groups, weights, bias, 0, requant, packed=packed)


def _plain(n: int = 1) -> Requant:
    return Requant((1 << 14,) * n, 20, 0, 0)


def _doubled(*shifts: int, twice: bool = True) -> DoubledRequant:
    return DoubledRequant((1 << 30,) * len(shifts), 0, 0, 0, 0, 255, shifts, twice)


@every("arch", ["armv7em", "armv6m", "rv32imc"])
def test_a_model_with_too_many_calls_is_refused_in_assembly_and_built_in_viper(arch: str) -> None:
    """A kernel's place has 16 bits in the table, which half of these steps fit."""
    made, _, _ = program_of([Case(Copy("copy", ("x",), "y", (8,)), (np.arange(8, dtype=np.uint8),), (8,))])
    assert machine_code(replace(made, steps=made.steps * 8000), arch)
    large = replace(made, steps=made.steps * 16400)
    with pytest.raises(UnsupportedError, match="--kernels viper"):
        machine_code(large, arch)
    assert kernels_source(large, "viper").count("(a, w, t, l") == 0


@pytest.mark.parametrize("family", ALL)
def test_arithmetic_is_part_of_a_kernels_name(family: str) -> None:
    """Layers share a kernel by its name, so two kernels with one name would be confused."""
    made: dict[str, bytes] = {}
    for requant in (_plain(), _doubled(-3), _doubled(2), _doubled(-3, twice=False), Requant((1 << 14,), 20, 3, 0)):
        for side in (1, 3):
            layer = _dot(requant, side=side)
            views = [dense_view(layer.image)], dense_view((side, side, 1))
            found = calls(layer, family, *views, PLACES)
            assert found is not None
            (call,) = found
            assert made.setdefault(call.kernel.name, call.kernel.assembled().code()) == call.kernel.assembled().code()
            assert set(call.kernel.frame.fields) <= set(call.numbers)
    assert len(set(made.values())) == len(made)


@pytest.mark.parametrize(("zero", "low", "high"), [(0, 0, 255), (128, 0, 255), (3, 3, 255), (9, 2, 200), (250, 60, 61)])
def test_the_upper_word_of_a_product_and_saturation_give_the_references_bytes(zero: int, low: int, high: int) -> None:
    rng = np.random.default_rng(zero)
    for _ in range(300):
        shift = int(rng.integers(2, 33))
        m = int(rng.integers(1, min(1 << 30, 4 << shift)))
        found = dsp.requant_fields(Requant((m,), shift, 0, zero, low, high))
        assert found is not None
        s = int(rng.integers(-(1 << 30) // m, (1 << 30) // m + 1))
        assert m << found["scale"] < 1 << 31 and -(1 << 31) <= s << found["up"] < 1 << 31
        upper = ((s << found["up"]) * (m << found["scale"]) + (1 << 31)) >> 32
        y = min(max(upper + found["base"], 0), 255)
        y = max(min(y + found["c1"], 255) - found["c2"], 0)
        assert y == int(requantize(s, Requant((m,), shift, 0, zero, low, high)))
        assert dsp.requant_fields(DoubledRequant((m,), 0, 0, zero, low, high, (0,))) == {**found, "up": 0, "scale": 0}
