"""A small language model decodes greedily: the same tokens as onnxruntime's, in float32 and with weights of 4 bits."""

from __future__ import annotations

from typing import Any

import pytest
from emberlet.codegen import load
from support.every_backend import NATIVE, WASM, WGPU

from tools.networks.decoder import Reference, Sizes, decoder, greedy

SMALL = Sizes(words=96, width=64, hidden=96, heads=4, layers=2)


@pytest.mark.parametrize("backend", ["numpy", "python", WGPU, WASM, NATIVE])
@pytest.mark.parametrize("bits", [None, 4], ids=["float32", "int4"])
def test_greedy_tokens_are_onnxruntimes(backend: str, bits: int | None) -> None:
    model = decoder(SMALL, bits)
    count = 8 if backend == "python" else 40
    net = load(model, backend)
    assert [row[2:] for row in net.STATE] == [("append", 2)] * 4
    session = net.session(capacity=48)
    wanted = greedy(Reference(model, 1).step, [3, 1, 4], count)
    assert len(set(wanted)) > 2, "it says more than one thing"
    assert greedy(session.step, [3, 1, 4], count) == wanted
    assert session.length == count + 3
    engine: Any = session._engine
    if backend in ("wasm", "native"):  # one plan for the prompt, and one for all steps after it
        assert len(engine.compiled._open) == 2 and not engine.compiled._plans
