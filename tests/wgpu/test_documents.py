"""The code in docs/writing-a-kernel.md runs, and the files that docs/wgpu.md names exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap

import emberlet
import numpy as np
import pytest
from emberlet import dtypes
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import UnsupportedError
from emberlet.wgpu_backend import WgpuBackend
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.record.primitives import Primitives
from emberlet.wgpu_backend.wasm import WasmBackend

from tools.paths import ROOT


def test_the_kernels_of_the_guide_compute_what_they_say(gpu, make):
    text = (ROOT / "docs" / "writing-a-kernel.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    values = np.linspace(-3, 3, 50).astype(np.float32)
    x = gpu.from_list(values.tolist(), dtypes.float32, (50,))
    names = {}
    exec(blocks[0], names)  # as printed, with nothing given
    want = values / (1 + np.exp(-values))
    np.testing.assert_allclose(gpu.to_list(names["swish"](x)), want, rtol=1e-5)
    given = -np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(names["y"].item(), np.sum(given / (1 + np.exp(-given))), rtol=1e-4)
    exec(blocks[1], names)
    try:
        np.testing.assert_allclose(gpu.to_list(names["swish"](x, 2.0)), values / (1 + np.exp(-2 * values)), rtol=1e-5)
    finally:
        del WgpuBackend.swish
    host = make.of(values, dtypes.float32)
    np.testing.assert_allclose(host.backend.to_list(names["swish"](host)), want, rtol=1e-5)


def _steps_of_the_guide() -> list[tuple[str, str]]:
    """(file, code) of each numbered step under "Adding one to the library"."""
    text = (ROOT / "docs" / "writing-a-kernel.md").read_text(encoding="utf-8")
    text = text[text.index("## Adding one to the library") : text.index("### On WebAssembly")]
    steps = re.findall(r"^\d\. .*?`(wgpu_backend/[\w/.]+)`.*?```\w+\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    return [(file, textwrap.dedent(code)) for file, code in steps]


def test_an_operation_without_a_kernel_names_itself_and_the_guides_decomposition_computes_it(gpu, monkeypatch):
    guide = (ROOT / "docs" / "writing-a-kernel.md").read_text(encoding="utf-8")
    found = {}
    exec(textwrap.dedent(_steps_of_the_guide()[0][1]), found)
    monkeypatch.setattr(Primitives, "alternate", found["alternate"], raising=False)
    for backend in (gpu, get_backend("wasm")):
        x = backend.from_list([float(i * i) for i in range(12)], dtypes.float32, (3, 4))
        wide = emberlet.asarray([[2**40]], device=backend)
        for call in (
            lambda x=x: x.backend.alternate(x).tolist(),
            lambda x=x: F.negative(x.backend.alternate(F.add(x, x))).tolist(),
            lambda x=x: compile(lambda x: x.backend.alternate(x), x, backend=x.backend),
            lambda x=x: compile(lambda y: F.sum(y) + x.backend.alternate(x), x, backend=x.backend)(x),
            lambda x=wide: x.backend.alternate(x),
        ):
            with pytest.raises(UnsupportedError, match="alternate"):
                call()
    exec(textwrap.dedent(re.findall(r"### On WebAssembly.*?```python\n(.*?)```", guide, re.DOTALL)[0]), found)
    monkeypatch.setattr(WasmBackend, "alternate", found["alternate"], raising=False)
    assert x.backend.alternate(x).tolist() == [-6.0, -22.0, -38.0]


@pytest.mark.needs("symlinks")
def test_the_steps_of_the_guide_make_a_kernel_of_the_library(gpu, tmp_path):
    """Follows them literally in a copy of the packages and runs the result."""
    steps = _steps_of_the_guide()
    assert len(steps) == 4, "a kernel of the library touches four files"
    for name in ("core", "wgpu_backend"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file, code in steps:
        path = tmp_path / file
        if file.endswith("primitives.py"):
            # A method goes to the end of the class.
            path.write_text(path.read_text(encoding="utf-8").rstrip() + "\n\n" + textwrap.indent(code, "    "), "utf-8")
        elif path.exists():
            path.write_text(path.read_text(encoding="utf-8").rstrip() + "\n\n\n" + code, "utf-8")
        else:
            path.write_text(code, "utf-8")
    (tmp_path / "emberlet").symlink_to(tmp_path / "core")
    (tmp_path / "core" / "wgpu_backend").symlink_to(tmp_path / "wgpu_backend")
    script = tmp_path / "try_it.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
        "import emberlet\n"
        "from emberlet import functional as F\n"
        "from emberlet.backend import get_backend\n"
        "from emberlet.dtypes import float32\n"
        f"assert emberlet.__file__.startswith({str(tmp_path)!r}), emberlet.__file__\n"
        "gpu = get_backend('wgpu')\n"
        "x = gpu.from_list([float(i * i) for i in range(12)], float32, (3, 4))\n"
        "print(gpu.to_list(gpu.alternate(x)), gpu.to_list(F.negative(gpu.alternate(F.add(x, x)))))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "[-6.0, -22.0, -38.0] [12.0, 44.0, 76.0]"


@pytest.mark.parametrize("name", ["wgpu.md", "writing-a-kernel.md"])
def test_files_that_the_documents_name_exist(name):
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for file in re.findall(r"`([\w/]+\.(?:py|wgsl|md))`", text):
        if file in ("tiles.json", "math.wgsl") or "/alternate." in file:  # the guide's reader creates the latter
            continue
        places = [ROOT / file, ROOT / "wgpu_backend" / file, ROOT / "wgpu_backend" / "render" / file]
        assert any(p.exists() for p in places) or "NAME" in file, file
