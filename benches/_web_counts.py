"""Memory growth over a thousand inferences."""

from __future__ import annotations

from typing import Any

KINDS = {"wgpu": "MicroPython's Wasm, WebGPU", "wasm": "a compiled `.wasm` file"}


def growth(page: Any) -> list[str]:
    """A table, from benches/web/growth.html."""
    lines = [
        "## A thousand inferences",
        "",
        "digits: what the tab holds after 1,000 inferences and after 1,000 more, workers included and the memory of",
        "WebAssembly left out, as the browser counts; and GPU buffers that were created and not destroyed.",
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
