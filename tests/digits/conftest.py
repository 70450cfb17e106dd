"""The digits example is importable, its model generated once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.paths import ROOT

sys.path.append(str(ROOT / "examples" / "digits"))

import demo
from targets import Kit

IMAGES = 12


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The model generated from digits.onnx, and a few held-out images."""
    folder = tmp_path_factory.mktemp("digits")
    file, embedded = demo.generate(folder)
    images, _ = demo.held_out(IMAGES)
    (folder / "images.bin").write_bytes(images.tobytes())
    (scratch := Path(folder, "scratch")).mkdir()
    return Kit(file, embedded, folder / "images.bin", IMAGES, scratch, find_heap=False)
