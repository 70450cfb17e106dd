"""emberlet.onnxruntime's values, types and descriptions compared with onnxruntime's, for every dtype and kind."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from emberlet import onnxruntime as ours
from emberlet.onnxruntime import providers, values
from emberlet.onnxruntime.metadata import NAMES
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as state
from support.rows import every

BOTH = pytest.mark.parametrize("ort", [theirs, ours], ids=["onnxruntime", "emberlet"])
PLAIN = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
         np.uint64, np.bool_]  # fmt: skip
NARROW = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


def quiet(ort: Any) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return options


def model(text: str, ir_version: int = 8, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> {text}')


def session(ort: Any, made: Any, **options: Any) -> Any:
    return ort.InferenceSession(made.SerializeToString(), quiet(ort), providers=["CPUExecutionProvider"], **options)


# -- indices

INDEXED = {
    "Gather": "int64[2] i) => (float[3,2] y) { y = Gather<axis = 1>(x, i) }",
    "GatherND": "int64[1,2] i) => (float[1] y) { y = GatherND(x, i) }",
    "ScatterND": "int64[1,2] i) => (float[3,4] y) { u = Constant<value_floats = [9.0]>() y = ScatterND(x, i, u) }",
}


@BOTH
@pytest.mark.parametrize("op", INDEXED)
def test_an_index_outside_is_an_invalid_argument_and_later_runs_go_on(ort: Any, op: str) -> None:
    made = session(ort, model("g (float[3,4] x, " + INDEXED[op]))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    inside = np.full(made.get_inputs()[1].shape, 1)
    outside = inside.copy()
    outside.flat[-1] = 7
    first = made.run(None, {"x": x, "i": inside})
    for _ in range(2):
        with pytest.raises((state.InvalidArgument, ours.InvalidArgument), match=r"7|out of data bounds"):
            made.run(None, {"x": x, "i": outside})
        np.testing.assert_array_equal(made.run(None, {"x": x, "i": inside}), first)


# -- values


@every("dtype", PLAIN)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_a_value_of_any_dtype_says_what_onnxruntimes_says(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    found = []
    for ort in (theirs, ours):
        value = ort.OrtValue.ortvalue_from_numpy(array)
        code = value.element_type()
        empty = ort.OrtValue.ortvalue_from_shape_and_type(list(shape), dtype)
        numbered = ort.OrtValue.ortvalue_from_shape_and_type(list(shape), code)
        found.append(
            (value.shape(), value.data_type(), code, value.device_name(), value.tensor_size_in_bytes(),
             value.numpy().tolist(), value.numpy().dtype, empty.shape(), empty.data_type(), numbered.data_type())
        )  # fmt: skip
    assert found[0] == found[1]


@pytest.mark.parametrize("name", NARROW)
def test_narrow_dtypes_have_onnxs_numbers(name: str) -> None:
    array = np.ones(3, getattr(ml_dtypes, name))
    value = ours.OrtValue.ortvalue_from_numpy(array)
    said = value.data_type()[len("tensor(") : -1]
    assert value.element_type() == getattr(TensorProto, said.upper())
    assert said == name.replace("_", "")
    assert values.dtype_named(said) == array.dtype
    empty = ours.OrtValue.ortvalue_from_shape_and_type([2], value.element_type())
    assert empty.numpy().dtype == array.dtype


def test_the_names_of_types_are_onnxs() -> None:
    for code, name in NAMES.items():
        assert TensorProto.DataType.Name(code).lower().replace("_", "") == name.replace("_", "")
        if not name.startswith("complex"):
            dtype = values.dtype_named(name)
            assert values.type_of(np.empty(1, dtype)) == name
    for texts in (np.array(["a"]), np.array([b"a"]), np.array(["a"], object)):
        assert values.type_of(texts) == "string"


@BOTH
def test_a_value_is_a_copy_and_can_be_written(ort: Any) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    copy = value.numpy()
    copy[:] = 9
    assert value.numpy().tolist() == array.tolist()
    assert value.data_ptr() == array.ctypes.data
    value.update_inplace(np.arange(6, 12, dtype=np.float32).reshape(2, 3))
    assert array.tolist() == [[6, 7, 8], [9, 10, 11]]
    for wrong in (np.zeros(5, np.float32), np.zeros((2, 3, 2), np.float32)):
        with pytest.raises(RuntimeError):
            value.update_inplace(wrong)


def test_a_value_is_an_array_for_others() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    value = ours.OrtValue.ortvalue_from_numpy(array)
    assert np.asarray(value) is array
    assert np.asarray(value, np.float64).dtype == np.float64
    assert np.from_dlpack(value).tolist() == array.tolist()
    turned = ours.OrtValue.ortvalue_from_numpy(array.T)
    assert turned.numpy().tolist() == array.T.tolist()
    assert ours.OrtValue.ortvalue_from_numpy(np.ones(2, np.int32)).numpy().dtype == np.int32
    with pytest.raises(RuntimeError, match="does not match"):
        value.update_inplace(np.zeros((2, 3), np.float64))


def test_lists_and_nothing_are_values_too() -> None:
    none, items = values.OrtValue(None), values.OrtValue([np.ones(2, np.int64)])
    assert (none.has_value(), none.is_tensor(), none.is_tensor_sequence()) == (False, False, False)
    assert (items.has_value(), items.is_tensor(), items.is_tensor_sequence()) == (True, False, True)
    assert items.data_type() == "seq(tensor(int64))"
    assert values.OrtValue([]).data_type() == "seq(tensor(float))"
    with pytest.raises(RuntimeError, match=r"OrtValues.*Tensors"):
        items.numpy()


# -- bindings

TWO = "g (float[N, 3] x, int64[N] k) => (float[N, 3] y, int64[N] z) { y = Neg(x)  z = Add(k, k) }"


@BOTH
@pytest.mark.parametrize("numbered", [False, True])
def test_memory_is_read_and_written_where_it_lies(ort: Any, numbered: bool) -> None:
    made = session(ort, model(TWO))
    x, k = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([3, 4])
    y, z = np.zeros((2, 3), np.float32), np.zeros(2, np.int64)
    kinds = (1, 7) if numbered else (np.float32, np.int64)
    binding = made.io_binding()
    binding.bind_input("x", "cpu", 0, kinds[0], [2, 3], x.ctypes.data)
    binding.bind_ortvalue_input("k", ort.OrtValue.ortvalue_from_numpy(k))
    binding.bind_output("y", "cpu", 0, kinds[0], [2, 3], y.ctypes.data)
    binding.bind_output("z", "cpu", 0, kinds[1], [2], z.ctypes.data)
    binding.synchronize_inputs()
    for factor in (1, 10):
        x *= factor
        made.run_with_iobinding(binding)
        binding.synchronize_outputs()
        assert y.tolist() == (-x).tolist()
        assert z.tolist() == [6, 8]
    binding.clear_binding_outputs()
    assert list(binding.get_outputs()) == []
    binding.bind_output("z")
    made.run_with_iobinding(binding)
    assert [v.tolist() for v in binding.copy_outputs_to_cpu()] == [[6, 8]]
    binding.clear_binding_inputs()
    with pytest.raises((RuntimeError, ValueError)):
        made.run_with_iobinding(binding)


@BOTH
def test_arrays_go_in_and_results_into_values(ort: Any) -> None:
    made = session(ort, model(TWO))
    binding = made.io_binding()
    binding.bind_cpu_input("x", np.ones((1, 3), np.float32))
    binding.bind_cpu_input("k", np.array([5]))
    into = ort.OrtValue.ortvalue_from_shape_and_type([1], np.int64)
    binding.bind_output("y")
    binding.bind_ortvalue_output("z", into)
    made.run_with_iobinding(binding)
    assert into.numpy().tolist() == [10]
    assert [v.numpy().tolist() for v in binding.get_outputs()] == [[[-1.0] * 3], [10]]


# -- descriptions


def described(ort: Any, made: Any) -> Any:
    found = session(ort, made)
    return [[(a.name, a.type, a.shape) for a in args]
            for args in (found.get_inputs(), found.get_outputs(), found.get_overridable_initializers())]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "g (float[N, 3] x) => (float[N, 3] y) { y = Neg(x) }",
        "g (float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }",
        "g (float x) => (float y) { y = Neg(x) }",
        "g (float16[N] x) => (float16[N] y) { y = Neg(x) }",
        "g (bool[N] x) => (bool[N] y) { y = Not(x) }",
        "g (string[N] x) => (string[N] y) { y = Identity(x) }",
        "g (uint16[N] x) => (int8[N] y) { y = Cast<to = 3>(x) }",
        "g (seq(float[N]) x) => (float[M] y) { y = ConcatFromSequence<axis = 0>(x) }",
        "g (optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }",
        "g (optional(seq(int64[N])) x) => (bool y) { y = OptionalHasElement(x) }",
    ],
)
@pytest.mark.parametrize("ir_version", [3, 8])
def test_inputs_and_outputs_are_described_as_by_onnxruntime(text: str, ir_version: int) -> None:
    made = model(text, ir_version)
    assert described(ours, made) == described(theirs, made)


@pytest.mark.parametrize("ir_version", [3, 4])
def test_constants_among_the_inputs_are_described_as_by_onnxruntime(ir_version: int) -> None:
    made = model("g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) }", ir_version)
    if not any(i.name == "w" for i in made.graph.input):
        made.graph.input.append(helper.make_tensor_value_info("w", 1, [3]))
    assert described(ours, made) == described(theirs, made)


@pytest.mark.parametrize("version", [None, 0, 7])
def test_the_files_own_metadata_are_onnxruntimes(version: int | None) -> None:
    made = model(TWO)
    made.producer_name, made.domain, made.doc_string = "maker", "some.where", "of the model"
    made.graph.doc_string = "of the graph"
    if version is not None:
        made.model_version = version
    helper.set_model_props(made, {"a": "b", "c": ""})
    found = [session(ort, made).get_modelmeta() for ort in (theirs, ours)]
    names = "producer_name graph_name domain description graph_description version custom_metadata_map"
    for name in names.split():
        assert getattr(found[1], name) == getattr(found[0], name), name


@BOTH
def test_sizes_are_fixed_by_name_or_denotation(ort: Any) -> None:
    made = model("g (float[N, M, 2] x) => (float[N, M, 2] y) { y = Neg(x) }")
    made.graph.input[0].type.tensor_type.shape.dim[1].denotation = "CHANNELS"
    options = quiet(ort)
    options.add_free_dimension_override_by_name("N", 4)
    options.add_free_dimension_override_by_denotation("CHANNELS", 5)
    found = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert found.get_inputs()[0].shape == [4, 5, 2]


@BOTH
@pytest.mark.parametrize("kind", ["session", "run"])
def test_entries_of_options_are_kept(ort: Any, kind: str) -> None:
    options = ort.SessionOptions() if kind == "session" else ort.RunOptions()
    getattr(options, f"add_{kind}_config_entry")("a", "b")
    assert getattr(options, f"get_{kind}_config_entry")("a") == "b"
    with pytest.raises(RuntimeError, match="does not have configuration with key: c"):
        getattr(options, f"get_{kind}_config_entry")("c")


@BOTH
def test_a_run_may_be_ended_before_it_begins(ort: Any) -> None:
    made = session(ort, model("g (float[N] x) => (float[N] y) { y = Neg(x) }"))
    options = ort.RunOptions()
    x = np.ones(2, np.float32)
    assert made.run(None, {"x": x}, options)[0].tolist() == [-1, -1]
    options.terminate = True
    with pytest.raises(state.Fail if ort is theirs else ours.session.Fail, match="terminate"):
        made.run(None, {"x": x}, options)


@BOTH
def test_arrays_of_either_byte_order_and_lists(ort: Any) -> None:
    made = session(ort, model("g (float[N] x) => (float[N] y) { y = Neg(x) }"))
    assert made.run(["y"], {"x": [1.0, 2.0]})[0].tolist() == [-1, -2]
    assert made.run([], {"x": np.array([1.0, 2.0], np.float32)[::-1]})[0].tolist() == [-2, -1]
    if ort is ours:
        assert made.run(None, {"x": np.array([1.0, 2.0], ">f4")})[0].tolist() == [-1, -2]


# -- providers


def test_the_backend_of_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    assert providers.backend_of("WebGPUExecutionProvider") == "wgpu"
    assert providers.backend_of("CPUExecutionProvider") == "numpy"
    monkeypatch.setattr(providers, "missing", lambda names: names)
    assert providers.backend_of("CPUExecutionProvider") == "python"
    assert providers.get_available_providers() == ["CPUExecutionProvider"]
    assert providers.get_device() == "CPU"
    monkeypatch.setattr(providers.sys, "platform", "emscripten")
    for vectors in (True, False):
        monkeypatch.setattr(providers, "_has_vectors", lambda vectors=vectors: vectors)
        assert providers.backend_of("CPUExecutionProvider") == ("wasm" if vectors else "python")


def test_a_gpu_is_available_where_its_library_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "missing", lambda names: [])
    assert providers.get_available_providers() == ["WebGPUExecutionProvider", "CPUExecutionProvider"]
    assert providers.get_device() == "GPU"
    assert providers.get_all_providers() == ["WebGPUExecutionProvider", "CPUExecutionProvider"]


def test_preferred_providers_replace_those_of_sessions() -> None:
    try:
        providers.prefer(["CPUExecutionProvider"])
        with pytest.raises(ValueError, match="unknown provider 'Foo'"):
            providers.prefer(["CPUExecutionProvider", "Foo"])
        assert providers.chosen(["WebGPUExecutionProvider"], [{"a": 1}]) == (
            ["CPUExecutionProvider"], {"CPUExecutionProvider": {}}
        )  # fmt: skip
    finally:
        providers.prefer(None)
    assert providers.chosen([("CPUExecutionProvider", {"a": 1})], None)[1] == {"CPUExecutionProvider": {"a": "1"}}
