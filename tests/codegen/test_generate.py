"""`generate` writes a module and a burnpack that run, for every way to store weights."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.burnpack import Burnpack
from emberlet.codegen import generate, load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import ModelError
from onnx import numpy_helper
from onnx.external_data_helper import convert_model_to_external_data
from support.onnx_models import assert_same, expected, parse, source

from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
SINE = ROOT / "examples" / "sine" / "sine.onnx"
RANDOM = np.random.default_rng(7)
INPUTS = {
    "digits": {"image": RANDOM.random((3, 1, 8, 8), dtype=np.float32)},
    "sine": {"x": RANDOM.random((5, 1), dtype=np.float32)},
    "mnist": {"input.1": RANDOM.random((1, 1, 28, 28), dtype=np.float32)},
}


@pytest.fixture(params=["digits", "sine", "mnist"])
def example(request: pytest.FixtureRequest) -> Path:
    """Trained models: two that are committed, and Burn's, which only some checkouts have."""
    if request.param == "mnist":
        return Path(request.getfixturevalue("shared")) / "models" / "mnist.onnx"
    return DIGITS if request.param == "digits" else SINE


def imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def results(model: Any, inputs: dict[str, np.ndarray], backend: str) -> list[np.ndarray]:
    out = model(*(to_tensor(v, backend) for v in inputs.values()))
    return [to_array(r) for r in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize("backend", ["numpy", "python"])
@pytest.mark.parametrize("embed", [False, True], ids=["file", "embedded"])
def test_the_written_module_gives_onnxruntimes_outputs(
    example: Path, embed: bool, backend: str, tmp_path: Path
) -> None:
    if (example.stem, backend) == ("mnist", "python"):
        pytest.skip("its 364,000 weights take plain Python seconds; digits has the same layers")
    made = generate(example, tmp_path, embed=embed)

    model = getattr(imported(made.module), made.class_name).default(backend)

    assert (made.weights is None) == embed
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == sorted(
        p.name for p in (made.module, made.weights) if p is not None
    )
    inputs = INPUTS[example.stem]
    assert_same(results(model, inputs, backend), expected(example, inputs), atol=1e-4)


def test_every_way_of_construction_gives_the_same(tmp_path: Path) -> None:
    made, embedded = generate(DIGITS, tmp_path), generate(DIGITS, tmp_path, name="embedded", embed=True)
    assert made.weights is not None
    plain, carrying = imported(made.module).Digits, imported(embedded.module).Embedded
    empty = plain("numpy")
    empty.load_file(made.weights)
    models = [
        empty,
        plain.default("numpy"),
        plain.from_file(str(made.weights), "numpy"),
        plain.from_bytes(made.weights.read_bytes(), "numpy"),
        carrying.from_embedded("numpy"),
        carrying.default("numpy"),
        load(DIGITS, "numpy"),
    ]

    outputs = [results(m, INPUTS["digits"], "numpy")[0] for m in models]

    assert all((o == outputs[0]).all() for o in outputs)


def test_embedded_weights_are_used_in_place(tmp_path: Path) -> None:
    made = generate(DIGITS, tmp_path, embed=True)
    cls = imported(made.module).Digits
    model = cls.from_embedded("numpy")
    begin = np.frombuffer(cls.EMBEDDED, np.uint8).ctypes.data
    for _, param in model.named_params():
        at = param.val().data.ctypes.data
        assert begin <= at < begin + len(cls.EMBEDDED)
        assert at % 4 == 0
        assert (at - begin) % 256 == 0


def test_half_stores_half_and_computes_at_full_width(tmp_path: Path) -> None:
    whole = generate(DIGITS, tmp_path)
    made = generate(DIGITS, tmp_path, name="small", half=True)
    assert whole.weights is not None and made.weights is not None
    pack = Burnpack.from_file(made.weights)
    model = imported(made.module).Small.default("numpy")

    assert {e.dtype.name for e in pack.tensors.values()} == {"float16"}
    assert made.weights.stat().st_size < 0.6 * whole.weights.stat().st_size
    assert {p.dtype.name for _, p in model.named_params()} == {"float32"}
    assert_same(results(model, INPUTS["digits"], "numpy"), expected(DIGITS, INPUTS["digits"]), atol=0.05)


def test_the_same_model_gives_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    model = ROOT / "tests" / "models" / "transformer_decoder" / "model.onnx"
    code = "import sys; from emberlet.codegen import generate; generate(sys.argv[1], sys.argv[2])"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, model, tmp_path / seed], env=environment, check=True)
    for name in ("model.py", "model.bpk"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_a_name_becomes_that_of_the_class_the_module_and_the_burnpack(tmp_path: Path) -> None:
    made = generate(SINE, tmp_path, name="wave-maker 2")
    assert (made.class_name, made.module.name) == ("WaveMaker2", "wave_maker_2.py")
    assert made.weights is not None and made.weights.name == "wave_maker_2.bpk"
    assert imported(made.module).WaveMaker2.default("numpy").num_params() == 321


@pytest.mark.parametrize("name", ["model", "class", "None", "9lives", "…", "F", "import os; os.abort()"])
def test_any_name_makes_a_class_that_can_be_used(name: str, tmp_path: Path) -> None:
    made = generate(SINE, tmp_path, name=name)
    assert made.module.stem.isidentifier() and made.class_name.isidentifier()
    assert_same(
        results(getattr(imported(made.module), made.class_name).default("numpy"), INPUTS["sine"], "numpy"),
        expected(SINE, INPUTS["sine"]),
    )


def test_the_burnpack_says_who_made_the_model(tmp_path: Path) -> None:
    made = generate(DIGITS, tmp_path)
    assert made.weights is not None
    metadata = Burnpack.from_file(made.weights).metadata
    assert metadata["generator"] == "emberlet" and metadata["model"] == "digits"
    assert metadata["producer"].startswith("pytorch ")


def test_external_data_is_read_where_it_lies(tmp_path: Path) -> None:
    model = onnx.load(DIGITS)
    convert_model_to_external_data(model, location="digits.data", size_threshold=64)
    (tmp_path / "in").mkdir()
    onnx.save(model, tmp_path / "in" / "digits.onnx")

    made, usual = generate(tmp_path / "in" / "digits.onnx", tmp_path), generate(DIGITS, tmp_path / "usual")

    assert (tmp_path / "in" / "digits.data").stat().st_size > 30_000
    assert made.weights is not None and usual.weights is not None
    assert made.weights.read_bytes() == usual.weights.read_bytes()
    assert made.module.read_text(encoding="utf-8") == usual.module.read_text(encoding="utf-8")


def test_external_data_of_a_model_without_a_folder_is_refused() -> None:
    model = onnx.load(DIGITS)
    convert_model_to_external_data(model, location="digits.data", size_threshold=64)
    for t in model.graph.initializer:
        if t.external_data:
            t.ClearField("raw_data")
            t.data_location = onnx.TensorProto.EXTERNAL
    with pytest.raises(ModelError, match="give the model's path, not its bytes"):
        load(model.SerializeToString())


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = parse("g (float[2] x) => (float[2] y) { z = NoSuch(x)  y = NorThis(z) }")
    with pytest.raises(ModelError, match="2 problems"):
        generate(bad, tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("embed", [False, True])
def test_weights_that_cannot_be_read_leave_nothing_behind(tmp_path: Path, embed: bool) -> None:
    model = onnx.load(DIGITS)
    convert_model_to_external_data(model, location="digits.data", size_threshold=64)
    (tmp_path / "in").mkdir()
    onnx.save(model, tmp_path / "in" / "digits.onnx")

    from emberlet.codegen import weights

    def fails(*arguments: object) -> None:
        raise OSError("the disk is gone")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="the disk is gone"):
        patch.setattr(weights, "dumps" if embed else "save", fails)
        generate(tmp_path / "in" / "digits.onnx", tmp_path / "out" / "deep", embed=embed)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of file sizes are set as Linux does")
@pytest.mark.parametrize("embed", [False, True], ids=["file", "embedded"])
@pytest.mark.parametrize("limit", [1000, 20_000])
def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path, embed: bool, limit: int) -> None:
    code = f"""
import resource, signal, sys
from emberlet.codegen import generate
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
generate(sys.argv[1], sys.argv[2], embed={embed})
"""
    command = [sys.executable, "-B", "-c", code, str(DIGITS), str(tmp_path / "out" / "deep")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 1 and "OSError: [Errno 27] File too large" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("before", [True, False], ids=["replaced", "new"])
def test_a_module_that_cannot_be_put_in_place_takes_its_burnpack_back(tmp_path: Path, before: bool) -> None:
    if before:
        generate(SINE, tmp_path)
        (tmp_path / "sine.bpk").write_bytes(b"older")
    files = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    real = os.replace

    def refuses(source: Any, target: Any, **folders: Any) -> None:
        if Path(target).name == "sine.py" and not str(source).endswith(".before"):
            raise PermissionError("not there")
        real(source, target, **folders)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(PermissionError, match="not there"):
        patch.setattr(os, "replace", refuses)
        generate(SINE, tmp_path, force=True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == files


@pytest.mark.parametrize("name", ["sine.py", "sine.bpk"])
def test_a_folder_where_a_file_should_be_is_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "precious").touch()
    with pytest.raises(IsADirectoryError, match=name):
        generate(SINE, tmp_path)
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")] == [name, name + "/precious"]


def test_what_was_there_stays_when_a_model_is_refused(tmp_path: Path) -> None:
    made = generate(SINE, tmp_path)
    assert made.weights is not None
    before = made.module.read_bytes(), made.weights.read_bytes()
    with pytest.raises(ModelError):
        generate(parse("g (float[2] x) => (float[2] y) { y = NoSuch(x) }"), tmp_path, name="sine")
    assert (made.module.read_bytes(), made.weights.read_bytes()) == before


def test_an_empty_graph_passes_its_inputs_through() -> None:
    model = parse("g (float[N, 4] x, int64[2] y) => (int64[2] y, float[N, 4] x) { }")
    x, y = RANDOM.random((3, 4), dtype=np.float32), np.array([5, 6])
    out = load(model, "numpy")(to_tensor(x, "numpy"), to_tensor(y, "numpy"))
    assert_same([to_array(o) for o in out], [y, x])
    assert "return y, x" in source(model)


def test_unused_inputs_and_repeated_outputs_keep_their_places() -> None:
    model = parse("g (float[2] unused, float[2] x, float[2] idle) => (float[2] y, float[2] x) { y = Neg(x) }")
    arrays = [RANDOM.random(2, dtype=np.float32) for _ in range(3)]
    out = load(model, "numpy")(*(to_tensor(a, "numpy") for a in arrays))
    assert "def forward(self, unused, x, idle):" in source(model)
    assert_same([to_array(o) for o in out], [-arrays[1], arrays[1]])


def test_names_that_meet_are_numbered_alike_in_the_code_and_the_burnpack(tmp_path: Path) -> None:
    """Three values whose names map to one identifier, and a field that would hide a method."""
    w = [RANDOM.random(40, dtype=np.float32) for _ in range(4)]
    model = parse(
        """g (float[40] x) => (float[40] y) {
            a = Add(x, w1)  b = Mul(a, w2)  c = Sub(b, w3)  y = Add(c, w4)
        }"""
    )
    names = ["w.1", "w-1", "w 1", "forward"]
    for node, name in zip(model.graph.node, names, strict=True):
        node.input[1] = name
    model.graph.initializer.extend(numpy_helper.from_array(v, n) for v, n in zip(w, names, strict=True))
    made = generate(model, tmp_path, name="meeting")
    assert made.weights is not None

    text, pack = made.module.read_text(encoding="utf-8"), Burnpack.from_file(made.weights)

    assert sorted(pack.tensors) == ["forward_", "w_1", "w_1_2", "w_1_3"]
    assert all(f"self.{n} = nn.Param.zeros((40,)" in text for n in pack.tensors)
    x = RANDOM.random(40, dtype=np.float32)
    model = imported(made.module).Meeting.default("numpy")
    assert_same(results(model, {"x": x}, "numpy"), [(x + w[0]) * w[1] - w[2] + w[3]])


def test_large_values_are_released_after_their_last_use() -> None:
    text = source(
        parse(
            """g (float[64, 512] left, float[64, 512] right) => (float[64, 512] y) {
                p = Sin(left)  q = Cos(right)  r = Mul(p, q)  s = Tanh(r)  t = Add(s, left)  y = Exp(t)
            }"""
        )
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[lines.index("x = x * y") + 1] == "del y"


def test_a_fill_stays_a_fill_unless_it_is_a_layers_weight(tmp_path: Path) -> None:
    model = parse(
        """g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] y)
        <int64[4] shape = {3, 2, 3, 3}, int64[4] wide = {1, 3, 3, 3}> {
            w = ConstantOfShape<value = float[1] {0.25}>(shape)
            b = ConstantOfShape<value = float[1] {7.0}>(wide)
            c = Conv(x, w)
            d = Sin(b)
            y = Add(c, d)
        }"""
    )
    made = generate(model, tmp_path, name="filled")
    assert made.weights is not None
    tensors = Burnpack.from_file(made.weights).tensors
    assert [(n, e.shape) for n, e in tensors.items()] == [("conv1.weight", (3, 2, 3, 3))]
    x = RANDOM.random((1, 2, 5, 5), dtype=np.float32)
    filled = imported(made.module).Filled.default("numpy")
    assert_same(results(filled, {"x": x}, "numpy"), expected(model, {"x": x}))


@pytest.mark.parametrize(
    "kind",
    [
        name
        for name in ("INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT6E2M3", "FLOAT6E3M2", "BFLOAT16", "BOOL", "UINT8")
        if hasattr(onnx.TensorProto, name)  # onnx has 6-bit floats from 1.23 on
    ],
)
def test_weights_of_every_width_travel_by_burnpack(kind: str, tmp_path: Path) -> None:
    count = 77
    t = onnx.helper.make_tensor("w", getattr(onnx.TensorProto, kind), [count], [1, 0, 1, 1, 0, 1, 1] * 11)
    node = onnx.helper.make_node("Cast", ["w"], ["f"], to=onnx.TensorProto.FLOAT)
    add = onnx.helper.make_node("Add", ["x", "f"], ["y"])
    info = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [count]) for n in "xy"]
    graph = onnx.helper.make_graph([node, add], "g", info[:1], info[1:], [t])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    made = generate(model, tmp_path, name="narrow", passes=["dead"])
    assert made.weights is not None
    x = np.zeros(count, np.float32)
    narrow = imported(made.module).Narrow.default("numpy")
    assert_same(results(narrow, {"x": x}, "numpy"), [np.array([1, 0, 1, 1, 0, 1, 1] * 11, np.float32)])
    assert made.weights.stat().st_size < 1024


def test_weights_are_held_one_at_a_time(tmp_path: Path) -> None:
    """Thirty external tensors of 1 MB each, written with the memory of a few."""
    count, size = 30, 1 << 18
    with open(tmp_path / "big.data", "wb") as data:
        for i in range(count):
            data.write(np.full(size, i, np.float32).tobytes())
    text = "x0 = Identity(x)\n" + "\n".join(f"x{i + 1} = Add(x{i}, w{i})" for i in range(count))
    model = parse(f"g (float[{size}] x) => (float[{size}] x{count}) {{ {text} }}")
    for i in range(count):
        t = model.graph.initializer.add(name=f"w{i}", data_type=1, dims=[size])
        t.data_location = onnx.TensorProto.EXTERNAL
        for key, value in {"location": "big.data", "offset": str(4 * size * i), "length": str(4 * size)}.items():
            t.external_data.add(key=key, value=value)
    onnx.save(model, tmp_path / "big.onnx")
    generate(SINE, tmp_path)  # imports what it needs

    tracemalloc.start()
    made = generate(tmp_path / "big.onnx", tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert made.weights is not None and made.weights.stat().st_size > 4 * size * count
    assert peak < 4 * 4 * size
