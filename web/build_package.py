"""emberlet-web, the npm package: JavaScript that runs saved plans, with MicroPython's Wasm and emberlet's plan runtime.

python3 dev.py web --pack       writes emberlet-web-VERSION.tgz
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path

from build_page import DIGITS, WEB, BuildError, build_runtime, graph, refresh
from compiler_image import write_image
from packages import (
    ROOT,
    PackageError,
    bytecode,
    emberlet_files,
    memory,
    plan_runtime_files,
    without_comments,
)

PACKAGE = WEB / "package"
MODULES = tuple(
    "emberlet adapter arrays arriving compiling download either errors faster images kept kinds lengths models "
    "onnx onnxruntime options ports sizes sources steps tensors thread threads wasm watch".split()
)
TYPES = ("emberlet", "onnxruntime", "wasm")
OF_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
SCRIPT = "emberlet_compile.py"
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT")
OF_MICROPYTHON = ("micropython.mjs", "micropython.wasm")
NODE_PARTS = (
    (r'const\{createRequire:createRequire\}=await import\("module"\);(var require)=.*?\(import\.meta\.url\)', r"\1"),
    (r"if\((globalThis\.loadMicroPython=loadMicroPython),.*?\}\(\)\}(?=class PyProxy\{)", r"\1;"),
)
"""(pattern, replacement) of what micropython.mjs does only under Node.js"""


def build_modules(folder: Path) -> None:
    """Write the modules that a page imports to `folder`: emberlet.mjs and everything that it loads. Raises
    BuildError."""
    build_runtime("micropython", folder)
    script = folder / "micropython.mjs"
    script.write_text(for_browsers(script.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    for name in MODULES:
        refresh(PACKAGE / f"{name}.mjs", folder / f"{name}.mjs")
    for name in TYPES:
        refresh(PACKAGE / f"{name}.d.mts", folder / f"{name}.d.mts")
    write_changed(folder / "python.mjs", python_module())
    write_changed(folder / "version.mjs", f'export const version = "{version()}";\n')


def build_compiler(folder: Path) -> None:
    """Write the worker that compiles ONNX files to `folder`: Pyodide, and emberlet with its compiler. Raises
    BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    pyodide = WEB / "node_modules" / "pyodide"
    for name in (*OF_PYODIDE, "pyodide-lock.json"):
        if not (pyodide / name).is_file():
            raise BuildError(f"web/node_modules/pyodide/{name} is missing: run `npm ci` in web/")
    for name in OF_PYODIDE:
        refresh(pyodide / name, folder / name)
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    own = json.dumps({"info": lock["info"], "packages": {}})  # none of Pyodide's packages is needed
    write_changed(folder / "lock.mjs", f"export const lockFileContents = {json.dumps(own)};\n")
    refresh(PACKAGE / "compiler" / "worker.mjs", folder / "worker.mjs")
    model = (DIGITS / "digits.onnx").read_bytes()
    script = {SCRIPT: (PACKAGE / "compiler" / SCRIPT).read_bytes()}
    try:
        parts = bytecode({"emberlet": emberlet_files(), "compiler": emberlet_files(compiler=True)}, model)
        files = parts["emberlet"] | parts["compiler"] | script
        image = memory(files, model)
    except PackageError as error:
        raise BuildError(str(error)) from error
    write_image(folder / "compiler.bin", files, image, (pyodide / "pyodide.asm.wasm").read_bytes())


def build_package(folder: Path) -> str:
    """Write the package's folder, as npm unpacks it; returns its version. Raises BuildError."""
    build_modules(folder)
    build_compiler(folder / "compiler")
    manifest = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    manifest["version"] = version()
    manifest["files"] = sorted(path.name for path in folder.iterdir() if path.suffix in (".mjs", ".mts", ".wasm"))
    manifest["files"].append("compiler")
    write_changed(folder / "package.json", json.dumps(manifest, indent=2) + "\n")
    refresh(PACKAGE / "README.md", folder / "README.md")
    for name in LICENSES:
        refresh(ROOT / name, folder / name)
    return version()


def pack(out: Path, folder: Path) -> Path:
    """Write emberlet-web-VERSION.tgz to the folder `out`, from the package built in `folder`; returns its path.

    The same sources give the same bytes. Raises BuildError.
    """
    archive = out / f"emberlet-web-{build_package(folder)}.tgz"
    out.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"package/{path.relative_to(folder).as_posix()}")
            entry.size = path.stat().st_size
            entry.mode = 0o644
            entry.mtime = 499162500  # as npm does
            tar.addfile(entry, io.BytesIO(path.read_bytes()))
    archive.write_bytes(gzip.compress(content.getvalue(), 9, mtime=0))
    return archive


def sizes(folder: Path) -> tuple[int, int]:
    """The gzipped bytes that a page with a plan loads: our own code, and MicroPython."""

    def total(names: Iterable[str]) -> int:
        return sum(len(gzip.compress((folder / name).read_bytes(), 9, mtime=0)) for name in names)

    return total(graph(folder / "emberlet.mjs", folder)), total(OF_MICROPYTHON)


def for_browsers(script: str) -> str:
    """MicroPython's JavaScript without its parts for Node.js, which bundlers refuse: imports of Node's modules, and an
    `await` at the top level, which a worker in Vite's default format may not have. Raises BuildError if the parts are
    not where they were."""
    for pattern, browser in NODE_PARTS:
        script, found = re.subn(pattern, browser, script, flags=re.S)
        if found != 1:
            raise BuildError(f"micropython.mjs has {found} parts for Node.js of the form {pattern!r}, expected 1")
    return script


def version() -> str:
    """emberlet's version."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "core" / "__init__.py").read_text(encoding="utf-8"), re.M)
    assert found
    return found[1]


def python_module() -> str:
    """The Python that runs plans, as a module: name -> source, without comments and docstrings. Raises
    BuildError if a file of it is missing."""
    try:
        files = {name: data.decode() for name, data in plan_runtime_files().items()}
    except PackageError as error:
        raise BuildError(str(error)) from error
    files["emberlet_web.py"] = (PACKAGE / "emberlet_web.py").read_text(encoding="utf-8")
    texts = [f"{json.dumps(name)}:{template(without_comments(source))}" for name, source in files.items()]
    return f"export default {{{','.join(texts)}}};\n"


def template(text: str) -> str:
    """The template literal of JavaScript with this text: fewer escapes, and so smaller, than a string of JSON."""
    return "`" + re.sub(r"\\|`|\$\{", r"\\\g<0>", text) + "`"


def write_changed(path: Path, text: str) -> None:
    """Write a file unless it holds this text already."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8", newline="\n")
