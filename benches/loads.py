"""Models loaded, run and released again and again in one tab: what the tab holds, and GPU buffers that stay.

Chromium with SwiftShader's WebGPU; the digits model as a WebAssembly module, as a plan on the GPU and as an ONNX file,
which the package's worker compiles anew each time. Writes benches/results/loads.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import _browser_peers

KINDS = (
    ("a compiled `.wasm` file", "wasm", 200),
    ("a plan, on WebGPU under MicroPython", "wgpu", 60),
    ("an ONNX file, compiled for WebAssembly", "onnx", 20),
    ("an ONNX file, compiled for WebGPU", "onnx_wgpu", 20),
)
# Machine code of functions that run often is counted as memory of the page, too.
COMPILERS = "sparkplug maglev turbofan wasm-tier-up wasm-dynamic-tiering lazy-feedback-allocation"
WITHOUT_COMPILERS = f"--js-flags={' '.join(f'--no-{name}' for name in COMPILERS.split())}"


def main(argv: list[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    import build_package
    import build_page

    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        site, folder = Path(temporary, "site"), Path(temporary, "work")
        site.mkdir()
        build_package.build_package(site / "emberlet")
        build_page.build_model(folder)
        (folder / "digits.onnx").write_bytes((_browser_peers.ROOT / "examples/digits/digits.onnx").read_bytes())
        for more, kinds, flags in (("", KINDS, ()), (", compilers off", KINDS[:2], (WITHOUT_COMPILERS,))):
            with _browser_peers.opened("growth.html", site, folder, flags=flags) as (browser, page):
                version = browser.version
                for name, kind, loads in kinds:
                    rows.append(f"| {name}{more} | {loads} | {measured(page, kind, loads)} |")
                    print(rows[-1], flush=True)
    lines = [
        "# Loads in one tab",
        "",
        f"Written by `python3 dev.py bench loads`, Chromium {version} with SwiftShader. The digits model is loaded,",
        "run and released, from a file that was fetched once: what the tab holds after these loads and after as many",
        "more, workers included, the memory of Wasm not, and GPU buffers that were created and not destroyed. Browsers",
        "compile what runs often to faster machine code, which counts, too; *compilers off*: in a Chromium that does",
        "not.",
        "",
        "| model | loads | bytes before | after | GPU buffers before | after |",
        "|---|---:|---:|---:|---:|---:|",
        *rows,
    ]
    _browser_peers.write("loads.md", "\n".join(lines) + "\n")
    return 0


def measured(page: Any, kind: str, loads: int) -> str:
    """The cells of a row: bytes before and after, then buffers."""
    told = page.evaluate("([kind, loads]) => load(kind, loads)", [kind, loads], timeout=600000)
    before, after = told["before"], told["after"]
    return f"{before['bytes']:,} | {after['bytes']:,} | {before['buffers']} | {after['buffers']}"


if __name__ == "__main__":
    sys.exit(main())
