"""Names of PyTorch, NumPy and Burn are understood, or answered with what to write; a slip with the nearest name."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import dtypes, nn
from emberlet import functional as F
from emberlet.errors import ArgumentError, AxisError, BackendError, DTypeError, EmberletError, ShapeError
from emberlet.host.interface.elsewhere.layers import LAYER_ADVICE, LAYERS
from emberlet.host.interface.elsewhere.modules import METHOD_ADVICE, METHODS
from emberlet.host.interface.elsewhere.names import ADVICE, ALIASES, VALUES
from emberlet.names import all_names
from support.rows import every

from tools.paths import ROOT

X = F.asarray([[1.0, -2.0], [3.0, 4.0]])


def test_an_alias_leads_to_a_function_and_is_no_name_of_ours() -> None:
    ours = set(all_names())
    assert set(ALIASES.values()) <= ours
    assert not set(ALIASES) & ours and not set(ADVICE) & (ours | set(ALIASES))
    assert not {name for name in ALIASES if name in dir(emberlet) or name in dir(F)}
    assert not set(VALUES) & (ours | set(ALIASES) | set(ADVICE))
    assert [n for n, found in ALIASES.items() if getattr(F, n).__name__ != getattr(F, found).__name__] == []


def test_a_layers_alias_leads_to_a_layer() -> None:
    for name, ours in LAYERS.items():
        assert getattr(nn, name) is getattr(nn, ours)
        assert name not in dir(nn)
    assert not set(LAYER_ADVICE) & (set(LAYERS) | set(dir(nn)))


def test_a_methods_alias_leads_to_a_method_of_modules() -> None:
    assert all(callable(getattr(nn.Module, ours)) for ours in METHODS.values())
    assert not [name for name in {*METHODS, *METHOD_ADVICE, "eval"} if hasattr(nn.Module, name)]
    assert not set(METHODS) & set(METHOD_ADVICE)


def test_a_module_answers_to_other_libraries_methods() -> None:
    layer = nn.Linear(2, 3)
    assert layer.parameters() == layer.params()
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    other = nn.Linear(2, 3)
    other.load_state_dict(layer.state_dict())
    assert other.weight.val().tolist() == layer.into_record()["weight"].tolist()
    assert layer.eval() is layer and layer.to_device("python") is layer
    with pytest.raises(ArgumentError, match=r"module\.valid\(\)"):
        layer.train().eval()


def test_a_module_answers_a_name_that_it_does_not_have() -> None:
    layer = nn.Linear(2, 3)
    for name, words in [("zero_grad", "reset"), ("modules", "vars"), ("wieght", "did you mean weight"),
                        ("nam_params", "did you mean named_params")]:  # fmt: skip
        assert not hasattr(layer, name)
        with pytest.raises(AttributeError, match=f"Linear has no attribute {name!r}.*{words}"):
            getattr(layer, name)


@pytest.mark.parametrize("text", ["F.clamp", "emberlet.clamp", "nn.ReLU", "F.asarray([1.]).is_nan"])
def test_an_alias_needs_nothing_loaded_before(text: str) -> None:
    code = f"import emberlet\nfrom emberlet import functional as F, nn\n{text}"
    subprocess.run([sys.executable, "-c", code], check=True)


@every(
    ("call", "expected"),
    [
        (lambda x: F.clamp(x, 0, 3), lambda a: a.clip(0, 3)), (lambda x: x.clamp(min=0), lambda a: a.clip(0)),
        (lambda x: x.is_nan(), np.isnan), (lambda x: x.powf(2.0), lambda a: a**2),
        (lambda x: x.recip(), lambda a: 1 / a),
        (lambda x: emberlet.concatenate([x, x]), lambda a: np.concatenate([a, a])),
        (lambda x: F.sum(x, dim=1, keepdim=True), lambda a: a.sum(1, keepdims=True)),
        (lambda x: x.mean(dim=0), lambda a: a.mean(0)), (lambda x: F.std(x, dim=1), lambda a: a.std(1, ddof=1)),
        (lambda x: x.std(ddof=1), lambda a: a.std(ddof=1)), (lambda x: x.var(unbiased=False), np.var),
        (lambda x: F.cat(tensors=[x, x], dim=1), lambda a: np.concatenate([a, a], 1)),
        (lambda x: F.add(x, other=x), lambda a: a + a), (lambda x: F.lt(x, 0), lambda a: a < 0),
        (lambda x: F.arctan2(x, x), lambda a: np.arctan2(a, a)),
        (lambda x: x.masked_fill(x < 0, 0.0), lambda a: a.clip(0)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["numpy", "python"])
def test_a_call_by_another_name_means_the_same(call: Any, expected: Any, backend: str) -> None:
    found = np.asarray(call(X.to(backend)))
    np.testing.assert_allclose(found, expected(np.asarray(X)), rtol=1e-6)


def test_burns_reductions_keep_the_axis() -> None:
    assert X.sum_dim(1).tolist() == [[-1], [7]] and X.max_dims((0, 1)).tolist() == [[4]]
    assert X.var_bias(0).tolist() == [[1, 9]] and X.clone().tolist() == X.tolist()


def test_a_param_answers_to_burns_names_and_stays_lazy() -> None:
    param = emberlet.Param.zeros((2, 3), backend="python")
    assert (param.lazy_shape(), param.device, param.is_require_grad()) == ((2, 3), "python", True)
    assert param.lazy_device() is param.backend and not param.is_initialized
    assert param.into_value().tolist() == param.val().tolist()
    given = emberlet.ParamId()
    assert emberlet.Param.initialized(given, X).id is given
    with pytest.raises(AttributeError, match=r"write param\.val"):
        param.data  # noqa: B018
    with pytest.raises(AttributeError, match="set_require_grad"):
        param.set_requires_grad  # noqa: B018


def test_methods_of_values_that_are_attributes_here() -> None:
    x = F.zeros((2, 3))
    assert (x.dims(), x.dim(), x.rank(), x.numel(), x.num_elements(), x.t().shape) == ((2, 3), 2, 2, 6, 6, (3, 2))


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: X.reshpae, "did you mean reshape?"),
        (lambda: F.sofmax, "did you mean softmax"),
        (lambda: emberlet.codgen, "did you mean codegen?"),
        (lambda: nn.Liner, "did you mean Linear?"),
        (lambda: nn.LayerNrm, "did you mean LayerNorm"),
        (lambda: nn.LSTM, r"write nn\.Lstm"),
        (lambda: F.mean_dim, r"write mean\(x, axis, keepdims=True\)"),
        (lambda: X.concatenate, r"write emberlet\.concat\(x"),
        (lambda: X.view, r"write reshape"),
        (lambda: emberlet.optim.Adam, r"write optim\.AdamConfig\(\)"),
        (lambda: emberlet.optim.AdamConfg, "did you mean AdamConfig"),
        (lambda: emberlet.data.Datset, "did you mean Dataset"),
        (lambda: emberlet.fft.fft2, r"write fft\.fftn\(x, axes=\(-2, -1\)\)"),
        (lambda: emberlet.fft.rftt, "did you mean rfft"),
    ],
)
def test_a_name_that_is_not_here_is_answered(read: Any, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        read()


def test_a_keyword_that_is_not_here_is_answered() -> None:
    with pytest.raises(DTypeError, match="'axi'; did you mean axis"):
        F.sum(X, axi=1)
    with pytest.raises(ArgumentError, match="max_with_indices"):
        X.max(dim=1)
    with pytest.raises(ArgumentError, match="not changed in place"):
        F.relu(X, inplace=True)


@pytest.mark.parametrize(
    "package", ["autodiff", "data", "fft", "functional", "linalg", "nn", "optim", "train", "train.metric"]
)
def test_an_import_of_everything_brings_the_public_names(package: str) -> None:
    space: dict[str, Any] = {}
    exec(f"from emberlet.{package} import *", space)
    found = {name for name in space if name != "__builtins__"}
    assert found == {name for name in dir(sys.modules["emberlet." + package]) if name[0] != "_"}


def test_an_import_of_everything_leaves_out_what_needs_a_package_that_is_missing() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from emberlet.data import *\nassert DataLoader and 'MnistDataset' not in globals()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_call_that_means_something_else_in_pytorch_says_what_to_write() -> None:
    for call in (lambda: F.repeat(X, 2, 2), lambda: X.repeat(2, 2)):
        with pytest.raises(ArgumentError, match=r"write tile\(x, \(2, 2\)\)"):
            call()


def test_a_layer_says_that_an_option_takes_a_tensor() -> None:
    with pytest.raises(DTypeError, match="asarray"):
        nn.MultiHeadAttention(8, 2)(F.zeros((1, 3, 8)), mask_pad=np.zeros((1, 3), bool))


def test_asking_for_what_is_not_here_is_cheap_and_pickles() -> None:
    assert not hasattr(X, "reshpae") and not hasattr(nn, "Liner") and not hasattr(F, "__wrapped__")
    with pytest.raises(AttributeError) as caught:
        nn.Liner  # noqa: B018
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert pickle.loads(pickle.dumps(F.clamp)).__name__ == "clip"


def test_methods_and_constructors_explain_keywords() -> None:
    layer = nn.Linear(2, 3)
    for call, words in [
        (lambda: layer.compile(F.ones((1, 2)), backedn="numpy"), r"Linear\.compile: .*'backedn'; did you mean backend"),
        (lambda: layer.load_file("x", strickt=True), r"Linear\.load_file: .*did you mean strict"),
        (lambda: emberlet.data.DataLoader([1], bach_size=2), "DataLoader: .*did you mean batch_size"),
    ]:
        with pytest.raises(DTypeError, match=words):
            call()
    assert emberlet.data.DataLoader([1, 2], num_workers=1, pin_memory=True).workers == 1
    with pytest.raises(ArgumentError, match="SamplerDataset"):
        emberlet.data.DataLoader([1, 2], sampler=[1])


@every(("owner", "name", "near"), [("store", "opn", "open"), ("errors", "ShapError", "ShapeError"),
                                   ("dtypes", "float23", "float32"), ("data", "DataLoadr", "DataLoader")])  # fmt: skip
def test_a_modules_slip_is_answered_with_the_nearest_name(owner: str, name: str, near: str) -> None:
    __import__(f"emberlet.{owner}")
    with pytest.raises(AttributeError, match=f"did you mean {near}"):
        getattr(getattr(emberlet, owner), name)


A = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, -7.0]])


@every("call", ["nancumsum(x)", "nancumsum(x, 1)", "nancumprod(x, 0)", "nanargmax(x, 0)", "nanargmin(x)",
                "nanpercentile(x, 30)"])  # fmt: skip
def test_numpys_functions_without_nan(call: str) -> None:
    wanted = eval(f"np.{call}", {"np": np, "x": A})
    found = eval(f"np.{call}", {"np": emberlet, "x": F.asarray(A)})
    np.testing.assert_allclose(np.asarray(found), wanted)


@every("name", ["nancumsum", "nancumprod", "nanargmax", "nanargmin"])
def test_integers_without_nan_stay_integers(name: str) -> None:
    a = np.array([-(2**24), 2**24, 2**24 + 1, -(2**24) - 1])
    found = np.asarray(getattr(emberlet, name)(F.asarray(a)))
    np.testing.assert_array_equal(found, getattr(np, name)(a), strict=True)


def test_a_row_of_nan_has_no_largest_number() -> None:
    with pytest.raises(ArgumentError, match="NaN"):
        emberlet.nanargmax(F.asarray([[np.nan], [1.0]]), axis=1)


def test_arrays_are_saved_and_loaded_as_by_numpy(tmp_path: Any) -> None:
    emberlet.save(tmp_path / "a", X)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.asarray(X))
    np.savez(tmp_path / "b.npz", one=np.asarray(X))
    assert emberlet.load(tmp_path / "a.npy").tolist() == emberlet.load(tmp_path / "b.npz")["one"].tolist()
    for call, words in [
        (lambda: emberlet.save(X, "a"), "path first"), (lambda: emberlet.load("a.pt"), "store.open"),
        (lambda: emberlet.load(b"a.npy"), "a bytes"), (lambda: emberlet.load(None), "NoneType"),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            call()
    with pytest.raises(DTypeError, match=r"numpy\.save"):
        emberlet.save(tmp_path / "c", F.asarray([1j]))


@every("call", [lambda: X.select_dim(2, 0), lambda: F.select_dim(F.ones(()), 0, 0), lambda: X.slice_dim(-3, (0, 1)),
                lambda: F.rollaxis(X, 2), lambda: F.rollaxis(X, 0, 4)])  # fmt: skip
def test_an_axis_that_does_not_exist_is_refused(call: Any) -> None:
    with pytest.raises(AxisError):
        call()


@every(
    ("call", "words"),
    [
        (lambda: F.mask_select(X), "mask_select: missing a required argument: 'mask'"),
        (lambda: X.slice_dim(0, 1), "slice_dim.*slice_ is 1"), (lambda: F.rollaxis(X), "rollaxis: missing"),
        (lambda: F.nanargmax(), "nanargmax: missing"),
    ],
)  # fmt: skip
def test_a_wrong_call_of_another_librarys_function_is_explained(call: Any, words: str) -> None:
    with pytest.raises(DTypeError, match=words):
        call()


@every(
    ("found", "wanted"),
    [
        (lambda: X.max_abs_dim(1), [[2.0], [4.0]]), (lambda: X.mask_select(X > 0), [1.0, 3.0, 4.0]),
        (lambda: F.max_abs(X), 4.0), (lambda: list(X.iter_dim(1))[1], [-2.0, 4.0]),
        (lambda: X.slice_fill([(0, 1), (0, 2)], 7.0), [[7.0, 7.0], [3.0, 4.0]]),
        (lambda: X.select_dim(-1, 0), [1.0, 3.0]), (lambda: X.slice_dim(1, (1, 2)), [[-2.0], [4.0]]),
        (lambda: X.split_with_sizes([1, 1], 1)[1], [[-2.0], [4.0]]),
        (lambda: X.roll_dim(1, 0), [[3.0, 4.0], [1.0, -2.0]]),
        (lambda: F.asarray([1, 0]).one_hot_fill(2, 5.0, -1.0, -1), [[-1.0, 5.0], [5.0, -1.0]]),
        (lambda: F.arange_step(5, 10, 2), [5, 7, 9]), (lambda: X.index_select(1, [1]), [[-2.0], [4.0]]),
        (lambda: X.repeat_interleave(2, 0)[1], [1.0, -2.0]),
        (lambda: F.meshgrid_stack([F.asarray([1, 2]), F.asarray([3])]), [[[1, 3]], [[2, 3]]]),
        (lambda: F.softplus_with_threshold(F.asarray([30.0]), 1.0, 20.0), [30.0]),
        (lambda: F.normalize(F.asarray([[3.0, 4.0]])), [[pytest.approx(0.6), pytest.approx(0.8)]]),
        (lambda: F.pixel_unshuffle(F.pixel_shuffle(F.ones((1, 4, 2, 2)), 2), 2).shape[1] + F.zeros(()), 4.0),
        (lambda: F.randn(2, 3).ndim + F.randn((4,)).size + F.randn(size=(3, 2)).size + F.zeros(()), 12.0),
        (lambda: F.asarray([0.0, 1.0]).categorical(3), [1, 1, 1]), (lambda: X.num_dims() + F.zeros(()), 2.0),
        (lambda: F.gelu_approximate(X) - F.gelu(X, "tanh"), [[0.0, 0.0], [0.0, 0.0]]),
    ],
)  # fmt: skip
def test_burns_and_pytorchs_functions_of_a_few_words(found: Any, wanted: Any) -> None:
    assert found().tolist() == wanted


def test_burns_names_of_backends_and_seeds() -> None:
    assert emberlet.NdArray().name == "numpy" and emberlet.Autodiff is emberlet.autodiff.Autodiff
    emberlet.seed(3)
    first = F.uniform((2,)).tolist()
    F.manual_seed(3)
    assert F.uniform((2,)).tolist() == first


# -- classes of Burn's book


def test_classes_of_the_book_are_found_and_are_no_names_of_ours() -> None:
    from importlib import import_module

    from emberlet.host.interface.elsewhere.classes import CLASSES

    for package, names in CLASSES.items():
        home = import_module(package)
        assert not set(names) & set(dir(home))
        assert all(getattr(home, name) is not None for name in names)


def test_a_device_is_a_backend() -> None:
    assert emberlet.Device.default() is emberlet.get_backend()
    assert emberlet.NdArrayDevice() is emberlet.get_backend("numpy")
    assert isinstance(X.backend, emberlet.Device) and not isinstance(X, emberlet.Device)


def test_a_device_of_wgpu_is_its_backend_alone() -> None:
    assert not isinstance(emberlet.get_backend("numpy"), emberlet.WgpuDevice)
    assert isinstance(emberlet.Wgpu(), emberlet.WgpuDevice) and not isinstance(emberlet.Wgpu(), emberlet.NdArrayDevice)
    assert repr(emberlet.WgpuDevice(2)) == "wgpu:2"


def test_the_number_of_a_device_is_never_ignored() -> None:
    assert emberlet.Device(0) is emberlet.get_backend()
    emberlet.set_default_backend("wgpu:1")
    try:
        assert repr(emberlet.Device(3)) == "wgpu:3"
        emberlet.set_default_backend("numpy")
        with pytest.raises(BackendError, match="numpy:3"):
            emberlet.Device(3)
    finally:
        emberlet.set_default_backend(None)


def test_backends_take_burn_s_parameters_of_types() -> None:
    assert emberlet.Wgpu[float, int] is emberlet.Wgpu and emberlet.NdArray[dtypes.float32] is emberlet.NdArray
    for wrong in ((int, float), (float, int, int), (dtypes.float16, int), str):
        with pytest.raises(ArgumentError, match=r"write \[float, int\]"):
            emberlet.Wgpu[wrong]


def test_a_quantizer_does_what_the_arguments_do() -> None:
    scheme = emberlet.QuantizationScheme.PerTensorAffine(emberlet.QuantizationType.QInt8)
    record = nn.Linear(6, 5).into_record()
    mine, other = (nn.Linear(6, 5).load_record(record) for _ in range(2))
    found = mine.quantize_weights(emberlet.Quantizer(calibration=emberlet.MinMaxCalibration(), scheme=scheme))
    other.quantize_weights(8, "affine", "tensor", "min-max")
    for given in ((None, scheme), (emberlet.MinMaxCalibration(), 8)):
        with pytest.raises(ArgumentError, match="Quantizer takes"):
            emberlet.Quantizer(*given)
    assert found is mine and (mine(F.ones((1, 6))) == other(F.ones((1, 6)))).all()


def test_data_are_read_and_written_as_slices() -> None:
    given = F.asarray([[1.0, 2.0], [3.0, 4.0]])
    data = given.to_data()
    assert data.as_slice().tolist() == [1.0, 2.0, 3.0, 4.0] and data.as_slice().readonly
    data.as_mut_slice()[3] = 9.0
    assert data.to_list() == [[1.0, 2.0], [3.0, 9.0]] and given[1, 1].item() == 4.0
    assert emberlet.TensorData.from_([True, False]).as_slice().tolist() == [True, False]
    for dtype in ("float16", "bfloat16", "float8_e4m3fn"):
        with pytest.raises(DTypeError, match="to_vec"):
            given.astype(dtype).to_data().as_slice()


def test_gradients_of_an_operand_that_was_broadcast() -> None:
    grad = F.reshape(F.arange(24.0), (2, 3, 4))
    for shape in ((2, 3, 4), (1, 3, 1), (4,), (3, 1), ()):
        x = F.zeros(shape).to("autodiff").require_grad()
        gradients = (F.broadcast_to(x, (2, 3, 4)) * grad.to("autodiff")).sum().backward()
        assert F.broadcast_shape(grad, shape).tolist() == x.grad(gradients).tolist()
    with pytest.raises(EmberletError):
        F.broadcast_shape(grad, (5,))
    assert F.broadcast_shape(grad, 4).tolist() == F.broadcast_shape(grad, (4,)).tolist()
    assert F.relu_backward(F.relu(X), X * 2).tolist() == [[2.0, 0.0], [6.0, 8.0]]


def test_tensors_on_one_device_and_what_kernels_are_told() -> None:
    X.assert_is_on_same_device(X.into_contiguous())
    with pytest.raises(BackendError, match="move one"):
        X.to("numpy").assert_is_on_same_device(X.to("python"))
    with pytest.raises(DTypeError, match="takes two tensors, found 3"):
        F.assert_is_on_same_device(X, 3)
    assert F.build_info([F.zeros((2, 3)), F.zeros((4, 5))]) == [2, 3, 1, 5, 1, 2, 3, 4, 5]
    with pytest.raises(ShapeError, match="one rank"):
        F.build_info([F.zeros((2, 3)), F.zeros(4)])
    drawn = F.int_random((1000,), "uniform", -3, 4, seed=1)
    assert drawn.dtype.name == "int64" and set(drawn.tolist()) == set(range(-3, 4))
    assert set(F.int_random((5000,), seed=1).tolist()) == set(range(255))


def test_a_builder_of_models_writes_what_generate_writes(tmp_path: Path) -> None:
    from emberlet import codegen

    model = str(ROOT / "examples" / "digits" / "digits.onnx")
    built = codegen.ModelGen().input(model).out_dir(tmp_path / "a").half_precision(True).run_from_script()[0]
    written = codegen.generate(model, tmp_path / "b", half=True)
    assert built.module.read_bytes() == written.module.read_bytes()
    with pytest.raises(ArgumentError, match="NamedMpk"):
        codegen.ModelGen().record_type("mpk")
    with pytest.raises(ArgumentError, match="out_dir"):
        codegen.ModelGen().input(model).run_from_script()


@every("record", ["NamedMpk", "NamedMpkGz", "PrettyJson"])
@every("half", [False, True])
def test_a_builder_of_models_writes_weights_as_a_record(record: str, half: bool, tmp_path: Path) -> None:
    from emberlet import codegen, store
    from emberlet.host.cli.model import load

    model = str(ROOT / "examples" / "digits" / "digits.onnx")
    folder = tmp_path / record / str(half)
    builder = codegen.ModelGen().input(model).out_dir(folder).half_precision(half)
    builder.record_type(getattr(codegen.RecordType, record))
    (built,) = builder.run_from_script()
    assert {path.name for path in folder.iterdir()} == {built.module.name, built.weights.name}
    assert store.open(built.weights)["fc1.weight"].dtype.name == ("float16" if half else "float32")
    image = emberlet.ones((1, 1, 8, 8))
    kind = type(load(str(built.module), "numpy").model)
    expected = codegen.load(model)(image)
    for found in (
        kind.default(),  # type: ignore[attr-defined]
        kind.from_file(built.weights),  # type: ignore[attr-defined]
        kind.from_bytes(built.weights.read_bytes()),  # type: ignore[attr-defined]
    ):
        assert abs(found(image) - expected).max().item() <= (0.05 if half else 0)
    builder.run_from_script()  # a second time, over the first
    built.module.write_text(built.module.read_text(encoding="utf-8") + "EDITED = 1\n", encoding="utf-8")
    with pytest.raises(codegen.OverwriteError, match="edited"):
        builder.run_from_script()


def test_a_record_type_needs_a_file_of_weights(tmp_path: Path) -> None:
    from emberlet import codegen

    model = str(ROOT / "examples" / "digits" / "digits.onnx")
    builder = codegen.ModelGen().input(model).out_dir(tmp_path).embed_states(True)
    with pytest.raises(ArgumentError, match="embed_states"):
        builder.record_type(codegen.RecordType.NamedMpk).run_from_script()
