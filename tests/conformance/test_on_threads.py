"""A part of on_threads.py: node cases and test models give the same bytes in WebAssembly on any number of threads."""

from __future__ import annotations

import pytest

pytest.importorskip("wasmtime")

from models.index import cases
from models.test_generated_models import check
from support.divided import in_parts

from .cases import node_cases, run_case

NAMES = sorted(node_cases())
MODELS = {case.id: case for case in cases()}
EVERY = 64


@pytest.mark.parametrize("first", range(0, EVERY, EVERY // 4))
def test_every_64th_node_case_gives_the_same_bytes_in_parts(first: int) -> None:
    with in_parts() as divided:
        for name in NAMES[first::EVERY]:
            run_case(name, "wasm")
        assert divided.shared > len(NAMES[first::EVERY]) // 2


@pytest.mark.parametrize("name", ["mobile_cnn-batch3", "gpt-batch2_length10", "unet-batch1", "quantized_qdq-batch1"])
def test_models_give_the_same_bytes_in_parts(name: str) -> None:
    with in_parts() as divided:
        check(MODELS[name], "wasm compiled")
        assert divided.shared > 5
