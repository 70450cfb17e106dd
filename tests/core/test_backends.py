"""The registry of backends; each backend has every primitive of the protocol."""

from __future__ import annotations

import copy
import inspect
import re
import subprocess
import sys
from pathlib import Path

import emberlet
import pytest
from emberlet import backend as registry
from emberlet.backend import Backend, available, extend, get_backend, operation, protocol, register
from emberlet.errors import BackendError, UnsupportedError
from support.backends import LoopsBackend
from support.rows import every

PRIMITIVES = [n for n, f in vars(protocol.Protocol).items() if inspect.isfunction(f) and not n.startswith("_")]


@every("primitive", PRIMITIVES)
def test_a_backend_has_every_primitive_with_the_protocols_parameters(backend, primitive):
    own = getattr(backend, primitive)
    wanted = list(inspect.signature(getattr(protocol.Protocol, primitive)).parameters)[1:]
    found = list(inspect.signature(own).parameters)
    assert found == wanted


def test_a_primitive_that_a_backend_lacks_is_named():
    class Half(protocol.Protocol):
        name = "half"

    with pytest.raises(UnsupportedError, match=r"conv .* half backend"):
        Half().conv(None, None, None, (), (), (), 1)


EVERY = ["python", "numpy", "wgpu", "wasm", "native", "autodiff:numpy", "autodiff:python", "autodiff:wasm"]


@every("name", EVERY)
def test_a_new_primitive_is_unsupported_until_a_backend_has_it(monkeypatch, name):
    monkeypatch.setattr(protocol.Protocol, "alternate", lambda self, x: self._no("alternate"), raising=False)
    backend = get_backend(name)
    with pytest.raises(UnsupportedError, match=f"alternate .* {name} backend"):
        backend.alternate(emberlet.ones((2,), backend=backend))


NEW_OPS = {
    "unary": lambda b, x, i: b.unary("new", x),
    "binary": lambda b, x, i: b.binary("new", x, x),
    "reduce": lambda b, x, i: b.reduce("new", x, (0,), False),
    "argreduce": lambda b, x, i: b.argreduce("new", x, 0, False),
    "cumulative": lambda b, x, i: b.cumulative("new", x, 0),
    "pool": lambda b, x, i: b.pool("new", b.reshape(x, (1, 1, 3)), (2,), (1,), ((0, 0),), (1,)),
    "scatter": lambda b, x, i: b.scatter(x, i, x, 0, "new"),
}


@every("name", EVERY)
def test_a_new_op_of_a_primitive_is_unsupported_until_a_backend_has_it(name):
    backend = get_backend(name)
    x = emberlet.asarray([1.0, -2.0, 3.0], backend=backend)
    index = emberlet.asarray([2, 1, 0], backend=backend)
    host = name.split(":")[-1]
    for primitive, call in NEW_OPS.items():
        op = "new" if primitive in ("unary", "binary") else f"{primitive} new"
        with pytest.raises(UnsupportedError, match=f"operation {op}.* has no kernel on .*{host}.* backend: write one"):
            pytest.fail(f"{primitive} gives {call(backend, x, index).tolist()}")


@every("primitive", ["unary", "binary"])
def test_an_op_without_a_rule_has_no_gradient(monkeypatch, primitive):
    inner = get_backend("numpy")
    monkeypatch.setattr(inner, primitive, lambda op, x, *more: x, raising=False)
    backend = get_backend("autodiff:numpy")
    x = emberlet.ones((3,), backend=backend).require_grad()
    with pytest.raises(UnsupportedError, match=r"new.* has no backward"):
        NEW_OPS[primitive](backend, x, None)


def test_backends_have_one_instance_by_any_of_their_names():
    assert get_backend("python") is get_backend("python:0")
    assert get_backend(get_backend("python")) is get_backend("python")
    assert repr(LoopsBackend(2)) == "loops:2"
    assert copy.deepcopy(get_backend("numpy")) is get_backend("numpy")


def test_a_registered_backend_is_made_once_for_each_index():
    second = get_backend("loops:2")
    assert isinstance(second, LoopsBackend) and second.index == 2
    assert get_backend("loops:2") is second
    assert get_backend("loops").index == 0
    assert get_backend("loops:0") is get_backend("loops") is not second


@pytest.mark.parametrize("name", ["cuda", "numpy:x", "", "python:-1", "python:1", "numpy:1", "loops:x", "loops:-1"])
def test_unknown_names_list_the_known_ones(name):
    with pytest.raises(BackendError, match="python"):
        get_backend(name)


def test_what_works_here_is_listed():
    assert {"python", "numpy"} <= set(available())


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(registry._OWN, "ghost", "no_such_module")
    with pytest.raises(BackendError, match="'ghost'"):
        get_backend("ghost")
    assert "ghost" not in available()


def run_without(library: str, code: str) -> str:
    """The output of `code` in a Python where `library` cannot be imported."""
    script = f"import sys; sys.modules[{library!r}] = None\nimport emberlet\n{code}"
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout.strip()


def test_without_numpy_the_python_backend_is_the_default():
    code = "x = emberlet.asarray([1.0, 2.0]); print(x.device, (x * 2).tolist(), emberlet.from_dlpack(x).tolist())"
    assert run_without("numpy", code) == "python [2.0, 4.0] [1.0, 2.0]"
    code = "print(emberlet.asarray(memoryview(b'ab')).tolist(), emberlet.backend.available())"
    found, _, names = run_without("numpy", code).partition("] ")
    assert found == "[97, 98" and "'python'" in names and "'numpy'" not in names


def test_what_needs_numpy_says_so_and_names_the_extra():
    """Every documented import, and a plan for NumPy, where NumPy is missing."""
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("## Public imports") : page.index("## Packages")]
    modules = sorted({m for m in re.findall(r"`(emberlet[\w.]*)`", table) if not m.endswith(".browser")})
    modules += ["emberlet.micro.builder", "emberlet.onnxruntime"]
    code = f"""
import importlib
def tried(work):
    try:
        work()
    except emberlet.EmberletError as error:
        assert 'install the extra "emberlet[' in str(error), error
        return 1
    return 0
named = [m for m in {modules!r} if tried(lambda: importlib.import_module(m))]
assert tried(lambda: emberlet.nn.Linear(2, 2).compile(backend="numpy"))
print(named)
"""
    found = run_without("numpy", code)
    assert "emberlet.codegen.onnx_backend" in found
    assert "emberlet.micro.builder" in found


def test_without_ml_dtypes_only_the_narrow_dtypes_are_missing_on_numpy():
    code = (
        "print(emberlet.ones((2,), dtype='float16').tolist())\n"
        "print(emberlet.ones((1,), dtype='bfloat16', backend='python').tolist())\n"
        "try: emberlet.ones((2,), dtype='bfloat16')\n"
        "except emberlet.UnsupportedError as error: print(error)"
    )
    said = run_without("ml_dtypes", code).splitlines()
    assert said[:2] == ["[1.0, 1.0]", "[1.0]"]
    assert (
        said[2]
        == "bfloat16 on backend 'numpy' needs ml_dtypes: install the extra \"emberlet[numpy]\" (docs/install.md)"
    )


def test_a_backend_registers_once():
    with pytest.raises(BackendError, match="'numpy'"):
        register("numpy", Backend)


def test_an_operation_is_added_from_outside(backend):
    class Own(type(backend)):
        name = "own"

    @extend(Own)
    def add_twice(own, x, y):
        return x + y + y

    @extend(Own, "thrice")
    def three_times(own, x):
        return x + x + x

    x = emberlet.zeros((2,), backend=Own()) + 1
    assert operation(x.backend, "add_twice")(x, x).tolist() == [3, 3]
    assert x.backend.thrice(x).tolist() == [3, 3]
    assert operation(backend, "add_twice") is None
