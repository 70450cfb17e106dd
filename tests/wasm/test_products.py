"""Matrix products and convolutions of shapes drawn at random, against float64."""

from __future__ import annotations

import emberlet
import pytest
from support.drawn_products import KINDS
from support.rows import every


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "attention"])
@every("seed", range(180), share=3)
def test_drawn_ones_equal_float64_and_integers(kind: str, seed: int) -> None:
    KINDS[kind](seed, emberlet.get_backend("wasm"))
