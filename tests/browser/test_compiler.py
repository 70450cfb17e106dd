"""The compiler in a tab with emberlet's wheel only: ONNX to Python, and onnxruntime's API on the CPU and the GPU."""

from __future__ import annotations

import base64
import io
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from emberlet import codegen
from serve import Server

from tools.chromium import Page
from tools.paths import ROOT

MODEL = ROOT / "examples" / "digits" / "digits.onnx"
UNPACK = """async () => {
  const response = await fetch("/packages/compiler.zip");
  pyodide.unpackArchive(await response.arrayBuffer(), "zip", { extractDir: "/lib/python3.14/site-packages" });
}"""
PREPARE = """
import binascii

content = binascii.a2b_base64({content!r})
"""
GENERATE = (
    PREPARE
    + """
def test():
    from pathlib import Path
    from emberlet import codegen

    Path("digits.onnx").write_bytes(content)
    made = codegen.generate("digits.onnx", "out")
    assert made.module.read_text() == {source!r}
    assert Path("out/digits.bpk").stat().st_size == {size}
    assert "convolution" in codegen.inspect("digits.onnx")
"""
)
SESSION = (
    PREPARE
    + """
def test():
    import emberlet.onnxruntime

    emberlet.onnxruntime.install()
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    assert onnxruntime.get_available_providers() == ["WebGPUExecutionProvider", "CPUExecutionProvider"]
    image, wanted = {image!r}, {wanted!r}
    for provider in onnxruntime.get_available_providers():
        session = onnxruntime.InferenceSession(content, providers=[provider])
        assert session.get_providers()[0] == provider
        assert session._backend.name == dict(WebGPUExecutionProvider="wgpu", CPUExecutionProvider="wasm")[provider]
        (given,) = session.get_inputs()
        assert (given.name, given.type, given.shape) == ("image", "tensor(float)", ["batch", 1, 8, 8])
        for _ in range(2):
            (logits,) = session.run(None, {{"image": image}})
            assert logits.shape == (1, 10)
            assert max(abs(a - b) for a, b in zip(logits.tolist()[0], wanted)) < 1e-4
        try:
            session.run(None, {{"picture": image, "image": image}})
        except InvalidArgument as error:
            assert "Invalid input name: picture" in str(error)
        else:
            raise AssertionError("an unknown input was taken")
"""
)
CALLBACK = (
    PREPARE
    + """
async def test():
    import asyncio
    from emberlet import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["WebGPUExecutionProvider"])
    assert session.get_providers()[0] == "WebGPUExecutionProvider"
    heard = asyncio.Future()
    session.run_async(None, {{"image": {image!r}}}, lambda *told: heard.set_result(told), "mine")
    (logits,), data, error = await heard
    (again,) = await session.run_awaited(["logits"], {{"image": {image!r}}})
    assert (data, error) == ("mine", "") and logits.tolist() == again.tolist()
"""
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The digits model, the code generated from it on this machine, and onnxruntime's results."""
    made = codegen.generate(MODEL, tmp_path_factory.mktemp("generated"))
    assert made.weights is not None
    image = np.random.default_rng(0).random((1, 1, 8, 8)).round(3)
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"image": image.astype(np.float32)})
    return {
        "content": base64.b64encode(Path(MODEL).read_bytes()),
        "source": made.module.read_text(encoding="utf-8"),
        "size": made.weights.stat().st_size,
        "image": image.tolist(),
        "wanted": logits[0].tolist(),
    }


@pytest.mark.parametrize("script", [GENERATE, SESSION, CALLBACK], ids=["generate", "session", "callback"])
def test_onnx_in_a_tab(script: str, pyodide_page: Page, told: dict[str, object]) -> None:
    pyodide_page.evaluate(UNPACK)
    code = "([source, file, line, name]) => runPython(source, file, line, name)"
    failure = pyodide_page.evaluate(code, [script.format(**told), "<compiler>", 1, "test"])
    assert not failure, failure


def test_what_a_session_imports_is_bytecode(runtimes: Server) -> None:
    names: set[str] = set()
    for package in ("emberlet", "compiler"):
        with urllib.request.urlopen(f"{runtimes.url}packages/{package}.zip") as answer:
            names.update(zipfile.ZipFile(io.BytesIO(answer.read())).namelist())
    for module in ("onnxruntime/session", "codegen/generation", "wgpu_backend/wasm/kernels/nest", "tensor"):
        assert f"emberlet/{module}.pyc" in names
        assert f"emberlet/{module}.py" not in names
    assert "emberlet/functional/__pycache__/arrays.cpython-314.pyc" in names
    assert "emberlet/functional/arrays.py" in names  # errors quote declarations
    assert "emberlet/host/cli/devices.py" in names  # not imported, which makes it smaller
