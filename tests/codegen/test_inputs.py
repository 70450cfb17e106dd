"""Generated models accept arrays, lists, numbers and dicts on every backend and compiled, and check them by INPUTS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.codegen import generate, load
from emberlet.errors import DTypeError, EmberletError, ShapeError
from support.onnx_models import parse
from support.rows import every

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
TWO = """g (float[batch, 3] "input.1", int64[batch] ids) => (float[batch, 3] sum, int64[batch] twice)
    { f = Cast<to = 1>(ids) c = Unsqueeze(f, axis) sum = Add("input.1", c) twice = Add(ids, ids) }"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
IDS = np.array([10, 20], np.int64)


def two(backend: Any) -> Any:
    from onnx import numpy_helper

    model = parse(TWO.replace('"input.1"', "first"))
    model.graph.input[0].name = "input.1"
    for node in model.graph.node:
        node.input[:] = ["input.1" if i == "first" else i for i in node.input]
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "axis"))
    return load(model, backend)


@pytest.fixture(params=["numpy", "python", "wgpu", "compiled"])
def model(request: pytest.FixtureRequest) -> Any:
    """A model of two inputs on each backend, and as one plan."""
    if request.param in ("wgpu", "compiled"):
        request.getfixturevalue("wgpu_adapter")
    made = two("wgpu" if request.param == "compiled" else request.param)
    return made.compile(X, IDS) if request.param == "compiled" else made


def as_arrays(results: Any) -> list[np.ndarray]:
    return [np.asarray(r) for r in results]


class Dlpack:
    """A stand-in for PyTorch's tensor: not an array, but an exporter of its memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


GIVEN = {
    "arrays": (X, IDS),
    "lists": (X.tolist(), IDS.tolist()),
    "dlpack": (Dlpack(X.copy()), Dlpack(IDS.copy())),
    "tensors": (emberlet.asarray(X, device="numpy"), emberlet.asarray(IDS, device="python")),
    "a mixture": (X, [10, 20]),
}


@pytest.mark.parametrize("given", sorted(GIVEN))
def test_inputs_of_every_kind_give_the_same(model: Any, given: str) -> None:
    first, ids = GIVEN[given]
    for results in (
        model(first, ids),
        model(input_1=first, ids=ids),
        model(first, ids=ids),
        model({"input.1": first, "ids": ids}),
        model({"ids": ids, "input_1": first}),
    ):
        total, twice = as_arrays(results)
        np.testing.assert_array_equal(total, X + IDS[:, None])
        np.testing.assert_array_equal(twice, 2 * IDS)


@every(
    ("inputs", "error", "says"),
    [
        ((X.astype(np.float64), IDS), DTypeError, r"takes input\.1: float32 \(batch, 3\), found float64 \(2, 3\)"),
        ((X, IDS.astype(np.int32)), DTypeError, r"takes ids: int64 \(batch,\), found int32 \(2,\)"),
        ((X[:, :2], IDS), ShapeError, r"takes input\.1: float32 \(batch, 3\), found float32 \(2, 2\)"),
        ((X[0], IDS), ShapeError, r"takes input\.1: float32 \(batch, 3\), found float32 \(3,\)"),
        ((X, IDS[:1]), ShapeError, r"takes ids: int64 \(batch,\), found int64 \(1,\); batch is 2 in input\.1"),
        (([[1.0, 2.0], [3.0]], IDS), ShapeError, r"input\.1: float32 \(batch, 3\): "),
        ((X, [1.5, 2.5]), DTypeError, r"ids: int64 \(batch,\): "),
        ((X,), EmberletError, r"takes input\.1: float32 \(batch, 3\), ids: int64 \(batch,\); 'ids' missing"),
        ((X, IDS, X), EmberletError, "found 3 inputs"),
        (({"input.1": X, "idx": IDS},), EmberletError, "there is no input 'idx'"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_and_what_is_wanted_said(
    model: Any, inputs: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        model(*inputs)


def test_tensors_of_a_wrong_number_or_rank_are_refused_as_arrays_are(model: Any) -> None:
    x, ids = emberlet.asarray(X), emberlet.asarray(IDS)
    model(x, ids)
    wrong = [((x,), "'ids' missing"), ((x, ids, ids), "found 3 inputs"), ((x[0], ids), r"found float32 \(3,\)")]
    for inputs, says in wrong:
        with pytest.raises(EmberletError, match=says):
            model(*inputs)


def test_an_image_of_another_size_gets_no_answer() -> None:
    digits = load(DIGITS, "numpy")
    with pytest.raises(ShapeError, match=r"float32 \(batch, 1, 8, 8\).*float32 \(1, 1, 9, 9\)"):
        digits(np.zeros((1, 1, 9, 9), np.float32))


def test_a_number_is_an_input_of_rank_0() -> None:
    model = load(parse("g (float[] x) => (float[] y) { y = Exp(x) }"), "python")
    assert float(model(0)) == 1.0
    assert model.INPUTS == (("x", "float32", None),) and model(0.0).backend.name == "python"


def test_tensors_of_another_backend_come_to_the_model(wgpu_adapter: object) -> None:
    image = np.random.default_rng(2).random((2, 1, 8, 8), dtype=np.float32)
    on_host, on_gpu = load(DIGITS, "numpy"), load(DIGITS, "wgpu")
    got = on_gpu(emberlet.asarray(image, device="numpy"))
    assert got.backend.name == "wgpu"
    np.testing.assert_allclose(np.asarray(got), np.asarray(on_host(image)), atol=1e-5)


def test_a_list_of_tensors_and_an_optional_are_inputs_too() -> None:
    joined = parse("g (seq(float[N]) xs) => (float[M] y) { y = ConcatFromSequence<axis = 0>(xs) }")
    model = load(joined, "python")
    assert model.INPUTS == (("xs", "list of float32 (N,)", None),)
    assert np.asarray(model([np.float32([1, 2]), np.float32([3])])).tolist() == [1, 2, 3]


def test_the_module_says_what_it_takes_and_gives_as_data(tmp_path: Path) -> None:
    made = generate(DIGITS, tmp_path)
    text = made.module.read_text(encoding="utf-8")
    assert '    INPUTS = (("image", "float32", ("batch", 1, 8, 8)),)\n' in text
    assert '    OUTPUTS = (("logits", "float32", ("batch", 10)),)\n' in text


# -- compiling --------------------------------------------------------------------------------------------------------


def test_compiling_leaves_the_model_where_it_was(wgpu_adapter: object) -> None:
    model = load(DIGITS, "numpy")
    image = np.zeros((1, 1, 8, 8), np.float32)
    before = np.asarray(model(image))
    compiled = model.compile(image, backend="wgpu")
    assert [b.name for b in model.backends()] == ["numpy"]
    np.testing.assert_array_equal(np.asarray(model(image)), before)
    np.testing.assert_allclose(np.asarray(compiled(image)), before, atol=1e-5)
    assert "Compiled(Digits, " in repr(compiled) and "dispatches for (float32 (1, 1, 8, 8))" in repr(compiled)


def test_weights_that_were_never_set_are_drawn_once_for_both(wgpu_adapter: object) -> None:
    from emberlet import nn

    layer = nn.Linear(4, 3, backend="numpy")
    x = np.ones((2, 4), np.float32)
    compiled = layer.compile(x, backend="wgpu")
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(layer(emberlet.asarray(x))), atol=1e-5)
    assert np.asarray(compiled(x=x)).shape == (2, 3)


# -- what is given belongs to the caller ------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("backend", ["python", "numpy", "wgpu"])
def test_assigning_to_a_result_leaves_the_weights_as_they_are(
    backend: str, compiled: bool, request: pytest.FixtureRequest
) -> None:
    """Outputs that are a weight: directly, from a branch, a loop without iterations, a sequence and an optional."""
    if backend == "wgpu" or compiled:
        request.getfixturevalue("wgpu_adapter")
    weight = ", ".join(str(i) for i in range(6))
    model = load(
        parse(
            f"""g (float[2, 3] x, bool c) => (float[6] y, float[6] q, float[6] l, float[6] f, float[6] o, float[6] j,
                                              float[] s)
            <float[6] w = {{{weight}}}, float s = {{2}}, int64 none = {{0}}, int64 zero = {{0}}>
            {{
                y = Identity(w)
                q = If (c) <then_branch = t () => (float[6] a) {{ a = Identity(w) }},
                            else_branch = e () => (float[6] b) {{ b = Neg(w) }}>
                l = Loop (none, , w) <body = r (int64 i, bool k, float[6] v) => (bool m, float[6] n)
                    {{ m = Identity(k) n = Neg(v) }}>
                some = SequenceConstruct (x, w)
                more = SequenceInsert (some, w, zero)
                f = SequenceAt (more, zero)
                kept = Optional (w)
                o = OptionalGetElement (kept)
                one = SequenceConstruct (w)
                j = Loop (zero, , f) <body = r2 (int64 i2, bool k2, float[6] v2) => (bool m2, float[6] n2)
                    {{ m2 = Identity(k2) n2 = Identity(w) }}>
            }}"""
        ),
        backend,
    )
    x = emberlet.asarray(np.float32([[1, 2, 3], [4, 5, 6]]), device=backend)
    condition = emberlet.asarray(True, device=backend)
    run = model.compile(x, condition) if compiled else model
    first = [r.tolist() for r in run(x, condition)]
    assert first[:-1] == [[0, 1, 2, 3, 4, 5]] * 6
    for at, result in enumerate(run(x, condition)):
        result[...] = 99
        assert [r.tolist() for r in run(x, condition)] == first, at


# -- the cost of a call -----------------------------------------------------------------------------------------------


class LikeTorch:
    """A stand-in for PyTorch's tensor with DLPack and its own dtype, but without NumPy's interface."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape
        self.dtype = f"torch.{array.dtype}"

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("backend", ["python", "numpy", "wgpu"])
def test_a_model_takes_tensors_of_other_libraries(backend: str, request: pytest.FixtureRequest) -> None:
    if backend == "wgpu":
        request.getfixturevalue("wgpu_adapter")
    model = load(DIGITS, backend)
    image = np.random.default_rng(3).standard_normal((2, 1, 8, 8)).astype(np.float32)
    want = np.asarray(model(image))
    np.testing.assert_array_equal(np.asarray(model(LikeTorch(image))), want)
    np.testing.assert_array_equal(np.asarray(model({"image": LikeTorch(image)})), want)
    with pytest.raises(DTypeError, match="float64"):
        model(LikeTorch(image.astype(np.float64)))
