"""Trained models that lie beside some checkouts do their work: digits, a sine, a face on a photograph, speech."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet import Tensor
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor

WGPU = pytest.param("wgpu", marks=pytest.mark.needs("gpu-driver"))
FAST, ALL = ["numpy", WGPU], ["numpy", "python", WGPU]

Step = Callable[[np.ndarray, Any], tuple[np.ndarray, Any]]


@pytest.fixture
def models(shared: Path) -> Path:
    """The folder of models, photographs and speech."""
    return shared / "models"


def session(model: Path) -> Any:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def both(model: Path, x: np.ndarray, backend: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(the generated code's outputs, onnxruntime's) for a model of one input."""
    run = session(model)
    found = load(model, backend)(to_tensor(x, backend))
    outputs = found if isinstance(found, tuple) else (found,)
    return [to_array(t) for t in outputs], run.run(None, {run.get_inputs()[0].name: x})


@pytest.mark.parametrize("backend", ALL)
def test_mnist_reads_handwritten_digits(models: Path, backend: str) -> None:
    image = pytest.importorskip("PIL.Image")
    written = (0, 3, 5, 7)
    pixels = np.stack([np.asarray(image.open(models / f"mnist_{d}.jpg").convert("L"), np.float32) for d in written])
    assert pixels.shape == (4, 28, 28)
    normalized = (pixels / 255 - np.float32(0.1307)) / np.float32(0.3081)

    for digit, x in zip(written, normalized, strict=True):
        (got,), (want,) = both(models / "mnist.onnx", x[None, None], backend)
        assert got.argmax() == digit
        np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize("backend", ALL)
def test_sine_follows_the_sine(models: Path, backend: str) -> None:
    x = np.linspace(0, 2 * np.pi, 63, dtype=np.float32)[:, None]
    (got,), (want,) = both(models / "sine.onnx", x, backend)
    np.testing.assert_allclose(got, want, atol=1e-4)
    np.testing.assert_allclose(got, np.sin(x), atol=0.15)  # the network itself is 0.112 off where the period ends


def overlap(box: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    width, height = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
    area = [np.prod(b[2:] - b[:2]) for b in (box, other)]
    shared = max(width, 0) * max(height, 0)
    return float(shared / (sum(area) - shared))


@pytest.mark.parametrize("backend", FAST)
def test_face_detector_finds_the_face_on_a_photograph(models: Path, backend: str) -> None:
    image, data = pytest.importorskip("PIL.Image"), pytest.importorskip("skimage.data")
    photograph = image.fromarray(data.astronaut())
    face = (
        np.array([180, 62, 268, 174]) / 512
    )  # brow to chin, as onnxruntime's best box has it, in parts of the picture
    pixels = np.asarray(photograph.resize((320, 240), image.Resampling.BILINEAR), np.float32)
    x = ((pixels - 127) / 128).transpose(2, 0, 1)[None]

    (scores, boxes), wanted = both(models / "face_rfb320.onnx", np.ascontiguousarray(x), backend)

    for got, want in zip((scores, boxes), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4)
    confidence = scores[0, :, 1]
    assert confidence.max() > 0.99
    assert overlap(boxes[0, confidence.argmax()], face) > 0.9
    assert min(overlap(box, face) for box in boxes[0, confidence > 0.7]) > 0.6, "there is one face only"


def speech(file: Path) -> np.ndarray:
    with wave.open(str(file)) as w:
        assert (w.getframerate(), w.getnchannels(), w.getsampwidth()) == (16000, 1, 2)
        return np.frombuffer(w.readframes(w.getnframes()), "<i2").astype(np.float32) / 32768


def probabilities(step: Step, samples: np.ndarray, window: int) -> np.ndarray:
    """The probability of speech in every window. Each window begins with the last eighth of the previous one, and the
    state is carried along."""
    context = window // 8
    samples = np.pad(samples, (context, -len(samples) % window))
    state: Any = np.zeros((2, 1, 128), np.float32)
    found = []
    for begin in range(0, len(samples) - context, window):
        probability, state = step(samples[None, begin : begin + context + window], state)
        found.append(probability.item())
    return np.array(found)


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("rate", [16000, 8000])
def test_voice_activity_in_every_window_of_speech(models: Path, rate: int, backend: str) -> None:
    """Each rate is a branch of the model with weights of its own; the slower one hears every second sample."""
    file = models / "silero_vad.onnx"
    run, model, device = session(file), load(file, backend), get_backend(backend)
    hertz = np.array(rate, np.int64)
    hertz_tensor = to_tensor(hertz, backend)

    def onnxruntime(x: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        probability, state = run.run(None, {"input": x, "state": state, "sr": hertz})
        return probability, state

    def generated(x: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        given = state if isinstance(state, Tensor) else to_tensor(state, backend)
        probability, state = model(to_tensor(x, backend), given, hertz_tensor)
        device.realize(probability, state)  # or a GPU would record the state's whole history
        return to_array(probability), state

    seconds = 3 if backend == "python" else 10  # plain Python takes 20 ms a window
    samples = speech(models / "speech_16k_10s.wav")[:: 16000 // rate][: seconds * rate]
    window = rate * 32 // 1000
    want, got = probabilities(onnxruntime, samples, window), probabilities(generated, samples, window)

    assert len(got) == -(-len(samples) // window)
    assert want.min() < 0.05 and want.max() > 0.95, "there is speech, and there are pauses"
    np.testing.assert_allclose(got, want, atol=1e-3)


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("rate", [16000, 8000])
def test_voice_activity_with_the_rate_frozen(models: Path, rate: int, backend: str) -> None:
    """One branch is left, so that the model is one plan where plans are made."""
    file = models / "silero_vad.onnx"
    run, model = session(file), load(file, backend, freeze={"sr": rate})
    assert [entry[0] for entry in model.INPUTS] == ["input", "state"]
    window = rate * 32 // 1000 * 9 // 8
    inputs = [np.zeros((1, window), np.float32), np.zeros((2, 1, 128), np.float32)]
    call: Any = model
    if backend != "python":
        call = model.compile(*inputs, backend=backend)
        assert call.cut is None
    samples = speech(models / "speech_16k_10s.wav")[:: 16000 // rate]
    want_state = got_state = inputs[1]
    for begin in range(0, 8 * window, window):
        x = samples[None, begin : begin + window]
        want, want_state = run.run(None, {"input": x, "state": want_state, "sr": np.array(rate)})
        got, got_state = (np.asarray(t) for t in call(x, got_state))
        np.testing.assert_allclose(got, want, atol=1e-4)
        np.testing.assert_allclose(got_state, want_state, atol=1e-3)


@pytest.mark.needs("gpu-driver")
def test_voice_activity_as_a_saved_plan_with_the_rate_frozen(models: Path, tmp_path: Path) -> None:
    from emberlet.host.cli import main
    from emberlet.wgpu_backend import plan_file

    file, plan = models / "silero_vad.onnx", tmp_path / "silero.plan"
    assert main(["compile", str(file), "--freeze", "sr=16000", "--dim", "input:1=576", "--out", str(plan)]) == 0
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((1, 576)) / 10).astype(np.float32)
    state = rng.standard_normal((2, 1, 128)).astype(np.float32)
    found = plan_file.load(str(plan)).run(x.tobytes(), state.tobytes())
    wanted = session(file).run(None, {"input": x, "state": state, "sr": np.array(16000)})
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got.to_list()), want, atol=1e-3)
