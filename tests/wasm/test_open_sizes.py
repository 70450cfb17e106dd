"""Open sizes in WebAssembly: one module gives NumPy's results at every size, in Python, JavaScript and in parts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import onnxruntime
import pytest
from emberlet import codegen, nn
from emberlet import functional as F
from emberlet.errors import FormatError, IndexingError
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.wasm import file
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from support.divided import in_parts
from wasm.test_file import described_by, in_node, paths, replaced

MODEL = "tests/models/bert_traced/model.onnx"
NAMES = ["input_ids", "attention_mask", "token_type_ids"]
LONGEST = 40


def attention(x: Any) -> Any:
    """Products whose rows, columns and terms are of open sizes, and what else an encoder has."""
    batch, length, width = x.shape
    weight = F.arange(width * 24, dtype=emberlet.float32, backend=x.backend).reshape((width, 24)) * 0.001 - 0.1
    heads = F.permute_dims((x @ weight).reshape((batch, length, 2, 12)), (0, 2, 1, 3))
    scores = F.softmax(heads @ F.permute_dims(heads, (0, 1, 3, 2)), axis=-1)
    return F.layer_norm(F.permute_dims(scores @ heads, (0, 2, 1, 3)).reshape((batch, length, 24)))


def lines(x: Any) -> Any:
    """Kernels that go along a line, or have one of each."""
    order = F.argsort(x, axis=1)
    return F.cumulative_sum(x, axis=1), order, F.argmax(x, axis=1), F.scatter(x, 1, order, x * 2.0)


def convolved(x: Any) -> Any:
    """Convolutions of a batch, and of a signal whose length is open."""
    weight = F.arange(4 * 16 * 3, dtype=emberlet.float32, backend=x.backend).reshape((4, 16, 3)) * 0.01 - 1
    signal = F.permute_dims(x, (0, 2, 1))
    return F.conv1d(signal, weight, padding=1), F.max_pool(F.pad(signal, ((0, 0), (0, 0), (1, 1))), 3, stride=1)


def eight_bit(x: Any) -> Any:
    """Exact sums of products of small integers."""
    whole = F.astype(F.round(x * 40.0), emberlet.int32)
    weight = F.astype(
        F.arange(16 * 24, dtype=emberlet.int32, backend=x.backend).reshape((16, 24)) % 200 - 100, emberlet.int32
    )
    product = getattr(x.backend, "matmul_8bit", None)
    return product(whole, weight) if product else whole @ weight


FUNCTIONS = [attention, lines, convolved, eight_bit]


def drawn(batch: int, length: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(length).standard_normal((batch, length, 16)).astype(np.float32)


def near(found: Any, wanted: Any, says: Any) -> None:
    many = isinstance(wanted, tuple)
    for a, b in zip(found if many else (found,), wanted if many else (wanted,), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, says
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=str(says))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_module_gives_numpys_results_at_every_length(function: Any) -> None:
    compiled = compile(function, backend="wasm", dims={"x": {0: ("batch", 3), 1: ("length", LONGEST)}})
    for length in [*range(1, LONGEST + 1), 7, 1]:
        x = drawn(1 + length % 3, length)
        near(compiled(x), function(emberlet.asarray(x, backend="numpy")), x.shape)
    assert (len(compiled._open), len(compiled._plans)) == (1, 0), compiled.fixed


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_loops_of_open_sizes_in_parts_give_the_bytes_of_one_thread(function: Any) -> None:
    with in_parts() as divided:
        compiled = compile(function, backend="wasm", dims={"x": {0: "batch", 1: "length"}})
        for length in (9, 1, 3, 5, 33, 70):
            x = drawn(2, length)
            near(compiled(x), function(emberlet.asarray(x, backend="numpy")), x.shape)
        assert divided.shared


def given(batch: int, length: int) -> list[np.ndarray[Any, Any]]:
    ids = np.random.default_rng(length).integers(0, 60, (batch, length))
    return [ids, np.ones_like(ids), np.zeros_like(ids)]


SIZES = [(2, 8), (1, 1), (3, 64), (1, 3), (2, 33), (3, 5), (3, 5)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.wasm"
    model = codegen.load(MODEL, "numpy")
    dims = {"batch": (1, 3), "length": (1, 64)}
    plan_file.save(str(path), model, *given(2, 8), inputs=NAMES, outputs=["states", "pooled"], dims=dims)
    return path


def test_a_saved_encoder_runs_every_length(text: Path) -> None:
    saved, model = plan_file.load(str(text)), codegen.load(MODEL, "numpy")
    assert repr(saved.inputs[0]) == "input_ids: int64 (batch, length)"
    for batch, length in SIZES + [(1, n) for n in range(1, 65)]:
        inputs = given(batch, length)
        near(tuple(saved.run(*inputs)), tuple(model(*inputs)), (batch, length))
    with pytest.raises(FormatError, match="length between 1 and 64"):
        saved.run(*given(1, 65))
    with pytest.raises(IndexingError, match="length 60"):
        saved.run(np.full((1, 2), 60), *given(1, 2)[1:])


@pytest.mark.needs("node")
def test_javascript_gives_pythons_bytes_at_every_size(text: Path, tmp_path: Path) -> None:
    saved = plan_file.load(str(text))
    cases = []
    for batch, length in SIZES:
        inputs = given(batch, length)
        found = [np.asarray(out) for out in saved.run(*inputs)]
        cases.append([[batch, length], [x.ravel().tolist() for x in inputs], [x.ravel().tolist() for x in found]])
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    told = in_node(
        f"""
        const model = await load(readFileSync({json.dumps(str(text))}));
        const told = [];
        for (const [shape, given, wanted] of JSON.parse(readFileSync({json.dumps(str(tmp_path / "cases.json"))}))) {{
          const of = (i) => Object.assign(BigInt64Array.from(given[i], BigInt), {{ shape }});
          const inputs = Object.fromEntries(model.inputs.map(({{ name }}, i) => [name, of(i)]));
          const results = Object.values(model.runNow(inputs));
          const same = (one, i) => one.length === wanted[i].length && one.every((v, k) => v === wanted[i][k]);
          const equal = results.every(same);
          told.push([equal, results.map((values) => values.shape)]);
        }}
        console.log(JSON.stringify([told, model.sizes, model.inputs[0].shape, model.inputs[0].length]));
        """,
        "--experimental-wasm-relaxed-simd",
    )
    runs, sizes, shape, most = json.loads(told)
    assert runs == [[True, [[b, n, 32], [b, 8]]] for b, n in SIZES]
    assert (sizes, shape, most) == ({"batch": [1, 3], "length": [1, 64]}, ["batch", "length"], 3 * 64)


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("of(new BigInt64Array(65), [1, 65])", "length is 65; the model takes 1 to 64"),
        ("of(new BigInt64Array(8), [4, 2])", "batch is 4; the model takes 1 to 3"),
        ("new BigInt64Array(4)", 'the inputs do not tell "batch"'),
        ("of(new BigInt64Array(4), [1, 5])", "has 4 values, and its shape is 1×5"),
        (
            "of(new BigInt64Array(4), [2, 2])",
            'the input "attention_mask" takes 2 where batch is 2 and length is 2; found: 1',
        ),
        ("of(BigInt64Array.of(60n, 0n), [1, 2])", 'the index 60 of "input_ids" is outside an axis of length 60'),
        ("new Float32Array(4)", "takes a BigInt64Array (int64, batch×length); found: Float32Array of 4"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_words_by_javascript(text: Path, ids: str, message: str) -> None:
    said = in_node(
        f"""
        const model = await load(readFileSync({json.dumps(str(text))}));
        const of = (values, shape) => Object.assign(values, {{ shape }});
        const ids = {ids};
        const rest = "shape" in ids ? of(new BigInt64Array(ids.length), ids.shape[0] === 2 ? [1, 4] : ids.shape) : ids;
        const all = {{ input_ids: ids, attention_mask: rest, token_type_ids: rest }};
        try {{ model.runNow(all); }} catch (error) {{ console.log(error.message); }}
        """
    )
    assert message in said


def test_whatever_a_description_of_sizes_says_instead_is_refused_in_words(text: Path) -> None:
    whole = text.read_bytes()
    found = {name: whole[start:end] for _, name, start, end, _ in file.sections(whole)}
    content = json.loads(found[file.NAME])
    odd: list[Any] = [None, -1, 1 << 40, [], [[1, 99]], "x"]
    inputs = given(2, 8)
    for at in list(paths(content["sizes"]))[::7]:
        for by in odd:
            changed = {**content, "sizes": replaced(content["sizes"], at, by)}
            try:
                saved = plan_file.load(described_by(whole, json.dumps(changed).encode()))
                saved.words(inputs, saved.sizes(inputs))
            except FormatError as error:
                assert not re.search("iterable|unpack|NoneType|instances|indices must", str(error)), error


@pytest.mark.parametrize("layer", [nn.Rnn, nn.Lstm, nn.Gru], ids=lambda layer: layer.__name__)
def test_a_recurrent_layer_over_an_open_length_gets_a_plan_for_each(layer: Any) -> None:
    model = layer(3, 2, backend="wasm")
    fast = model.compile(backend="wasm", dims={"x": {1: "time"}})
    for steps in (3, 5, 1, 3):
        x = emberlet.asarray(
            np.random.default_rng(steps).standard_normal((2, steps, 3)).astype(np.float32), backend="wasm"
        )
        np.testing.assert_allclose(np.asarray(fast(x)[0]), np.asarray(model(x)[0]), atol=1e-6)


def test_indices_of_a_fixed_number_are_held_against_an_axis_of_open_length(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.wasm")
    x, i = np.arange(12, dtype=np.float32).reshape((4, 3)), np.array([1, -4])
    given = [emberlet.asarray(a, device="numpy") for a in (x, i)]
    plan_file.save(path, lambda x, i: F.take(x, i, 0), *given, inputs=["x", "i"], dims={"x": {0: ("rows", 9)}})
    saved = plan_file.load(path)
    for rows, index in ((4, [1, -4]), (2, [1, -2]), (4, [3, 0])):
        found = np.asarray(saved.run(x[:rows], np.array(index))[0].to_tensor("numpy"))
        np.testing.assert_array_equal(found, x[:rows][index])
    with pytest.raises(IndexingError, match="outside an axis of length 2"):
        saved.run(x[:2], np.array([0, 2]))


class _Texts(CalibrationDataReader):
    """Inputs of the encoder by name, to calibrate it."""

    def __init__(self) -> None:
        self.left = [dict(zip(NAMES, given(2, 5 + i), strict=True)) for i in range(3)]

    def get_next(self) -> dict[str, Any] | None:
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("form", ["dynamic", "QDQ", "QOperator"])
def test_a_quantized_encoder_runs_every_length_as_onnxruntime_does(form: str, tmp_path: Path) -> None:
    quantized = tmp_path / "encoder.onnx"
    if form == "dynamic":
        quantize_dynamic(MODEL, quantized, weight_type=QuantType.QInt8)
    else:
        quantize_static(MODEL, quantized, _Texts(), quant_format=QuantFormat[form], per_channel=True)
    model = codegen.load(str(quantized), "numpy")
    path = str(tmp_path / "encoder.wasm")
    plan_file.save(path, model, *given(2, 8), inputs=NAMES, dims={"batch": (1, 3), "length": (1, 64)})
    saved = plan_file.load(path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(quantized, options)
    for batch, length in SIZES:
        inputs = given(batch, length)
        near(
            tuple(saved.run(*inputs)), tuple(session.run(None, dict(zip(NAMES, inputs, strict=True)))), (batch, length)
        )
