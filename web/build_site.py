"""Put your own model on your own page: a folder of static files, for any web server.

python3 dev.py site MODEL.onnx --out out/site      installs what it needs first
python3 web/build_site.py MODEL.onnx --out out/site

examples/own_page/README.md describes the folder.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

from build_package import build_modules
from build_page import BuildError, refresh
from packages import ROOT

PAGE = ROOT / "examples" / "own_page" / "index.html"
FALLBACK = ', { fallback: "model.wasm" }'  # in the page, where there is such a file


def build(model: Path, out: Path, dims: Sequence[str] = (), weights: str = "float32") -> int:
    """Write `out`/model.plan, `out`/emberlet/ and, where there is none yet, `out`/index.html; returns an exit status.

    `out`/model.wasm, for browsers without WebGPU, is written where the model can be compiled to WebAssembly; otherwise
    one sentence says why not. model: what `emberlet compile` takes, or a plan, which is for the GPU only. dims: its
    --dim, "NAME=N" each. weights: its --weights.

    Raises:
        BuildError: A runtime or a package is missing, a .plan file is not a plan, or `dims` are given with a plan.
    """
    if model.suffix == ".plan":
        check_plan(model, dims)
    out.mkdir(parents=True, exist_ok=True)
    plan, module = out / "model.plan", out / "model.wasm"
    module.unlink(missing_ok=True)
    if model.suffix == ".plan":
        refresh(model, plan)
    elif status := compile_plan(model, plan, dims, weights):
        return status
    elif compile_plan(model, module, dims, weights):
        print("the site has no model.wasm: visitors need WebGPU", file=sys.stderr)
    build_modules(out / "emberlet")
    if not (out / "index.html").exists():
        page = PAGE.read_text(encoding="utf-8")
        if not module.exists():
            page = page.replace(FALLBACK, "")
        (out / "index.html").write_text(page, encoding="utf-8", newline="\n")
    return 0


def check_plan(plan: Path, dims: Sequence[str]) -> None:
    """Raises BuildError if the file is not a plan, or if `dims` are given."""
    from emberlet.burnpack import Burnpack
    from emberlet.errors import EmberletError
    from emberlet.wgpu_backend.plan.data import KEY

    if dims:
        raise BuildError(f"{plan} is a plan already, of fixed sizes; --dim needs the model")
    try:
        known = KEY in Burnpack.from_file(str(plan)).metadata
    except EmberletError as error:
        raise BuildError(f"not a plan: {error}") from error
    if not known:
        raise BuildError(f"{plan} is a burnpack, but not a plan; `emberlet compile` makes a plan from the model")


def compile_plan(model: Path, plan: Path, dims: Sequence[str], weights: str = "float32") -> int:
    """Run `emberlet compile`, which reports errors on stderr; returns its exit status."""
    try:
        from emberlet.host.cli import main as emberlet
    except ImportError as error:
        raise BuildError(f"making a plan needs emberlet, which is not installed (docs/install.md): {error}") from error
    return emberlet(
        ["compile", str(model), "--out", str(plan), "--weights", weights, *(f"--dim={dim}" for dim in dims)]
    )


def sizes(out: Path) -> str:
    """A table of the files that a visitor downloads."""
    files = [out / "index.html", out / "model.plan", *sorted((out / "emberlet").iterdir())]
    found = [(file.read_bytes(), file.relative_to(out).as_posix()) for file in files]
    module = out / "model.wasm"
    rows = [(len(data), len(gzip.compress(data, 9, mtime=0)), name) for data, name in found]
    rows.append((sum(row[0] for row in rows), sum(row[1] for row in rows), "in all"))
    if module.exists():  # which is loaded instead, without MicroPython
        data = module.read_bytes()
        rows.append((len(data), len(gzip.compress(data, 9, mtime=0)), "without WebGPU instead: model.wasm"))
    lines = [f"{size:>10,} {small:>10,}  {name}" for size, small, name in rows]
    return "\n".join([f"{'bytes':>10} {'gzipped':>10}", *lines])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="dev.py site",
        description="A folder that runs one model on a page, on WebGPU or, without a GPU, in WebAssembly.",
    )
    parser.add_argument("model", type=Path, help="an ONNX file, a generated module (.py), or a plan")
    parser.add_argument("--out", type=Path, default=Path("out/site"), help="folder to write (default out/site)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a size the model leaves open")
    parser.add_argument(
        "--weights", choices=("float32", "float16", "q8"), default="float32", help="how the files store large weights"
    )
    options = parser.parse_args(arguments)
    try:
        status = build(options.model, options.out, options.dim, options.weights)
    except (BuildError, OSError) as error:
        said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
        print(f"cannot build the site: {said}", file=sys.stderr)
        return 1
    if status == 0:
        print(sizes(options.out))
        print(f"\nto see it: python3 -m http.server --directory {options.out} --bind localhost 8000")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
