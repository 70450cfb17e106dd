"""Whole models from ONNX to MicroPython, planned into one arena, give the bytes of the graph's reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.quantization.calibrate import check_samples
from emberlet.micro.builder.quantization.reference import quantize
from support.microcontrollers.onnx_models import MODELS

from tools.microcontrollers.running import inputs_in_arena, outputs_of, run_program
from tools.micropython import Port


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_its_arena(name: str, unix_port: Port, tmp_path: Path) -> None:
    model = MODELS[name]()
    graph = read_graph(model.SerializeToString(), "m")
    dims = [d.dim_value or 1 for d in model.graph.input[0].type.tensor_type.shape.dim]
    samples = {"x": np.random.default_rng(0).standard_normal((12, *dims)).astype(np.float32)}
    x = check_samples(samples, graph)["x"][0]

    program, quantized = (built := build(graph, Options("m"), samples)).program, built.graph
    source = program.inputs[0]
    q = quantize(x, source.scale, source.zero)
    expected = quantized.run({"x": q})
    for dialect in ("viper", "bytecode"):
        arena = run_program(unix_port, program, dialect, inputs_in_arena(program, [q]), tmp_path)
        for y, port in zip(outputs_of(program, arena), program.outputs, strict=True):
            np.testing.assert_array_equal(y, expected[port.name])

    floats = build(graph, Options("m"))
    exact = floats.graph.run({"x": x})
    arena = run_program(unix_port, floats.program, "float32", inputs_in_arena(floats.program, [x]), tmp_path)
    for y, port in zip(outputs_of(floats.program, arena), floats.program.outputs, strict=True):
        np.testing.assert_allclose(y, exact[port.name], rtol=2e-4, atol=2e-5)
