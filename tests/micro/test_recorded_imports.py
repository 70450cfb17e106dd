"""What small ONNX models are imported as, in float32 and with the model's own grids.

`UPDATE_SNAPSHOTS=1 pytest` on this file records it again. Results are compared elsewhere; this shows layers that are
moved, repeated or reshaped without need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.fuse import fuse
from support.microcontrollers.described import described, planned
from support.microcontrollers.onnx_models import MODELS
from support.microcontrollers.quantized import image_network, sequence_network
from support.microcontrollers.quantized_nodes import KINDS, node_of
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("recorded_imports.txt")

Models = Iterator[tuple[str, onnx.ModelProto]]


def small_models() -> Models:
    return ((name, make()) for name, make in MODELS.items())


def networks() -> Models:
    for seed in range(40, 60):
        yield f"images {seed}", image_network(seed)
        yield f"sequences {seed}", sequence_network(seed)


def quantized_nodes() -> Models:
    for seed in range(900, 900 + 6 * len(KINDS)):
        node = node_of(seed)
        yield f"{node.op} {seed}", node.model()


@pytest.mark.parametrize("models", [small_models, networks, quantized_nodes], ids=lambda models: models.__name__)
def test_what_a_model_becomes(models: Callable[[], Models]) -> None:
    lines: list[str] = []
    for name, model in models():
        graph = read_graph(model.SerializeToString(), "m")
        lines += [name, *described(graph)]
        if models is quantized_nodes:
            built = build(graph, Options("m"))
            lines += [*described(built.graph), *planned(built.program)]
            built = build(graph, Options("m", floats=True, int4="bytes"))
            lines += [*described(built.graph), *planned(built.program)]
        else:
            fused = fuse(replace(graph, name="fused"))
            lines += described(fused)
    assert_recorded(RECORDED, models.__name__.replace("_", " "), "\n".join(lines))
