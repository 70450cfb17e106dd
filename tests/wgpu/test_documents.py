"""The code in docs/writing-a-kernel.md runs, and the files that docs/wgpu.md names exist."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.wgpu_backend import WgpuBackend

from tools.paths import ROOT


def test_the_kernels_of_the_guide_compute_what_they_say(gpu, make):
    text = (ROOT / "docs" / "writing-a-kernel.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    values = np.linspace(-3, 3, 50).astype(np.float32)
    x = gpu.from_list(values.tolist(), dtypes.float32, (50,))
    names = {"x": x}
    exec(blocks[0], names)
    want = values / (1 + np.exp(-values))
    np.testing.assert_allclose(gpu.to_list(names["swish"](x)), want, rtol=1e-5)
    np.testing.assert_allclose(names["y"].item(), np.sum(-values / (1 + np.exp(values))), rtol=1e-4)
    exec(blocks[1], names)
    try:
        np.testing.assert_allclose(gpu.to_list(names["swish"](x, 2.0)), values / (1 + np.exp(-2 * values)), rtol=1e-5)
    finally:
        del WgpuBackend.swish
    host = make.of(values, dtypes.float32)
    np.testing.assert_allclose(host.backend.to_list(names["swish"](host)), want, rtol=1e-5)


@pytest.mark.parametrize("name", ["wgpu.md", "writing-a-kernel.md"])
def test_files_that_the_documents_name_exist(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for file in re.findall(r"`([\w/]+\.(?:py|wgsl|md))`", text):
        if file in ("tiles.json", "math.wgsl"):
            continue
        places = [ROOT / file, ROOT / "wgpu_backend" / file, ROOT / "wgpu_backend" / "render" / file]
        assert any(p.exists() for p in places) or "NAME" in file, file
