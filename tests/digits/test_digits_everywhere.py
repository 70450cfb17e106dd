"""One generated model gives onnxruntime's logits on every target."""

from __future__ import annotations

import demo
import numpy as np
import pytest
from targets import ALL, Kit, Target

from tools.components import require

ON_MICROPYTHON = {"unix", "unix-embedded", "armhf", "wasm", "micropython-webgpu"}
ON_A_GPU = {"wgpu", "pyodide-webgpu", "micropython-webgpu"}


@pytest.mark.parametrize("target", ALL, ids=lambda target: target.key)
def test_logits_are_onnxruntimes(target: Target, kit: Kit) -> None:
    for component in target.needs:
        require(component)
    for module in target.modules:
        pytest.importorskip(module)
    images, labels = demo.held_out(kit.count)
    expected = demo.expected(images)

    answer = target.run(kit)

    assert answer.logits.shape == expected.shape
    np.testing.assert_allclose(answer.logits, expected, rtol=0, atol=demo.TOLERANCE)
    right = (answer.logits.argmax(1) == labels).mean()
    assert right == (expected.argmax(1) == labels).mean()
    assert answer.shipped > 40_000
    assert answer.python.startswith("micropython" if target.key in ON_MICROPYTHON else "cpython")
    assert bool(answer.adapter) == (target.key in ON_A_GPU)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--images", "0"], "--images is 0, expected 1 or more"),
        (["--only", "nump"], "no target nump; there are python,"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_runs(arguments: list[str], says: str) -> None:
    with pytest.raises(SystemExit, match=says):
        demo.main(arguments)


def test_the_committed_model_is_as_good_as_the_readme_says() -> None:
    images, labels = demo.held_out(360)
    assert (demo.expected(images).argmax(1) == labels).sum() == 357


def test_the_sine_is_as_good_as_its_readme_says() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    folder = demo.HERE.parent / "sine"
    with np.load(folder / "heldout.npz") as data:
        x, y = data["x"], data["y"]
    session = onnxruntime.InferenceSession(folder / "sine.onnx", providers=["CPUExecutionProvider"])
    assert np.abs(session.run(["y"], {"x": x})[0] - y).max() < 0.0142
