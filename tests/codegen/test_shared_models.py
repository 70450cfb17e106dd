"""Trained real models detect a face and speech and read digits, with onnxruntime's results."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from support.onnx_models import expected


def session(model: Path) -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    return onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])


def run(model: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    out = model(*(to_tensor(x, "numpy") for x in inputs))
    return [to_array(o) for o in (out if isinstance(out, tuple) else (out,))]


@pytest.mark.parametrize("digit", [0, 3, 5, 7])
def test_handwritten_digits_are_read(shared: Path, digit: int) -> None:
    image = (
        pytest.importorskip("PIL.Image").open(shared / "models" / f"mnist_{digit}.jpg").convert("L").resize((28, 28))
    )
    x = ((np.asarray(image, np.float32) / 255 - 0.1307) / 0.3081).reshape(1, 1, 28, 28)

    (logits,) = run(load(shared / "models" / "mnist.onnx", "numpy"), x)

    np.testing.assert_allclose(logits, expected(shared / "models" / "mnist.onnx", {"input.1": x})[0], atol=1e-4)
    assert logits.argmax() == digit


def test_the_sine_is_followed(shared: Path) -> None:
    x = np.linspace(0, 2 * np.pi, 50, dtype=np.float32).reshape(50, 1, 1)
    model = load(shared / "models" / "sine.onnx", "numpy")
    got = np.array([run(model, v)[0].item() for v in x])
    assert np.abs(got - np.sin(x.ravel())).max() < 0.2


def test_the_face_on_the_photograph_is_found(shared: Path) -> None:
    data = pytest.importorskip("skimage.data")
    image = pytest.importorskip("PIL.Image").fromarray(data.astronaut()).resize((320, 240))
    x = (((np.asarray(image, np.float32) - 127) / 128).transpose(2, 0, 1))[None]
    file = shared / "models" / "face_rfb320.onnx"

    scores, boxes = run(load(file, "numpy"), np.ascontiguousarray(x))

    want_scores, want_boxes = expected(file, {"input": np.ascontiguousarray(x)})
    np.testing.assert_allclose(scores, want_scores, atol=1e-4)
    np.testing.assert_allclose(boxes, want_boxes, atol=1e-4)
    best = scores[0, :, 1].argmax()
    assert scores[0, best, 1] > 0.99
    left, top, right, bottom = boxes[0, best] * 512  # the astronaut's face, in pixels of the photograph
    assert 160 < left < 215 and 60 < top < 130 and 225 < right < 290 and 150 < bottom < 215


def test_speech_is_heard_in_every_window(shared: Path) -> None:
    """Ten seconds in windows of 512 samples, 64 samples before each, and the state carried along."""
    with wave.open(str(shared / "models" / "speech_16k_10s.wav")) as sound:
        assert sound.getframerate() == 16000
        samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float32) / 32768
    file = shared / "models" / "silero_vad.onnx"
    model, other = load(file, "numpy"), session(file)
    state = other_state = np.zeros((2, 1, 128), np.float32)
    context, rate = np.zeros(64, np.float32), np.array(16000)
    heard = []
    for i in range(len(samples) // 512):
        window = samples[512 * i : 512 * (i + 1)]
        x = np.concatenate([context, window])[None]
        probability, state = run(model, x, state, rate)
        want, other_state = other.run(None, {"input": x, "state": other_state, "sr": rate})
        assert abs(probability.item() - want.item()) < 1e-3, f"window {i}"
        heard.append(probability.item())
        context = window[-64:]
    assert len(heard) == 312
    assert max(heard) > 0.9 and min(heard) < 0.1
