"""Assemble the page in web/dist: a static site that any web server can serve, with nothing fetched from elsewhere.

python3 web/build_page.py            builds web/dist
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from packages import ROOT, PackageError, emberlet_files, wgpu_files, write_bundle, write_zip

WEB = Path(__file__).resolve().parent
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
MICROPYTHON = ("micropython.mjs", "micropython.wasm")
RUNTIMES = {
    "pyodide": tuple(f"node_modules/pyodide/{name}" for name in PYODIDE),
    "micropython": (
        "interpreter.mjs",
        *(f"node_modules/@micropython/micropython-webassembly-pyscript/{name}" for name in MICROPYTHON),
    ),
}

DIGITS = ROOT / "examples" / "digits"
EXAMPLES = 6  # of each digit


class BuildError(Exception):
    """Something the page is made of is missing; says what, and how to get it."""


def build(target: Path) -> Path:
    """Assemble the site in `target`, copying only what changed; returns it.

    Raises:
        BuildError: A runtime, a package or the model is missing.
    """
    target.mkdir(parents=True, exist_ok=True)
    build_runtimes(target)
    build_packages(target / "packages")
    facts = build_model(target / "model")
    for source in sorted((WEB / "page").iterdir()):
        folder = target / "model" if source.suffix == ".py" else target
        refresh(source, folder / source.name)
    sizes = {
        path.relative_to(target).as_posix(): path.stat().st_size for path in sorted(target.rglob("*")) if path.is_file()
    }
    (target / "manifest.json").write_text(json.dumps({**facts, "files": sizes}))
    return target


def build_runtimes(target: Path) -> None:
    """Pyodide and MicroPython's Wasm, from web/node_modules, each in a folder of its name."""
    for name in RUNTIMES:
        build_runtime(name, target / name)


def build_runtime(name: str, folder: Path) -> None:
    """The files of one of RUNTIMES."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in RUNTIMES[name]:
        source = WEB / file
        if not source.is_file():
            raise BuildError(f"{source.relative_to(ROOT)} is missing: run `npm ci` in web/")
        refresh(source, folder / source.name)


def build_packages(target: Path) -> None:
    """emberlet and wgpu-py as zips for Pyodide, and emberlet as one JSON of its files for MicroPython."""
    try:
        write_zip(target / "wgpu.zip", wgpu_files())
    except PackageError as error:
        raise BuildError(str(error)) from error
    write_zip(target / "emberlet.zip", emberlet_files())
    write_bundle(target / "emberlet.json", emberlet_files(device=True))


def build_model(target: Path) -> dict[str, Any]:
    """Generate the digits model; returns what the page tells of it, and examples among the images it was not taught.

    Raises:
        BuildError: The packages that generate it are not installed.
    """
    try:
        import emberlet
        import numpy as np
        from emberlet.codegen import generate

        generated = generate(DIGITS / "digits.onnx", target)
    except ImportError as error:
        raise BuildError(
            f"the model is generated with emberlet[onnx,numpy], which is not installed: {error}"
        ) from error
    spec = importlib.util.spec_from_file_location("digits_of_the_page", generated.module)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Digits.from_file(generated.weights, backend="numpy")
    with np.load(DIGITS / "heldout.npz") as data:
        images, labels = data["images"], data["labels"]
    said = np.array(model(emberlet.asarray(images[:, None].astype(np.float32) / 16, backend="numpy")).tolist()).argmax(
        1
    )
    chosen = [np.flatnonzero(labels == digit)[:EXAMPLES] for digit in range(10)]
    return {
        "parameters": model.num_params(),
        "accuracy": f"{(said == labels).sum()} of {len(labels)}",
        "examples": [images[of_digit].reshape(-1, 64).tolist() for of_digit in chosen],
    }


def refresh(source: Path, target: Path) -> None:
    """Copy where size or time differ; a copy keeps its source's time."""
    old, new = source.stat(), target.stat() if target.exists() else None
    if new is None or (new.st_size, int(new.st_mtime)) != (old.st_size, int(old.st_mtime)):
        shutil.copy2(source, target)


def main() -> int:
    parser = argparse.ArgumentParser(description="Assemble emberlet's page as a static site.")
    parser.add_argument("--out", type=Path, default=WEB / "dist", help="folder to write (default web/dist)")
    try:
        print(build(parser.parse_args().out))
    except BuildError as error:
        print(f"cannot build the page: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
