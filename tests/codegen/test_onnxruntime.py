"""emberlet.onnxruntime compared with onnxruntime: the same calls give the same results and exceptions."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import types
import warnings
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from emberlet import onnxruntime as ours
from models.index import cases
from onnx import helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as state
from support.rows import every

from tools.paths import ROOT

SMALL = """<ir_version: 8, opset_import: ["": 17], producer_name: "maker", model_version: 3, doc_string: "says">
g (float[N, 3] x, int64 k) => (float[N, 3] y, float[1] z) {
  y = Add(x, x)
  c = Cast<to = 1>(k)
  one = Constant<value_ints = [1]>()
  z = Reshape(c, one)
}"""
X, K = np.ones((2, 3), np.float32), np.array(3)
BOTH = pytest.mark.parametrize("ort", [theirs, ours], ids=["onnxruntime", "emberlet"])


def small() -> bytes:
    return bytes(onnx.parser.parse_model(SMALL).SerializeToString())


def quiet(ort: Any) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # fusing for float16 ends the process
    return options


def session(ort: Any, model: Any = None, **keywords: Any) -> Any:
    return ort.InferenceSession(small() if model is None else model, quiet(ort), **keywords)


def told(args: Any) -> list[tuple[str, str, list[Any]]]:
    return [(a.name, a.type, a.shape) for a in args]


@every("case", [*cases(contrib=False)])
def test_models_say_and_give_the_same(case):
    pair = [session(ort, str(case.model), providers=["CPUExecutionProvider"]) for ort in (theirs, ours)]
    them, us = pair
    assert told(us.get_inputs()) == told(them.get_inputs())
    assert [o[:2] for o in told(us.get_outputs())] == [o[:2] for o in told(them.get_outputs())]
    for a, b in zip(us.get_outputs(), them.get_outputs(), strict=True):
        assert len(a.shape) == len(b.shape), a.name
    for name in ("producer_name", "graph_name", "domain", "description", "version", "custom_metadata_map"):
        assert getattr(us.get_modelmeta(), name) == getattr(them.get_modelmeta(), name), name
    results = us.run(None, case.inputs())
    for got, wanted in zip(results, case.outputs().values(), strict=True):
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=case.atol)


@BOTH
def test_what_run_takes_and_gives(ort):
    made = session(ort)
    y, z = made.run(None, {"x": X, "k": K})
    assert (y == 2).all() and y.dtype == np.float32 and y.flags.writeable and z.tolist() == [3.0]
    assert [len(made.run(names, {"x": X, "k": K})) for names in ([], ("y",), ["z", "y", "z"])] == [2, 1, 3]
    assert made.run(["y"], {"x": X.tolist(), "k": K})[0].shape == (2, 3)  # a list stands for an array
    assert made.run(["y"], {"x": np.ones((3, 2), np.float32).T, "k": K})[0].shape == (2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert made.run(["y"], {"x": value, "k": K})[0].shape == (2, 3)
    (y,) = made.run_with_ort_values(["y"], {"x": value, "k": ort.OrtValue.ortvalue_from_numpy(K)})
    assert y.numpy().tolist() == [[2.0] * 3] * 2 and y.shape() == [2, 3] and y.data_type() == "tensor(float)"


@BOTH
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_scalar_input_takes_one_value_of_any_shape(ort, shape):
    made = session(ort, model("g (float[2] x, int64 k) => (float[2] y) { c = Cast<to=1>(k)  y = Mul(x, c) }"))
    (y,) = made.run(None, {"x": np.ones(2, np.float32), "k": np.full(shape, 3)})
    assert y.ravel().tolist() == [3.0, 3.0]


WRONG = {
    "an unknown output": (["q"], {"x": X, "k": K}), "a missing input": (None, {"x": X}),
    "an unknown input": (None, {"x": X, "k": K, "w": X}), "another dtype": (None, {"x": X.astype(np.float64), "k": K}),
    "another rank": (None, {"x": X[0], "k": K}), "another size": (None, {"x": np.ones((2, 4), np.float32), "k": K}),
    "a number": (None, {"x": X, "k": 3}), "a number of NumPy": (None, {"x": X, "k": np.int64(3)}),
    "nothing": (None, {"x": None, "k": K}), "a list of inputs": (None, [X, K]),
    "a text for the names": ("y", {"x": X, "k": K}),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_alike(case):
    said = []
    for ort in (theirs, ours):
        made = session(ort)
        with pytest.raises(Exception) as caught:
            made.run(*WRONG[case])
        said.append((type(caught.value).__name__, str(caught.value).split("\n")[0]))
    assert said[0][0] == said[1][0]
    if case not in ("nothing", "a text for the names"):
        assert said[0][1] == said[1][1]


def model(text: str) -> bytes:
    return bytes(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}').SerializeToString())


@pytest.mark.parametrize(
    "source",
    ["/nowhere.onnx", b"garbage", b"", 3, model("g (float[N] x) => (float[N] y) { y = Frob(x) }")],
    ids=["no file", "garbage", "empty", "a number", "an unknown operator"],
)
def test_what_is_no_model_is_refused_alike(source):
    kinds = []
    for ort in (theirs, ours):
        with pytest.raises(Exception) as caught:
            session(ort, source)
        kinds.append(type(caught.value).__name__)
    assert kinds[0] == kinds[1]


def test_the_exceptions_have_onnxruntimes_names_and_base():
    for name in ("EPFail", "EngineError", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoaded",
                 "NoModel", "NoSuchFile", "NotImplemented", "RuntimeException"):  # fmt: skip
        assert getattr(state, name).__mro__[1] is Exception
        assert issubclass(getattr(ours, name), Exception)


def test_the_options_are_onnxruntimes():
    for kind in ("SessionOptions", "RunOptions"):
        wanted, found = getattr(theirs, kind)(), getattr(ours, kind)()
        for name in dir(found):
            if name.startswith("_"):
                continue
            value = getattr(wanted, name)
            if not callable(value):
                mine = getattr(found, name)
                assert getattr(mine, "name", mine) == getattr(value, "name", value), name
    for enum in ("GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder"):
        members = {k: v.value for k, v in getattr(theirs, enum).__members__.items()}
        assert members == {m.name: m.value for m in getattr(ours, enum)}


@BOTH
@pytest.mark.parametrize("good", [True, False])
def test_run_async_calls_back(ort, good):
    called, heard = threading.Event(), []

    def callback(results, user_data, error):
        heard.append((results, user_data, error))
        called.set()

    made = session(ort)
    made.run_async(["y"], {"x": X if good else X[0], "k": K}, callback, "mine")
    assert called.wait(60)
    results, data, error = heard[0]
    assert data == "mine" and (len(results), bool(error)) == ((1, False) if good else (0, True))


@BOTH
def test_sequences_and_maps(ort):
    keys = helper.make_tensor_value_info("x", 1, [2, 2])
    out = helper.make_value_info("m", helper.make_sequence_type_proto(
        helper.make_map_type_proto(7, helper.make_tensor_type_proto(1, []))))  # fmt: skip
    zipped = helper.make_node("ZipMap", ["x"], ["m"], domain="ai.onnx.ml", classlabels_int64s=[5, 7])
    graph = helper.make_graph([zipped], "g", [keys], [out])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = session(ort, helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())
    assert told(made.get_outputs()) == [("m", "seq(map(int64,tensor(float)))", [])]
    assert made.run(None, {"x": np.array([[1, 2], [3, 4]], np.float32)}) == [[{5: 1.0, 7: 2.0}, {5: 3.0, 7: 4.0}]]
    parts = session(ort, model("g (float[4] x) => (seq(float[N]) s) { s = SplitToSequence(x) }"))
    assert parts.get_outputs()[0].type == "seq(tensor(float))"
    (found,) = parts.run(None, {"x": np.arange(4, dtype=np.float32)})
    assert isinstance(found, list) and [v.shape for v in found] == [(1,)] * 4
    joined = session(ort, model("g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence<axis = 0>(s) }"))
    assert joined.run(None, {"s": [np.ones(2, np.float32), np.zeros(1, np.float32)]})[0].tolist() == [1, 1, 0]


@BOTH
def test_texts_and_halves(ort):
    strings = session(ort, model("g (string[N] x) => (string[N] y) { y = Identity(x) }"))
    found = strings.run(None, {"x": np.array(["a", "bé"])})[0]
    assert found.dtype == object and found.tolist() == ["a", "bé"]
    halves = session(ort, model("g (float16[N] x) => (float16[N] y) { y = Add(x, x) }"))
    assert halves.run(None, {"x": np.ones(2, np.float16)})[0].dtype == np.float16


@BOTH
def test_weights_in_a_file_of_their_own(ort, tmp_path):
    w = numpy_helper.from_array(np.arange(300, dtype=np.float32), "w")
    x, y = (helper.make_tensor_value_info(n, 1, [300]) for n in "xy")
    made = helper.make_model(
        helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    )  # fmt: skip
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    for path in (str(tmp_path / "m.onnx"), tmp_path / "m.onnx"):
        assert session(ort, path).run(None, {"x": np.zeros(300, np.float32)})[0][299] == 299


def test_providers():
    assert ours.get_available_providers()[-1] == "CPUExecutionProvider"
    assert session(ours).get_providers() == ["CPUExecutionProvider"]
    with pytest.warns(UserWarning, match="Foo"):
        made = session(ours, providers=["FooProvider", ("CPUExecutionProvider", {"a": 1})])
    assert made.get_providers() == ["CPUExecutionProvider"]
    assert made.get_provider_options() == {"CPUExecutionProvider": {"a": "1"}}
    with pytest.raises(ValueError, match="sequence"):
        session(ours, providers="CPUExecutionProvider")


CPU = "CPUExecutionProvider"


@BOTH
@pytest.mark.parametrize(
    ("providers", "options"),
    [([CPU], [{}]), ((CPU,), ({},)), ([(CPU, {})], None), ([CPU], None), (None, None), ([], [])],
    ids=str,
)
def test_providers_and_options_in_each_form(ort, providers, options):
    assert session(ort, providers=providers, provider_options=options).get_providers() == [CPU]


@pytest.mark.parametrize(
    ("providers", "options"),
    [
        ([CPU], []), ([CPU], [{}, {}]), ([CPU], {}), ([CPU], 3), ([(CPU, {}, {})], None), ([(CPU,)], None),
        ([(3, {})], None), ([(CPU, 3)], None), ([3], None), ({CPU}, None), (CPU, None),
    ],
    ids=str,
)  # fmt: skip
def test_malformed_providers_and_options_are_refused(providers, options):
    with pytest.raises(ValueError, match=r"'provider"):
        session(ours, providers=providers, provider_options=options)


def test_options_reach_their_provider_and_what_is_named_twice_counts_once():
    made = session(ours, providers=[CPU], provider_options=[{"a": 1}])
    assert made.get_provider_options() == {CPU: {"a": "1"}}
    with pytest.warns(UserWarning, match="Duplicate"):
        made = session(ours, providers=[(CPU, {"a": 1}), (CPU, {"a": 2})])
    assert made.get_provider_options() == {CPU: {"a": "1"}}


def test_the_gpu_runs_a_session():
    pytest.importorskip("wgpu")
    made = session(ours, providers=["WebGPUExecutionProvider", "CPUExecutionProvider"])
    assert made.get_providers() == ["WebGPUExecutionProvider", "CPUExecutionProvider"]
    for n in (2, 5):
        y, z = made.run(None, {"x": np.full((n, 3), 4, np.float32), "k": K})
        assert (y == 8).all() and y.shape == (n, 3) and z.tolist() == [3.0]


def test_sessions_are_shared_by_threads():
    made, found = session(ours), []
    threads = [
        threading.Thread(target=lambda i=i: found.append((i, made.run(["y"], {"x": X * i, "k": K})[0][0, 0])))
        for i in range(16)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == [(i, 2.0 * i) for i in range(16)]


def test_import_onnxruntime_finds_it_after_install():
    script = (
        "import emberlet.onnxruntime as ort, sys\n"
        "ort.install(['CPUExecutionProvider'])\n"
        "ort.install(['CPUExecutionProvider'])  # again is fine\n"
        "import onnxruntime, onnxruntime as rt\n"
        "from onnxruntime import InferenceSession, SessionOptions, GraphOptimizationLevel\n"
        "from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, Fail\n"
        "from onnxruntime.capi import _pybind_state\n"
        "from onnxruntime.capi import onnxruntime_pybind11_state as state\n"
        "assert rt is ort and InferenceSession is ort.InferenceSession and rt.capi._pybind_state is _pybind_state\n"
        "assert 'OrtValue' not in vars(state) and state.OrtValue is ort.OrtValue\n"
        "assert state is _pybind_state and all(hasattr(state, name) for name in ort.__all__)\n"
        "with __import__('warnings').catch_warnings(action='error'):\n"
        f"    s = InferenceSession({small()!r}, providers=['CUDAExecutionProvider'])\n"
        "print(s.get_providers(), rt.__version__)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "['CPUExecutionProvider'] 1.32.0\n"


def test_install_comes_first():
    with pytest.raises(ImportError, match="is imported already"):
        ours.install()


def test_everything_onnxruntime_exports_is_here_or_named_in_the_docs():
    page = (ROOT / "docs" / "onnxruntime.md").read_text(encoding="utf-8")
    names = [n for n in dir(theirs) if n[0] != "_" and not isinstance(getattr(theirs, n), types.ModuleType)]
    missing = [n for n in names if not hasattr(ours, n) and f"`{n}`" not in page]
    compared = re.search(r"compared with onnxruntime (\d+)\.(\d+)", page)
    assert compared is not None
    if tuple(int(p) for p in theirs.__version__.split(".")[:2]) > tuple(int(p) for p in compared.groups()):
        warnings.warn(f"docs/onnxruntime.md does not know onnxruntime {theirs.__version__}: {missing}", stacklevel=1)
    else:
        assert missing == []


def test_the_cpu_takes_over_where_no_gpu_opens():
    pytest.importorskip("wgpu")
    script = (
        "import numpy as np, warnings\n"
        "from emberlet import onnxruntime\n"
        "from emberlet.wgpu_backend import native\n"
        "native.adapters = lambda wgpu: []\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        f"    s = onnxruntime.InferenceSession({small()!r}, providers=['WebGPUExecutionProvider'])\n"
        "y, z = s.run(None, {'x': np.ones((2, 3), np.float32), 'k': np.array(3)})\n"
        "print(s.get_providers(), y.shape, told[0].message)\n"
    )
    command = [sys.executable, "-W", "always", "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == (
        "['CPUExecutionProvider'] (2, 3) WebGPUExecutionProvider is not available (there is no GPU adapter 0; the "
        "machine has 0); CPUExecutionProvider runs the model\n"
    )


@BOTH
def test_other_providers_can_be_set_later(ort):
    made = session(ort)
    made.set_providers(["CPUExecutionProvider"])
    assert made.run(["y"], {"x": X, "k": K})[0].shape == (2, 3)
