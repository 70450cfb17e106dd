"""Every remedy that an error of `emberlet micro build` names is followed by a test; the table says which."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import emberlet.micro.builder
import numpy as np
import pytest
from emberlet.errors import EmberletError, ModelError, UnsupportedError
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.kernels.layer import Array, Layer, View
from emberlet.micro.builder.kernels.move import Copy
from emberlet.micro.builder.kernels.writer import Writer
from onnx import TensorProto, helper, numpy_helper
from support.microcontrollers.onnx_models import Maker

from tools.microcontrollers.tflite_files import File

BUILDER = Path(emberlet.micro.builder.__file__).parent
TESTS = Path(__file__).parent

ADVICE = re.compile(
    r"--float|--calibration|--shape|--state|\bexport (it|the)\b|\bconvert\b|\bcalibrate\b|\bbuild (it|from|the)\b"
    r"|\bleave\b|\bsplit the\b|\bcan keep\b|\bexcluding\b"
)
"""Matches messages that name a way out."""

FOLLOWED = {
    "build it without --steps, or without --arena": (
        "test_layers.py::test_an_arena_is_not_shared_by_models_that_run_in_steps"
    ),
    "an LSTM that clips its cells": "test_tflite_lstm.py::test_cells_clipped_below_the_quantized_range_stay_float",
    "leave those samples out": "test_ways_out.py::test_samples_that_hold_no_numbers_are_left_out",
    "or take it as it is with --least-agreement": (
        "test_columns.py::test_a_build_that_disagrees_with_float32_fails_and_names_the_ways_out"
    ),
    "or leave the sample out": "test_ways_out.py::test_a_sample_on_which_a_tensor_overflows_is_left_out",
    "--shape is , expected": "test_layouts.py::test_either_way_of_saying_a_size_is_taken",
    "--state is , expected": "test_streaming.py::test_states_that_go_out_and_come_in_stay_on_the_board",
    "build the board's firmware": "test_cli.py::test_deploy_by_romfs_partition_and_firmware",
    "build it again": "test_deploy.py::test_a_deployed_model_infers",
    "on int16 is not computed as TensorFlow Lite does": (
        "test_ways_out.py::test_what_a_quantized_file_cannot_do_is_built_from_the_float_model"
    ),
    "words in TensorFlow Lite's arithmetic; build it from the float model": (
        "test_ways_out.py::test_what_a_quantized_file_cannot_do_is_built_from_the_float_model"
    ),
    "times the output's; build it from the float model": (
        "test_ways_out.py::test_what_a_quantized_file_cannot_do_is_built_from_the_float_model"
    ),
    "quotient of two quantized tensors": (
        "test_ways_out.py::test_what_a_quantized_file_cannot_do_is_built_from_the_float_model"
    ),
    "transposed convolutions are not supported; build from the float model": (
        "test_ways_out.py::test_what_a_quantized_file_cannot_do_is_built_from_the_float_model"
    ),
    "convert the model with these": "test_tflite.py::test_models_at_random_are_exact",
    "--state: the model has no": "test_streaming.py::test_states_that_go_out_and_come_in_stay_on_the_board",
    "--state: every output of the model": (
        "test_cli.py::test_a_model_whose_outputs_are_all_states_is_refused_and_takes_another_output"
    ),
    "quantized only in part": "test_refusals.py::test_a_model_quantized_in_part_is_built_with_samples_or_float",
    "a sum of 16-bit activations": (
        "test_sixteen_bits.py::test_what_outgrows_words_of_32_bits_is_built_with_samples_or_float"
    ),
    "does not fit 32-bit words; build the model": (
        "test_sixteen_bits.py::test_what_outgrows_words_of_32_bits_is_built_with_samples_or_float"
    ),
    "values of 16 bits; at most": (
        "test_sixteen_bits.py::test_what_outgrows_words_of_32_bits_is_built_with_samples_or_float"
    ),
    "a mask of minus infinity": (
        "test_quantized_masks.py::test_a_mask_that_the_quantizer_lost_is_refused_with_what_to_do"
    ),
    "can keep it": "test_refusals.py::test_a_last_cell_state_can_be_remembered",
    "export the model with fixed shapes": "test_ways_out.py::test_an_input_without_a_rank_is_exported_with_a_shape",
    "--shape": "test_layouts.py::test_either_way_of_saying_a_size_is_taken",
    "export the model again with finite values": (
        "test_refusals.py::test_a_weight_that_is_not_finite_is_refused_by_its_name"
    ),
    "calibrate with samples that reach": "test_ways_out.py::test_samples_that_reach_the_true_range_build",
    "has no int8 form; build the model with --float": (
        "test_ways_out.py::test_a_layer_without_an_int8_form_is_built_in_float32"
    ),
    "ReLU that keeps its state": "test_recurrences.py::test_a_state_that_comes_in_is_kept",
    "mode 'linear' or 'nearest'": "test_refusals.py::test_refusals_name_another_way",
    "antialias is not supported; export the model with antialias=0": (
        "test_refusals.py::test_refusals_name_another_way"
    ),
    "export the model with a fixed axis": "test_refusals.py::test_an_axis_that_an_input_decides_can_be_fixed",
    "reduce the tensor in two steps": "test_refusals.py::test_what_bytes_cannot_do_is_built_with_float",
    "put Relu before it": "test_refusals.py::test_a_power_of_a_tensor_behind_relu_has_bytes",
    "in int8 an index is a byte": "test_refusals.py::test_what_bytes_cannot_do_is_built_with_float",
    "a stream with indices of two bytes": "test_streaming.py::test_a_stream_of_large_indices_is_built_with_float",
    "split the layer into two": "test_refusals.py::test_a_layer_with_too_many_inputs_is_built_with_float",
}
"""Part of a message that names a way out -> the test that follows it, or the file of several."""


def messages() -> list[tuple[str, str]]:
    """(position, text) of every error message that names a remedy."""
    found = []
    for path in sorted(BUILDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
                continue
            parts = node.exc.args[0].values if isinstance(node.exc.args[0], ast.JoinedStr) else [node.exc.args[0]]
            text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
            if ADVICE.search(text):
                found.append((f"{path.relative_to(BUILDER).as_posix()}:{node.lineno}", text))
    return found


def test_every_way_out_is_followed_by_a_test() -> None:
    found = messages()
    assert len(found) > 20
    unknown = [(where, text) for where, text in found if not any(part in text for part in FOLLOWED)]
    assert not unknown, f"no test is named for the way out of {unknown}; write one, and enter it here"
    assert [part for part in FOLLOWED if not any(part in text for _, text in found)] == []
    for test in set(FOLLOWED.values()):
        file, name = test.split("::")
        assert f"def {name}" in (TESTS / file).read_text(encoding="utf-8"), test


# -- the remedies that no other file tests -----------------------------------------------------------------------------


def graph_of(m: Maker, shape: Sequence[int]) -> Graph:
    return read_graph(m.model(list(shape)).SerializeToString(), "m")


def test_samples_that_hold_no_numbers_are_left_out() -> None:
    m = Maker()
    m.weight("w", 4, 3)
    m("MatMul", "x w", "y")
    graph = graph_of(m, [1, 4])
    samples = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    samples[2, 1] = np.nan
    with pytest.raises(EmberletError, match="leave those samples out"):
        build(graph, Options("m"), {"x": samples})
    assert not build(graph, Options("m"), {"x": np.delete(samples, 2, 0)}).program.is_float


def test_a_sample_on_which_a_tensor_overflows_is_left_out() -> None:
    m = Maker()
    m.constant("w", np.full((4, 3), 1e30, np.float32))
    m("MatMul", "x w", "y")
    graph = graph_of(m, [1, 4])
    samples = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    samples[3] = 1e30
    with pytest.raises(UnsupportedError, match=r"on sample 3.*or leave the sample out"):
        build(graph, Options("m"), {"x": samples})
    assert not build(graph, Options("m"), {"x": np.delete(samples, 3, 0)}).program.is_float


@pytest.mark.parametrize("op", ["MatMul", "Add"])
def test_samples_that_reach_the_true_range_build(op: str) -> None:
    """If two large numbers cancel on the samples, these do not show the output's range."""
    m = Maker()
    if op == "MatMul":
        m.constant("w", np.array([[1.0], [1.0]], np.float32))
        m("MatMul", "x w", "y")
    else:
        m.constant("axes", [1])
        for name, start in (("a", 0), ("b", 1)):
            m.constant(f"{name}0", [start])
            m.constant(f"{name}1", [start + 1])
            m("Slice", f"x {name}0 {name}1 axes", name)
        m("Add", "a b", "y")
    graph = graph_of(m, [1, 2])
    large = np.random.default_rng(0).uniform(-1e7, 1e7, 8).astype(np.float32)
    with pytest.raises(UnsupportedError, match="calibrate with samples that reach the output's true range"):
        build(graph, Options("m", method="minmax"), {"x": np.stack([large, -large], 1)})
    other = np.random.default_rng(1).uniform(-1e7, 1e7, (8, 2)).astype(np.float32)
    assert not build(graph, Options("m", method="minmax"), {"x": other}).program.is_float


class Strange(Layer):
    """A kind of layer that the quantizer does not know."""

    def reference(self, *inputs: Array) -> Array:
        return inputs[0]

    def emit(self, dialect: str, inputs: Sequence[View], output: View) -> Writer:
        return Copy(self.name, self.inputs, self.output, (4,)).emit(dialect, inputs, output)


def test_a_layer_without_an_int8_form_is_built_in_float32() -> None:
    graph = Graph("m", (Strange("odd", ("x",), "y"),), {"x": (4,), "y": (4,)}, ("x",), ("y",))
    samples = {"x": np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)}
    with pytest.raises(UnsupportedError, match=r"int8.*--float"):
        build(graph, Options("m"), samples)
    assert build(graph, Options("m", floats=True), samples).program.is_float


def test_an_input_without_a_rank_is_exported_with_a_shape() -> None:
    for shape in (None, [1, 4]):
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", None)))
        weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
        made = helper.make_graph(nodes, "g", [x], [y], [weight])
        data = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()
        if shape is None:
            with pytest.raises(ModelError, match="its rank is not known; export the model with fixed shapes"):
                read_graph(data, "m")
        else:
            assert build(read_graph(data, "m"), Options("m")).program.is_float


def file_of(kind: str, dtype: str) -> bytes:
    """A .tflite file with one operator, quantized with scales that its kernel does not support, or in float32."""
    file, rng = File(), np.random.default_rng(0)
    quantized = dtype != "float32"

    def tensor(shape: Sequence[int], scale: float) -> int:
        return file.tensor(shape, dtype, scale if quantized else 0.0, 0)

    if kind == "FULLY_CONNECTED":
        x, y = tensor((1, 6), 0.1), tensor((1, 3), 1e-7)
        weights = rng.integers(-127, 128, (3, 6)).astype(np.int8)
        w = file.constant(weights, [0.01], [0]) if quantized else file.constant((weights * 0.01).astype(np.float32))
        file.operator(kind, [x, w], [y], "FullyConnected")
    elif kind == "TRANSPOSE_CONV":
        x, y = tensor((1, 3, 3, 2), 0.1), tensor((1, 4, 4, 1), 0.1)
        weights = rng.integers(-127, 128, (1, 2, 2, 2)).astype(np.int8)
        w = file.constant(weights, [0.01], [0]) if quantized else file.constant((weights * 0.01).astype(np.float32))
        shape = file.constant(np.array([1, 4, 4, 1], np.int32))
        file.operator(kind, [shape, w, x], [y], "TransposeConv", Padding=1, StrideH=1, StrideW=1)
    else:
        x, y = tensor((1, 6), 0.1), tensor((1, 6), 1e-9 if kind == "ADD" else 0.1)
        turned = tensor((1, 6), 1 / 256 if quantized else 0.0)
        if dtype == "int8":
            file.tensors[turned].zeros = (-128,)
        file.operator("LOGISTIC", [x], [turned])
        file.operator(kind, [x, turned], [y], kind.title())
    file.inputs, file.outputs = [x], [y]
    return file.written()


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("kind", ["FULLY_CONNECTED", "TRANSPOSE_CONV", "ADD", "DIV"])
def test_what_a_quantized_file_cannot_do_is_built_from_the_float_model(kind: str, dtype: str) -> None:
    with pytest.raises(EmberletError, match=r"build (it )?from the float model"):
        build(read_graph(file_of(kind, dtype), "m"), Options("m"))
    graph = read_graph(file_of(kind, "float32"), "m")
    samples = {
        name: np.random.default_rng(1).standard_normal((8, *graph.shapes[name])).astype(np.float32)
        for name in graph.inputs
    }
    # A quotient stays float32.
    built = build(graph, Options("m", floats=kind == "DIV"), samples)
    assert built.program.is_float == (kind == "DIV")
