"""The table of functional families, what core may import, and what `import emberlet` loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module

import emberlet
import pytest
from emberlet.codegen import generate
from emberlet.names import FAMILIES
from support.rows import every

from tools.layout import device_files
from tools.paths import ROOT

FUNCTIONAL = ROOT / "core" / "functional"


def listed(family):
    methods, functions = FAMILIES[family]
    return methods.split() + functions.split()


def home(family):
    return import_module("emberlet.display" if family == "display" else f"emberlet.functional.{family}")


@every("family", FAMILIES)
def test_a_family_has_every_function_it_lists(family):
    module = home(family)
    for name in listed(family):
        assert callable(getattr(module, name, None)), f"{family} lacks {name}"
        assert emberlet.functional.__getattr__(name) is getattr(module, name)


def test_no_function_is_listed_twice_or_bears_the_name_of_a_module():
    everything = [name for family in FAMILIES for name in listed(family)]
    assert len(everything) == len(set(everything))
    modules = {f.stem for f in FUNCTIONAL.glob("*.py")} | {f.stem for f in (ROOT / "core").glob("*.py")}
    modules |= {f.name for f in (ROOT / "core").iterdir() if f.is_dir()}
    assert not set(everything) & modules


def test_names_that_do_not_exist_say_so():
    with pytest.raises(AttributeError, match="frobnicate"):
        emberlet.functional.frobnicate  # noqa: B018
    with pytest.raises(AttributeError, match="frobnicate"):
        emberlet.ones((1,)).frobnicate  # noqa: B018
    with pytest.raises(AttributeError, match="frobnicate"):
        emberlet.frobnicate  # noqa: B018


def test_importing_emberlet_loads_almost_nothing():
    code = "import sys, emberlet; print([m for m in sys.modules if m.startswith('emberlet') or m == 'numpy'])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout
    assert out.strip() == "['emberlet']"


# Modules that emberlet's core uses and that MicroPython's ports with the extra features have.
ALLOWED = {
    "array", "asyncio", "binascii", "builtins", "deflate", "errno", "gc", "hashlib", "io", "json", "math",
    "micropython", "os", "random", "re", "struct", "sys", "time", "uctypes", "zlib",
}  # fmt: skip
# Imports under a guard, for what only CPython has.
GUARDED = {
    "itertools",
    "operator",
    "threading",
    "_thread",
    "collections",
    "unicodedata",
    "typing",
    "weakref",
    "mmap",
    "re2",
    "warnings",
}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module, node


@every("file", [f for _, f in device_files() if ROOT / "core" in f.parents])
def test_core_imports_only_what_micropython_has(file):
    for module, node in imports(ast.parse(file.read_text(encoding="utf-8"))):
        top = module.split(".")[0]
        assert top in ALLOWED | GUARDED | {"emberlet"}, f"{file.name}:{node.lineno} imports {module}"
        if top in GUARDED:
            # waiting.py is loaded where a second thread waits, so there are threads.
            assert node.col_offset or file.name in ("dots.py", "waiting.py"), (
                f"{file.name}:{node.lineno} imports {module} without a guard"
            )


BLOCKED = """
import builtins
import sys

allowed = {allowed!r}
found = builtins.__import__


def blocking(name, globals=None, locals=None, fromlist=(), level=0):
    who = str((globals or {{}}).get("__name__"))
    may = sys.stdlib_module_names if who.startswith("emberlet.host") else allowed
    if who.partition(".")[0] == "emberlet" and level == 0 and name.partition(".")[0] not in ("emberlet", *may):
        raise ImportError("blocked: " + name)
    return found(name, globals, locals, fromlist, level)


builtins.__import__ = blocking
sys.path[:0] = [{folder!r}]
import emberlet
import digits
import embedded

image = emberlet.asarray([i / 64 for i in range(64)]).reshape((1, 1, 8, 8))
print(image.backend, digits.Digits.default()(image).tolist() == embedded.Embedded.default()(image).tolist())
print(emberlet.functional.uniform((2,), seed=1), emberlet.sort(image, axis=-1)[0, 0, 0, 0].item())
assert "numpy" not in sys.modules
"""


def test_a_model_runs_where_every_other_import_is_blocked(tmp_path):
    digits = ROOT / "examples" / "digits" / "digits.onnx"
    generate(digits, tmp_path)
    generate(digits, tmp_path, name="embedded", embed=True)
    script = BLOCKED.format(allowed=sorted(ALLOWED | GUARDED), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("python True\n")
