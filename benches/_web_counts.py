"""Memory growth over a thousand inferences, and how many ONNX cases and test models pass in WebAssembly."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

from _browser_peers import ROOT

KINDS = {"wgpu": "MicroPython's Wasm, WebGPU", "wasm": "a compiled `.wasm` file"}


def growth(page: Any) -> list[str]:
    """A table, from benches/web/growth.html."""
    lines = [
        "## A thousand inferences",
        "",
        "digits: what the tab holds after 1,000 inferences and after 1,000 more, workers and Wasm included, and GPU",
        "buffers that were created and not destroyed.",
        "",
        "| device | bytes before | after | GPU buffers before | after |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind, name in KINDS.items():
        told = page.evaluate("(kind) => grow(kind)", kind, timeout=240000)
        before, after = told["before"], told["after"]
        lines.append(
            f"| {name} | {before['bytes']:,} | {after['bytes']:,} | {before['buffers']} | {after['buffers']} |"
        )
        print(f"  {name}: {before} {after}", flush=True)
    return lines


def cases() -> list[str]:
    """A table: ONNX's node cases and the test models in WebAssembly; other backends' counts from docs/operators.md."""
    lines = [
        "## ONNX's cases",
        "",
        "ONNX's node cases and the models of `tests/models` that pass. The cases in WebAssembly were run now, in",
        "wasmtime; the others' counts are those of [docs/operators.md](../../docs/operators.md).",
        "",
        "| backend | cases | models |",
        "|---|---:|---:|",
    ]
    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    known = dict(re.findall(r"^\| (numpy|python|wgpu) \| (\d+ of \d+) \|$", page, re.M))
    said = _run("-m", "tests.conformance.report", "--backends", "wasm", "--count")
    known["wasm"] = re.findall(r"wasm: (\d+ of \d+) pass", said)[0]
    for backend, passed in known.items():
        lines.append(f"| {backend} | {passed} | {_models(backend)} |")
    return lines


def _models(backend: str) -> str:
    """The number of test models whose outputs are onnxruntime's."""
    tests = "tests/models/test_generated_models.py"
    said = _run("-m", "pytest", "-n0", "-p", "no:cacheprovider", tests, "-k", f"{backend} and not compiled")
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed|skipped|error)", said)}
    passed = counts.get("passed", 0)
    return f"{passed} of {passed + counts.get('failed', 0) + counts.get('skipped', 0) + counts.get('error', 0)}"


def _run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    return done.stdout + done.stderr
