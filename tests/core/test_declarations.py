"""Every function of the functional layer is as it is declared: name, docstring, overriding, one backend for all
operands; and the files generated from the declarations are up to date."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from typing import Any

import emberlet
import pytest
from emberlet import functional as F
from emberlet.backend import get_backend
from emberlet.errors import BackendError
from emberlet.host.interface import stubs
from emberlet.host.interface.declarations import Declaration, DeclarationError, read
from emberlet.python_backend import PythonBackend
from support.every_backend import WGPU
from support.rows import every

DECLARED = [d for d in read() if d.kind != "operator"]
OVERRIDABLE = [d for d in DECLARED if d.overridable]
# Parameters that are read as numbers, or put in a list, wherever they live.
ANYWHERE = {("split_to_sequence", "split"), ("sequence_insert", "x")}
SEVERAL = [(d, name) for d in DECLARED for name in d.tensors()[1:] if (d.name, name) not in ANYWHERE]


def of(declarations):
    return every("d", declarations)


def test_what_is_generated_is_up_to_date():
    assert not stubs.outdated(), "run python3 dev.py check --fix"


def test_checking_what_is_generated_writes_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(stubs, "CORE", tmp_path / "core")
    current, old = tmp_path / "current.pyi", tmp_path / "old.pyi"
    current.write_text("current", encoding="utf-8")
    old.write_text("old", encoding="utf-8")
    monkeypatch.setattr(stubs, "FILES", {current: lambda: "current", old: lambda: "new"})
    assert stubs.main(["--check"]) == 1
    assert old.read_text(encoding="utf-8") == "old"
    assert capsys.readouterr().out == "old.pyi is out of date\n"
    assert stubs.main() == 0
    assert old.read_text(encoding="utf-8") == "new"
    assert capsys.readouterr().out == "old.pyi is written anew\n"
    assert stubs.main(["--check"]) == 0


def test_a_function_without_its_declaration_is_not_public():
    assert {d.name for d in DECLARED} == {n for n in dir(F) if not n.startswith("_")}
    assert len({d.name for d in DECLARED}) == len(DECLARED)


@of(DECLARED)
def test_a_public_function_names_itself_and_says_what_it_does(d):
    function = getattr(F, d.name)
    assert function.__name__ == d.name
    assert (function.__doc__ or "").strip(), f"{d.name} says nothing about itself"
    assert inspect.signature(function)
    assert d.name in pydoc.render_doc(function, renderer=pydoc.plaintext)
    if d.kind == "method":
        assert getattr(emberlet.Tensor, d.name) is function


def test_dir_shows_the_public_names():
    code = "import emberlet; print(*dir(emberlet)); print(*dir(emberlet.functional)); print(*dir(emberlet.Tensor))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout
    package, functional, tensor = (set(line.split()) for line in out.splitlines())
    names = {d.name for d in DECLARED}
    assert names <= functional
    assert names | {"Tensor", "Module", "float32", "ShapeError", "nn", "pi", "get_backend"} <= package
    assert {d.name for d in DECLARED if d.kind == "method"} | {"T", "from_data"} <= tensor
    assert not {"lookup", "_HOMES", "tensor"} & package
    for name in package - {"codegen", "micro", "wgpu_backend"}:
        getattr(emberlet, name)


def test_help_lists_the_functions():
    said = pydoc.render_doc(F, renderer=pydoc.plaintext)
    assert "softmax(x, axis=-1)" in said
    assert "softmax(x, axis=-1)" in pydoc.render_doc(emberlet.Tensor, renderer=pydoc.plaintext)


# -- overriding ------------------------------------------------------------------------------------------------------


def backend_with(name: str, function: Any, base: type = PythonBackend) -> Any:
    return type("OwnBackend", (base,), {name: function})()


# Arguments for functions that check before they ask an override; x is 2×3×3 floats.
ARGUMENTS = {
    "batch_norm": lambda x: (x, x[0, :2, 0][[0, 1, 1]], x[0, :, 0]),
    "clip": lambda x: (x, 0.0, 1.0),
    "conv_transpose": lambda x: (x, x[:1].reshape((3, 1, 3))),
    "det": lambda x: (x,),
    "dft": lambda x: (x[:, :, :1],),
    "layer_norm": lambda x: (x, x[0, 0]),
    "linear": lambda x: (x, x[0]),
    "rms_norm": lambda x: (x, x[0, 0]),
    "tensor_scatter": lambda x: (x, x[:, :1]),
}


@of(OVERRIDABLE)
def test_an_override_is_asked(d):
    """By every route: the function, its name in the package, the method."""
    seen = []

    def own(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(args)
        return args[0]

    backend = backend_with(d.name, own)
    x = emberlet.asarray([[[1.0, 0.5, 2.0]] * 3] * 2, backend=backend)
    args = ARGUMENTS[d.name](x) if d.name in ARGUMENTS else (x,)
    asked = [getattr(F, d.name), getattr(emberlet, d.name)]
    asked += [getattr(emberlet.Tensor, d.name)] if d.kind == "method" else []
    for call in asked:
        call(*args)
        assert seen.pop()[0].backend is backend


@pytest.mark.parametrize(
    ("name", "caller"),
    [("softplus", "mish"), ("sigmoid", "silu"), ("softmax", "attention"), ("mean", "global_avg_pool"), ("elu", "selu")],
)
def test_an_override_is_asked_from_within_composites(name, caller):
    seen = []

    def own(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return getattr(F, name)(x, *args, **kwargs)  # an override may call what it overrides

    base = get_backend("python")
    backend = backend_with(name, own)
    x = emberlet.asarray([[[1.0, -0.5, 2.0]] * 3] * 2, backend=backend)
    args = (x, x, x) if caller == "attention" else (x,)
    found = getattr(F, caller)(*args, **({"num_heads": 1} if caller == "attention" else {}))
    assert seen
    plain = [emberlet.asarray(a.tolist(), backend=base) for a in args]
    expected = getattr(F, caller)(*plain, **({"num_heads": 1} if caller == "attention" else {}))
    assert F.all_close(emberlet.asarray(found.tolist()), emberlet.asarray(expected.tolist()), rtol=1e-6).item()


def test_clip_asks_with_tensors_for_bounds_too():
    seen = []
    backend = backend_with("clip", lambda self, x, low, high: seen.append((low, high)) or x)
    x = emberlet.asarray([1.0, 2.0], backend=backend)
    F.clip(x, x, 5.0)
    assert [t.shape for t in seen[0]] == [(2,), ()]


# -- one backend -----------------------------------------------------------------------------------------------------

SAMPLES = {"int": 1, "float": 1.0, "bool": False, "str": "x", "DType | str": "float32", "Any": 0}


def sample(d: Declaration, name: str, told: str, backend: Any) -> Any:
    whole = name in ("indices", "index", "x2") and d.family.startswith("indexing")
    data = [[0, 1], [1, 0]] if whole else [[1.0, 0.0], [0.0, 1.0]]
    if name in ("mask", "condition"):
        data = [[True, False], [False, True]]
    if d.name.startswith(("bitwise", "logical")):
        data = [[1, 0], [0, 1]]
    if d.name.startswith("conv") and name != "bias":
        rank = int(d.name[-2]) if d.name.endswith("d") else 1
        data = emberlet.ones((2, 2) + (3,) * rank).tolist()
    tensor = emberlet.asarray(data, backend=backend)
    if "Tensor" in told:
        return [tensor, tensor] if told.startswith("Sequence") else tensor
    return SAMPLES.get(told.replace(" | None", ""), (1, 1))


def arguments(d: Declaration, other: str, here: Any, there: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call with every tensor `here` but the one called `other`, which is `there`."""
    args, options = [], {}
    for p in d.parameters():
        optional = p.default is not None
        if p.kind in ("mark", "**") or (optional and p.name != other):
            continue
        value = sample(d, p.name, d.type_of(p), there if p.name == other else here)
        if p.kind == "keyword" or (optional and p.kind != "*"):
            options[p.name] = value
        else:
            args.append(value)
    return args, options


@pytest.mark.parametrize("name", ["python", WGPU])
@every(("d", "other"), SEVERAL)
def test_operands_on_two_backends_are_refused_in_words(d, other, name):
    for here, there in (("numpy", name), (name, "numpy")):
        args, options = arguments(d, other, get_backend(here), get_backend(there))
        with pytest.raises(BackendError, match=r"different backends, .* move one with .to\(\)"):
            getattr(F, d.name)(*args, **options)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: x + y, lambda x, y: x @ y, lambda x, y: x == y, lambda x, y: x[y > 0],
        lambda x, y: x[:, y.int()[0]],
        lambda x, y: x.__setitem__(0, y[0]), lambda x, y: x.__setitem__(y > 0, 1.0), lambda x, y: F.concat([x, y]),
        lambda x, y: F.stack([x, y]), lambda x, y: F.einsum("ij,jk", x, y), lambda x, y: F.meshgrid(x[0], y[0]),
        lambda x, y: F.broadcast_arrays(x, y), lambda x, y: F.select(x, 0, y.int()[0]),
    ],
)  # fmt: skip
def test_operators_and_lists_of_tensors_are_refused_too(call):
    x = emberlet.ones((2, 2), backend="numpy")
    y = emberlet.ones((2, 2), backend="python")
    with pytest.raises(BackendError, match="different backends"):
        call(x, y)


# -- reading declarations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#: thing\ndef f(x): ...\n", "begins with one of method"),
        ("#: function; Fortran f\ndef f(x): ...\n", "neither a standard"),
        ("#: function\nx: int = 1\n", "stands above a function"),
    ],
)
def test_a_declaration_that_cannot_be_read_says_where(text, said, tmp_path, monkeypatch):
    from emberlet.host.interface import declarations

    monkeypatch.setattr(declarations, "CORE", tmp_path / "core")
    (tmp_path / "family.py").write_text(text, encoding="utf-8")
    with pytest.raises(DeclarationError, match=said) as refused:
        declarations.read_file("family", tmp_path / "family.py")
    assert str(refused.value).startswith("family.py:1:")
