"""The Python packages that the page ships: emberlet from this tree, and wgpu-py without its native half.

wgpu-py's wheel carries a native library per platform, but its API layer is plain Python: in a tab that layer is all
that is wanted, and `emberlet.wgpu_backend.browser` puts `navigator.gpu` beneath it.
"""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import sys
import tokenize
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / ".cache" / "wheels"
PYODIDE = ROOT / "web" / "node_modules" / "pyodide" / "package.json"
WGPU_VERSION = "0.32.0"  # what tests/browser runs against

# Native code and its headers, the desktop backend, and desktop toolkits.
_WGPU_LEFT_OUT = (
    "wgpu/backends/wgpu_native/",
    "wgpu/__pyinstaller/",
    "wgpu/utils/imgui/",
    "wgpu/utils/glfw_present_info.py",
)
# The modules that a plan needs on MicroPython, and those that the errors about a damaged plan need.
_PLAN_RUNTIME = {
    "emberlet": "__init__ shapes tensor_data",
    "emberlet.dtypes": "__init__",
    "emberlet.errors": "__init__ indices refusals",
    "emberlet.sizes": "__init__ arithmetic polynomial",
    "emberlet.burnpack": "__init__ cbor cbor_extended errors file parts special_types",
    "emberlet.wgpu_backend": "__init__ device plan_file saved_plan",
    "emberlet.wgpu_backend.micropython": "__init__ bridge device",
    "emberlet.wgpu_backend.plan": (
        "__init__ checks computed_index counts data filling open_ports port ports reading stored"
    ),
    "emberlet.wgpu_backend.run": "__init__ buffers caches carried open_program pipelines runtime stepwise storage",
    "emberlet.wgpu_backend.wasm": "__init__ addresses file open_program program sections",
    "emberlet.wgpu_backend.wasm.engine": "__init__ micropython probes",
}
# Files whose declarations error messages quote, from the source.
_QUOTED = ("emberlet/functional/", "emberlet/display.py")
# Where the modules lie that compiling a model may import.
_COMPILING = (
    "emberlet/codegen/",
    "emberlet/functional/",
    "emberlet/nn/",
    *(f"emberlet/wgpu_backend/{part}/" for part in "fuse kernels lower plan record render wasm/kernels".split()),
)
_NOT_COMPILING = tuple(
    f"emberlet/codegen/{part}" for part in "checkpoint_names hierarchy/ onnx_backend picture/ quantized/ states".split()
)
_TAG = "cpython-314"  # of Pyodide's bytecode in __pycache__
_SOURCES = (".py", ".wgsl", ".js", ".json")

Files = dict[str, bytes]


class PackageError(Exception):
    """A package that the page needs cannot be found or fetched."""


def is_quoted(name: str) -> bool:
    """Whether error messages quote declarations from a file."""
    return name.startswith(_QUOTED)


def emberlet_files(*, device: bool = False, compiler: bool = False) -> Files:
    """emberlet's sources under the names they are imported as: the part that models need, without the compiler.

    With `device` only those that run on MicroPython (pyproject.toml lists them); with `compiler` only the compiler.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders: dict[str, str] = project["tool"]["setuptools"]["package-dir"]
    rules: dict[str, list[str]] = project["tool"]["emberlet"]
    files: Files = {}
    for package in ("emberlet.codegen",) if compiler else ("emberlet", "emberlet.wgpu_backend"):
        folder = ROOT / folders[package]
        for path in _sources(folder):
            if not device or (_below(path, rules["device"]) and not _below(path, rules["host-only"])):
                files[package.replace(".", "/") + "/" + path.relative_to(folder).as_posix()] = path.read_bytes()
    return files


def plan_runtime_files() -> Files:
    """Those of `emberlet_files` that run a saved plan on MicroPython. Raises PackageError if one is not there."""
    files = emberlet_files(device=True)
    names = [
        f"{package.replace('.', '/')}/{module}.py"
        for package, modules in _PLAN_RUNTIME.items()
        for module in modules.split()
    ]
    if missing := [name for name in names if name not in files]:
        raise PackageError(f"{', '.join(missing)} is not among emberlet's files: name it in _PLAN_RUNTIME as it is now")
    return {name: files[name] for name in names}


def small_model_files() -> Files:
    """Those of `emberlet_files` that small networks need in plain Python on MicroPython.

    Of the functions these are the files of core/functional itself, and no backend for a GPU is among them.
    """
    return {
        name: data
        for name, data in emberlet_files(device=True).items()
        if not name.startswith("emberlet/wgpu_backend/")
        and (not name.startswith("emberlet/functional/") or name.count("/") == 2)
    }


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SOURCES and "__pycache__" not in path.parts:
            yield path


def _below(path: Path, entries: list[str]) -> bool:
    return any(path.is_relative_to(ROOT / entry) for entry in entries)


def wgpu_files() -> Files:
    """wgpu-py's plain-Python API with its license, from the installed package or else from its wheel on PyPI.

    Raises PackageError when it is neither installed in this version nor to be had with pip.
    """
    try:
        distribution = importlib.metadata.distribution("wgpu")
    except importlib.metadata.PackageNotFoundError:
        distribution = None
    if distribution is not None and distribution.version == WGPU_VERSION:
        names = [str(name) for name in distribution.files or () if _wanted(str(name))]
        return {name: Path(str(distribution.locate_file(name))).read_bytes() for name in sorted(names)}
    with zipfile.ZipFile(_wgpu_wheel()) as wheel:
        return {name: wheel.read(name) for name in sorted(wheel.namelist()) if _wanted(name)}


def _wanted(name: str) -> bool:
    if ".dist-info/" in name:
        return name.endswith("METADATA") or "LICENSE" in name
    return name.startswith("wgpu/") and name.endswith(".py") and not name.startswith(_WGPU_LEFT_OUT)


def _wgpu_wheel() -> Path:
    found = sorted(WHEELS.glob(f"wgpu-{WGPU_VERSION}-*.whl"))
    if not found:
        # Any platform's wheel does: the native part is left out.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        done = subprocess.run(
            [*command, "--dest", str(WHEELS), f"wgpu=={WGPU_VERSION}"],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
        found = sorted(WHEELS.glob(f"wgpu-{WGPU_VERSION}-*.whl"))
        if not found:
            raise PackageError(
                f"wgpu {WGPU_VERSION} is not installed and pip could not fetch it: {done.stderr.strip()}"
            )
    return found[-1]


def write_bundle(path: Path, files: Files, *, plain: bool = False) -> None:
    """Write sources as one JSON object of name: text, which MicroPython's pages fetch in one go.

    plain: without comments and docstrings.
    """
    texts = {name: data.decode() for name, data in files.items()}
    if plain:
        texts = {name: without_comments(text) if name.endswith(".py") else text for name, text in texts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")


@functools.cache  # the page and the package are built of the same files
def without_comments(source: str) -> str:
    """Python without comments and docstrings, every line where it was: tracebacks name the lines of the sources."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is None:
            continue
        text = node.body[0]
        assert text.end_lineno
        lines[text.lineno - 1 : text.end_lineno] = [""] * (text.end_lineno - text.lineno + 1)
        if len(node.body) == 1 and not isinstance(node, ast.Module):
            lines[text.lineno - 1] = " " * text.col_offset + "pass"
    comments = [
        token.start
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline)
        if token.type == tokenize.COMMENT
    ]
    for line, column in comments:
        lines[line - 1] = lines[line - 1][:column].rstrip()
    return "\n".join(lines)


def bytecode(parts: Mapping[str, Files], model: bytes) -> dict[str, Files]:
    """The packages with bytecode of the Pyodide in web/node_modules for what a session with an ONNX model imports.

    Compiling it takes most of the time between Pyodide's start and the session's first result. Bytecode is larger than
    its source, so the other files stay as they are. It takes the place of its source, without docstrings, but where
    errors quote declarations. The last results are kept in .cache. Without Node, the packages as they are.

    Raises PackageError if Pyodide does not run the session.
    """
    node = shutil.which("node")
    if not node or not PYODIDE.is_file():
        return dict(parts)
    texts = {name: data.decode() for files in parts.values() for name, data in files.items()}
    given = json.dumps(
        {
            "files": {n: (t, without_comments(t) if n.endswith(".py") else "") for n, t in texts.items()},
            "model": base64.b64encode(model).decode(),
        }
    )
    kept = _by_pyodide(node, "bytecode", given)
    found = {n: base64.b64decode(data) for n, data in json.loads(kept).items()}
    return {title: _with_bytecode(files, found) for title, files in parts.items()}


def is_kept(name: str) -> bool:
    """Whether a file is of a module that compiling some model imports: Python's memory has it from the start."""
    return name.endswith(".py") and name.startswith(_COMPILING) and not name.startswith(_NOT_COMPILING)


def memory(files: Files, model: bytes) -> bytes:
    """The memory of Pyodide's Python once it has imported and used these packages, for `_loadSnapshot` of the same
    Pyodide. files: as `bytecode` gives them, and emberlet_compile.py.

    Raises PackageError if Pyodide is missing or does not run them.
    """
    node = shutil.which("node")
    if not node or not PYODIDE.is_file():
        raise PackageError("the compiler is built by Node.js and web/node_modules/pyodide: run `npm ci` in web/")
    names = [name.replace("__pycache__/", "").split(".")[0] for name in files if name.endswith(".pyc") or is_kept(name)]

    def stripped(name: str, data: bytes) -> bytes:
        return without_comments(data.decode()).encode() if is_kept(name) and not is_quoted(name) else data

    given = json.dumps(
        {
            "files": {name: base64.b64encode(stripped(name, data)).decode() for name, data in files.items()},
            "modules": sorted({name.removesuffix("/__init__").replace("/", ".") for name in names}),
            "model": base64.b64encode(model).decode(),
        }
    )
    return _by_pyodide(node, "image", given)


def _by_pyodide(node: str, script: str, given: str) -> bytes:
    """What web/SCRIPT.mjs writes about what it is `given`. The last results are kept in .cache."""
    source = ROOT / "web" / f"{script}.mjs"
    key = hashlib.sha256(given.encode() + source.read_bytes() + PYODIDE.read_bytes()).hexdigest()
    cache = ROOT / ".cache" / script
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / key
    if not kept.is_file():
        part = kept.with_suffix(f".{os.getpid()}")
        line = [node, str(source), str(part)]
        done = subprocess.run(line, input=given, capture_output=True, text=True, check=False, encoding="utf-8")
        if done.returncode:
            raise PackageError(f"Pyodide could not compile the packages: {done.stderr.strip()}")
        for old in sorted(cache.iterdir(), key=lambda path: path.stat().st_mtime)[:-4]:
            old.unlink(missing_ok=True)
        part.replace(kept)
    return kept.read_bytes()


def _with_bytecode(files: Files, found: Files) -> Files:
    out: Files = {}
    for name, data in files.items():
        if name not in found:
            out[name] = data
        elif is_quoted(name):
            folder, _, file = name.rpartition("/")
            out[name] = data
            out[f"{folder}/__pycache__/{file[:-3]}.{_TAG}.pyc"] = found[name]
        else:
            out[name + "c"] = found[name]
    return out


def write_zip(path: Path, files: Files) -> None:
    """Write the files as a zip that is the same bytes for the same content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
