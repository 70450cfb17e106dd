""".tflite models equal LiteRT's reference kernels byte for byte, and no file crashes the process."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from emberlet.errors import EmberletError, FormatError, ModelError, UnsupportedError
from emberlet.micro.builder.build import BuildResult, Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.quantization.sixteen import to_bytes, to_words
from support.draws import draw
from support.microcontrollers.modules import importable

from tools.microcontrollers import litert
from tools.microcontrollers.running import inputs_in_arena, outputs_of, run_program
from tools.microcontrollers.tflite_files import File, drawn
from tools.micropython import Port

Array = npt.NDArray[Any]

SEEDS, OF_A_RUN = range(240), 60

needs_litert = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="LiteRT has no wheel for this Python")


def built(data: bytes, name: str = "m") -> BuildResult:
    return build(read_graph(data, name), Options(name))


def ran(result: BuildResult, inputs: Array) -> Array:
    """The first output for each input, as bytes; the state is kept."""
    graph = result.graph
    states: dict[str, Any] = {}
    return np.array([graph.run({graph.inputs[0]: x}, states)[graph.outputs[0]].reshape(-1) for x in inputs])


def bytes_for(seed: int, shape: tuple[int, ...], count: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape)).astype(np.uint8)


def signed(x: Array) -> Array:
    return x.astype(np.int16) - 128


@needs_litert
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_models_at_random_are_exact(dtype: str, tmp_path: Path) -> None:
    models = {str(seed): drawn(seed, dtype) for seed in draw("tflite", dtype).sample(SEEDS, OF_A_RUN)}
    results = {key: built(data) for key, data in models.items()}
    inputs = {key: bytes_for(int(key), r.program.inputs[0].shape, 4) for key, r in results.items()}
    byte = 128 if dtype == "int8" else 0
    expected = litert.answers(models, {key: x.astype(np.int16) - byte for key, x in inputs.items()}, tmp_path)
    for key, result in results.items():
        kinds = [layer.kind for layer in result.graph.layers]
        assert ran(result, inputs[key]).tolist() == (expected[key].astype(int) + byte).tolist(), (key, kinds)


@needs_litert
def test_models_on_int16_are_exact(tmp_path: Path) -> None:
    """Activations of int16, weights of int8, a bias of int64: what TensorFlow's converter calls 16x8."""
    models: dict[str, bytes] = {}
    results: dict[str, BuildResult] = {}
    for seed in draw("tflite", "int16").sample(SEEDS[:80], OF_A_RUN // 2):
        data = drawn(seed, "int16")
        try:
            results[str(seed)] = built(data)
        except UnsupportedError as problem:
            assert "do not fit 32-bit words" in str(problem)
            continue
        models[str(seed)] = data
    assert len(models) > OF_A_RUN // 4
    words = {
        key: np.random.default_rng(int(key)).integers(0, 1 << 16, (4, *result.program.inputs[0].shape))
        for key, result in results.items()
    }
    expected = litert.answers(models, {key: x - 32768 for key, x in words.items()}, tmp_path)
    for key, result in results.items():
        kinds = [layer.kind for layer in result.graph.layers]
        found = to_words(ran(result, to_bytes(words[key]))) - 32768
        assert found.tolist() == expected[key].astype(int).tolist(), (key, kinds)


@pytest.mark.parametrize("seed", range(4))
def test_micropython_computes_the_same_on_int16(seed: int, unix_port: Port, tmp_path: Path) -> None:
    result = built(drawn(seed + 10, "int16"))
    x = to_bytes(np.random.default_rng(seed).integers(0, 1 << 16, result.program.inputs[0].shape))
    expected, port = ran(result, x[None])[0], result.program.outputs[0]
    for dialect in ("viper", "bytecode"):
        arena = run_program(unix_port, result.program, dialect, inputs_in_arena(result.program, [x]), tmp_path)
        assert list(arena[port.place : port.place + port.size]) == expected.tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("seed", range(8))
def test_micropython_computes_the_same(seed: int, dtype: str, unix_port: Port, tmp_path: Path) -> None:
    result = built(drawn(seed, dtype))
    x = bytes_for(seed, result.program.inputs[0].shape, 1)
    expected = ran(result, x)[0]
    for dialect in ("viper", "bytecode"):
        arena = run_program(unix_port, result.program, dialect, inputs_in_arena(result.program, [x[0]]), tmp_path)
        assert outputs_of(result.program, arena)[0].reshape(-1).tolist() == expected.tolist()


@needs_litert
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_every_softmax_is_exact(dtype: str, tmp_path: Path) -> None:
    """Rows of 2 to 249 values, scales from 0.001 to 2."""
    rng = np.random.default_rng(11)
    low, models, inputs, results = -128 if dtype == "int8" else 0, {}, {}, {}
    for key in map(str, range(80)):
        file, n = File(), int(rng.integers(2, 250))
        x = file.tensor((1, n), dtype, float(10 ** rng.uniform(-3, 0.3)), int(rng.integers(low, low + 256)))
        y = file.tensor((1, n), dtype, 1 / 256, low)
        file.inputs, file.outputs = [x], [y]
        file.operator("SOFTMAX", [x], [y], "Softmax", Beta=1.0)
        models[key] = file.written()
        results[key], inputs[key] = built(models[key]), rng.integers(0, 256, (15, n)).astype(np.uint8)
    expected = litert.answers(models, {key: x.astype(np.int16) + low for key, x in inputs.items()}, tmp_path)
    print("seed 11:", sum(x.size for x in inputs.values()), "elements")
    for key, result in results.items():
        assert ran(result, inputs[key]).tolist() == (expected[key].astype(int) - low).tolist(), key


# -- a wake word ------------------------------------------------------------------------------------------------------


def wake_words() -> list[Path]:
    spec = find_spec("pymicro_wakeword")
    folder = Path(spec.origin).parent / "models" if spec is not None and spec.origin else Path("none")
    return sorted(folder.glob("*.tflite"))


@needs_litert
@pytest.mark.skipif(not wake_words(), reason="pymicro-wakeword has no wheel for this Python")
def test_wake_words_are_exact_over_time(tmp_path: Path) -> None:
    """Models in the form of microWakeWord, which keep past input in variables."""
    models = {path.stem: path.read_bytes() for path in wake_words()}
    inputs = {}
    for key in models:
        loud = bytes_for(3, (60, 1), 1)[0].astype(float) / 255
        inputs[key] = (bytes_for(5, (3, 40), 60) * loud[:, :, None]).astype(np.uint8)
    expected = litert.answers(models, {key: signed(x) for key, x in inputs.items()}, tmp_path)
    for key, data in models.items():
        assert ran(built(data, key), inputs[key]).tolist() == expected[key].astype(int).tolist()


@pytest.mark.skipif(not wake_words(), reason="pymicro-wakeword has no wheel for this Python")
def test_a_wake_word_keeps_its_state_on_the_device(unix_port: Port, tmp_path: Path) -> None:
    result = built(wake_words()[0].read_bytes(), "wake")
    # Its states are parts of tensors, and are written where the parts are taken.
    assert not any(isinstance(layer, Keep) for layer in result.graph.layers)
    x = bytes_for(2, (120,), 8)
    expected = ran(result, x)
    script = importable(tmp_path, result) + (
        "import wake\nfound = []\n"
        "for again in range(2):\n"
        f"    for x in {[bytes(v) for v in x]!r}:\n"
        "        wake.input[:] = x\n        wake.run()\n        found.append(list(wake.output))\n"
        "    wake.reset()\nprint(found)"
    )
    found = unix_port.run(script, heap="16M", micropypath=[]).check().stdout
    assert found.strip() == str(expected.tolist() * 2)


# -- what is refused --------------------------------------------------------------------------------------------------


def test_multipliers_of_16_bits_saturate_as_in_tensorflow_lite() -> None:
    """DownScaleInt32ToInt16Multiplier in tensorflow/lite/kernels/internal/common.h."""
    from emberlet.micro.builder.quantization.doubled import quantize_multiplier
    from emberlet.micro.builder.tflite.arithmetic import _narrow

    reals = [1 - 2.0**-n for n in range(1, 32)] + np.random.default_rng(0).uniform(0.9999, 1, 100).tolist()
    for real in reals:
        wide, shift = quantize_multiplier(real)
        wanted = 32767 if wide >= 2**31 - 1 - 2**15 else (wide + 2**15) >> 16
        assert _narrow(real) == (wanted, shift)


def test_the_error_says_which_extra_reads_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'emberlet\[tflite\]'"):
        read_graph(drawn(0), "m")


def test_all_operators_that_are_not_done_are_listed() -> None:
    file = File()
    x, y, z = (file.tensor((1, 4), "int8", 0.1, 0) for _ in range(3))
    file.inputs, file.outputs = [x], [y, z]
    file.operator("FLOOR_MOD", [x, x], [y])
    file.operator("EMBEDDING_LOOKUP", [x, x], [z])
    with pytest.raises(ModelError, match=r"(?s)operator 0 \(FLOOR_MOD\).*operator 1 \(EMBEDDING_LOOKUP\)"):
        read_graph(file.written(), "m")


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(b"PK\x03\x04 an archive, by another name")
    with pytest.raises(FormatError, match="TensorFlow Lite"):
        read_graph(tmp_path / "m.tflite")


def test_damaged_files_end_in_errors_of_the_library() -> None:
    """Files with random bytes changed, truncated, or with extreme words give a graph or an EmberletError."""
    rng = np.random.default_rng(4)
    refused = 0
    for trial in range(600):
        data = bytearray(drawn(trial % 40))
        for _ in range(int(rng.integers(1, 6))):
            at = int(rng.integers(8, len(data) - 4))
            kind = int(rng.integers(4))
            if kind == 0:
                data[at] = int(rng.integers(256))
            elif kind == 1:
                word = int(rng.choice(np.array([0, 1, 2**31 - 1, 2**32 - 1, 2**16, 4])))
                data[at : at + 4] = word.to_bytes(4, "little")
            elif kind == 2:
                data[at] ^= 1 << int(rng.integers(8))
            elif len(data) > 200:
                del data[-int(rng.integers(1, 100)) :]
                at = min(at, len(data) - 5)
        try:
            built(bytes(data))
        except EmberletError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("bias", [True, False])
def test_an_input_that_is_left_out_has_the_number_minus_one(bias: bool) -> None:
    file = File()
    x, y = file.tensor((1, 4), "float32"), file.tensor((1, 3), "float32")
    weights = file.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    added = file.constant(np.array([1, 2, 3], np.float32)) if bias else -1
    file.operator("FULLY_CONNECTED", [x, weights, added], [y], "FullyConnected")
    file.inputs, file.outputs = [x], [y]
    result = build(read_graph(file.written(), "m"), Options("m", floats=True))
    (name,) = result.graph.outputs
    found = result.graph.run({result.graph.inputs[0]: np.ones(4, np.float32)})[name]
    wanted = np.arange(12).reshape(3, 4).sum(1) + (np.array([1, 2, 3]) if bias else 0)
    assert found.reshape(-1).tolist() == wanted.tolist()


@pytest.mark.parametrize("number", [-2, 3, 1 << 20])
def test_a_number_of_no_tensor_is_refused(number: int) -> None:
    file = File()
    x, y = file.tensor((1, 4), "float32"), file.tensor((1, 3), "float32")
    file.constant(np.ones((3, 4), np.float32))
    file.operator("FULLY_CONNECTED", [x, number], [y], "FullyConnected")
    file.inputs, file.outputs = [x], [y]
    with pytest.raises(EmberletError):
        read_graph(file.written(), "m")


def test_a_file_without_outputs_is_refused() -> None:
    file = File()
    x, y = (file.tensor((1, 4), "float32") for _ in range(2))
    file.operator("LOGISTIC", [x], [y])
    file.inputs = [x]
    with pytest.raises(ModelError, match=r"- the model has no outputs$"):
        read_graph(file.written(), "m")
