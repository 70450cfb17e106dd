"""Assemble the page in web/dist: a static site that any web server can serve, with nothing fetched from elsewhere.

python3 web/build_page.py            builds web/dist
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from packages import (
    ROOT,
    PackageError,
    bytecode,
    emberlet_files,
    small_model_files,
    wgpu_files,
    write_bundle,
    write_zip,
)

WEB = Path(__file__).resolve().parent
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
MICROPYTHON = ("micropython.mjs", "micropython.wasm")
RUNTIMES = {
    "pyodide": tuple(f"node_modules/pyodide/{name}" for name in PYODIDE),
    "micropython": (
        "package/interpreter.mjs",
        "package/download.mjs",
        "package/errors.mjs",
        *(f"node_modules/@micropython/micropython-webassembly-pyscript/{name}" for name in MICROPYTHON),
    ),
}

DIGITS = ROOT / "examples" / "digits"
EXAMPLES = 6  # of each digit
# npm packages of benches/web that the benchmark page compares with.
PEERS = {
    "onnxruntime-web": (
        "onnxruntime-web/dist/ort.webgpu.bundle.min.mjs",
        "onnxruntime-web/dist/ort-wasm-simd-threaded.asyncify.*",
    ),
    "jax-js": ("@jax-js/jax/dist/*.js",),
}
EXAMPLE_MODELS = (
    DIGITS / "digits.onnx",
    ROOT / "examples" / "micro_wake_word" / "wake_word.onnx",
    ROOT / "examples" / "micro_accelerometer" / "accelerometer.onnx",
    ROOT / "examples" / "sine" / "sine.onnx",
)
SERVICE_WORKER = "service_worker.mjs"
WORKER = "worker.mjs"


class BuildError(Exception):
    """A part of the page is missing; the message says which, and how to get it."""


def build(target: Path, demos: bool = False) -> Path:
    """Assemble the site in `target`, copying only what changed; returns it.

    demos: whether with the models of the three demos, whose packages are fetched where they are missing; without them,
    and where they cannot be fetched, the pages of the demos say that they are not there.

    Raises:
        BuildError: A runtime, a package or the model is missing.
    """
    target.mkdir(parents=True, exist_ok=True)
    from build_package import build_modules  # which builds on this file

    build_runtime("pyodide", target / "pyodide")
    build_modules(target / "emberlet")
    build_packages(target / "packages")
    facts = build_model(target / "model")
    build_benchmark(target)
    build_training(target / "training")
    if demos:
        from build_demos import build_demos

        if missing := build_demos(target / "demos"):
            print(f"the page has no demos: {missing}", file=sys.stderr)
    (target / "examples").mkdir(exist_ok=True)
    for source in (*EXAMPLE_MODELS, target / "model" / "digits.plan", target / "model" / "digits.wasm"):
        refresh(source, target / "examples" / source.name)
    for source in (
        *(WEB / "package" / f"{name}.mjs" for name in ("download", "errors")),
        *sorted((WEB / "page").iterdir()),
    ):
        if source.name in (SERVICE_WORKER, WORKER):
            continue  # written below
        folder = target / "model" if source.suffix == ".py" else target
        refresh(source, folder / source.name)
    for page in sorted(target.glob("*.html")):
        rewrite(page, preloaded(page.read_text(encoding="utf-8"), target))
    worker = (WEB / "page" / WORKER).read_text(encoding="utf-8")
    runs = [*sorted(target.glob("run_*_micropython.mjs")), target / "run_in_pyodide.mjs"]
    ahead = {f"./{path.name}": graph(path, target) for path in runs}
    rewrite(target / WORKER, worker.replace("const AHEAD = {};", f"const AHEAD = {json.dumps(ahead)};"))
    sizes = {
        path.relative_to(target).as_posix(): path.stat().st_size
        for path in sorted(target.rglob("*"))
        if path.is_file() and path.name not in (SERVICE_WORKER, "manifest.json")
    }
    (target / "manifest.json").write_text(json.dumps({**facts, "files": sizes}), encoding="utf-8")
    write_service_worker(target)
    return target


def graph(module: Path, target: Path) -> list[str]:
    """A module and all that it imports when it is loaded, as addresses from `target`."""
    found = [module.resolve()]
    for path in found:
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'^(?:import|export)\b[^"\n]*"(\./[^"]+)";|^} from "(\./[^"]+)";', text, re.M):
            other = (path.parent / (name[0] or name[1])).resolve()
            if other not in found:
                found.append(other)
    return [f"./{path.relative_to(target.resolve()).as_posix()}" for path in found]


def preloaded(html: str, target: Path) -> str:
    """A page that requests all its modules at once, instead of each after the module that imports it has arrived."""
    for line in re.findall(r'^ *<link rel="modulepreload".*\n', html, re.M):
        html = html.replace(line, "")
    scripts = re.findall(r'^( *)(<script type="module"(?: async)? src="([^"]+)"></script>)\n', html, re.M)
    asked = [name for _, _, name in scripts]
    for indent, script, name in scripts:
        others = [other for other in (found[2:] for found in graph(target / name, target)) if other not in asked]
        asked += others
        links = [f'{indent}<link rel="modulepreload" href="{other}" />\n' for other in others]
        html = html.replace(indent + script, "".join(links) + indent + script)
    return html


def rewrite(path: Path, text: str) -> None:
    """Write a file unless it holds this text."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8", newline="\n")


def build_benchmark(target: Path) -> None:
    """The benchmark page's plans, and the other engines where they are installed; the page says if they are missing."""
    import numpy as np
    from emberlet import asarray
    from emberlet.wgpu_backend import plan_file

    (target / "bench").mkdir(exist_ok=True)
    for n in (128, 512):
        x = asarray(np.zeros((n, n), np.float32), backend="numpy")
        plan_file.save(str(target / "bench" / f"matmul{n}.plan"), lambda p, q: p @ q, x, x, inputs=["p", "q"])
    for name, files in PEERS.items():
        found = [
            path for pattern in files for path in sorted((ROOT / "benches" / "web" / "node_modules").glob(pattern))
        ]
        for source in found:
            (target / "peers" / name).mkdir(parents=True, exist_ok=True)
            refresh(source, target / "peers" / name / source.name)


def build_training(target: Path) -> None:
    """What the page of training loads: the plans of a step and of its network, and the images."""
    import emberlet
    import numpy as np
    from emberlet import nn, optim
    from emberlet.functional import cross_entropy, relu
    from emberlet.wgpu_backend import plan_file

    target.mkdir(exist_ok=True)
    with np.load(DIGITS / "heldout.npz") as data:
        images, labels = data["images"].reshape(-1, 64), data["labels"]
    (target / "digits.json").write_text(
        json.dumps({"images": images.tolist(), "labels": labels.tolist()}), encoding="utf-8"
    )
    emberlet.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 64, backend="numpy"), nn.Relu(), nn.Linear(64, 10, backend="numpy"))
    step = model.compile_step(lambda model, x, y: cross_entropy(model(x), y), optim.AdamConfig().init())
    plan_file.save(str(target / "step.plan"), step, np.zeros((30, 64), np.float32), np.zeros(30, np.int64))
    weights = {name: param.val().inner() for name, param in model.named_params()}
    plan_file.save(
        str(target / "network.plan"),
        lambda x, a, b, c, d: relu(x @ a + b) @ c + d,
        emberlet.asarray(np.zeros((len(images) - 270, 64), np.float32), backend="numpy"),
        *weights.values(),
        inputs=["images", *weights],
    )


def write_service_worker(target: Path) -> None:
    """Give the service worker the list of the site's files with the hashes of their contents."""
    template = (WEB / "page" / SERVICE_WORKER).read_text(encoding="utf-8")
    hashes = {
        path.relative_to(target).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(target.rglob("*"))
        if path.is_file() and path.name != SERVICE_WORKER and not is_kept_by_load(path)
    }
    text = template.replace("const FILES = {};", f"const FILES = {json.dumps(hashes)};")
    (target / SERVICE_WORKER).write_text(text, encoding="utf-8", newline="\n")


def is_kept_by_load(path: Path) -> bool:
    """Whether it is a model of a demo: `load` of the package keeps those that run."""
    return path.parent.name == "demos" and path.suffix in (".plan", ".wasm")


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
    module = webgpu_module(name)
    if not (folder / "webgpu.mjs").is_file() or (folder / "webgpu.mjs").read_text(encoding="utf-8") != module:
        (folder / "webgpu.mjs").write_text(module, encoding="utf-8", newline="\n")


def webgpu_module(runtime: str) -> str:
    """The JavaScript that Python calls for the GPU, as a module, since a strict content security policy forbids
    eval."""
    if runtime == "pyodide":
        script = (ROOT / "wgpu_backend" / "browser" / "bridge.js").read_text(encoding="utf-8")
    else:
        tree = ast.parse((ROOT / "wgpu_backend" / "micropython" / "script.py").read_text(encoding="utf-8"))
        (script,) = (ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign))
    comments, expression = script.split("(() => {", 1)
    return f"{comments}export default (() => {{{expression}"


def build_packages(target: Path) -> None:
    """emberlet, its compiler and wgpu-py as zips for Pyodide; for MicroPython emberlet as one JSON of its files, and a
    smaller one with the files that the digits model needs."""
    try:
        write_zip(target / "wgpu.zip", wgpu_files())
        parts = {"emberlet": emberlet_files(), "compiler": emberlet_files(compiler=True)}
        for name, files in bytecode(parts, (DIGITS / "digits.onnx").read_bytes()).items():
            write_zip(target / f"{name}.zip", files)
    except PackageError as error:
        raise BuildError(str(error)) from error
    write_bundle(target / "emberlet.json", emberlet_files(device=True), plain=True)
    write_bundle(target / "digits.json", small_model_files(), plain=True)


def build_model(target: Path) -> dict[str, Any]:
    """Generate the digits model; returns the facts that the page shows of it, and examples among the held-out images.

    Raises:
        BuildError: The packages that generate it are not installed.
    """
    try:
        import emberlet
        import numpy as np
        from emberlet.codegen import generate
        from emberlet.wgpu_backend import plan_file

        generated = generate(DIGITS / "digits.onnx", target)
    except ImportError as error:
        raise BuildError(
            f'generating the model needs emberlet with its extra "emberlet[numpy]" (docs/install.md): {error}'
        ) from error
    spec = importlib.util.spec_from_file_location("digits_of_the_page", generated.module)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Digits.from_file(generated.weights, backend="numpy")
    image = emberlet.zeros((1, 1, 8, 8), backend="numpy")
    for kind in ("plan", "wasm"):
        plan_file.save(str(target / f"digits.{kind}"), model, image, inputs=["image"], outputs=["logits"])
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
        print(build(parser.parse_args().out, demos=True))
    except BuildError as error:
        print(f"cannot build the page: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
