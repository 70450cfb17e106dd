"""Promises that no way of running shows: tensors' fields are read-only; a shape as PyTorch gives it to a norm is
understood or refused; weights of fewer bits stay finite and do not vanish; state dicts in PyTorch's layout load;
`compile` without a backend keeps the model's own; a squeeze of open lengths is followed by slices; an output is no
input of its command; files of other kinds are named; a custom kernel writes its result alone; a layer that is recorded
step by step is said to be faster compiled; a model without a plan says so once; plans do not depend on the library's
names. One family each."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import emberlet
import numpy as np
import onnx
from emberlet import functional as F
from emberlet import nn
from emberlet.errors import EmberletError
from emberlet.host.cli import main
from emberlet.module import Module
from emberlet.onnxruntime import InferenceSession
from onnx import TensorProto, helper

from ..case import COUNTED
from ..reference import choice, quiet
from ..ways import Unavailable, available, compiled, opened_axes, tensors
from . import chains

NEEDS: tuple[str, ...] = ()


class Drawn(NamedTuple):
    """A family of FAMILIES, and the seed of its choices."""

    family: str
    seed: int


def draw(choose: random.Random) -> Drawn | None:
    return Drawn(choose.choice(sorted(FAMILIES)), choose.randrange(1 << 30))


def _array(choose: random.Random, shape: tuple[int, ...], size: float = 1.0) -> Any:
    return (size * np.random.default_rng(choose.randrange(1 << 30)).standard_normal(shape)).astype(np.float32)


def _shape(choose: random.Random, least: int = 0) -> tuple[int, ...]:
    return tuple(choose.randint(1, 5) for _ in range(choose.randint(least, 4)))


def _near(found: Any, wanted: Any) -> bool:
    found = np.asarray(found)
    return found.shape == wanted.shape and bool(np.allclose(found, wanted, 1e-4, 1e-5))


def _fields(choose: random.Random) -> str:
    values = _array(choose, _shape(choose))
    x = emberlet.asarray(values, device=choose.choice(sorted({w.backend for w in available()})), copy=True)
    field = choose.choice(["shape", "dtype", "backend", "data"])
    value = choose.choice([(1000, 1000), (), emberlet.int32, emberlet.get_backend("python"), None, values])
    try:
        setattr(x, field, value)
    except EmberletError:
        return "" if np.array_equal(np.asarray(x), values) else f"setting {field} changes elements"
    return f"{field} may be set to {value!r}"


def _norms(choose: random.Random) -> str:
    x = _array(choose, _shape(choose, 1))
    count = choose.randint(1, x.ndim)
    shape, fits = x.shape[x.ndim - count :], choose.random() < 0.7
    if not fits:
        shape = (*shape[:-1], shape[-1] + 1)
    over, wide = tuple(range(x.ndim - count, x.ndim)), x.astype(np.float64)
    name = choose.choice(["layer_norm", "rms_norm"])
    if name == "layer_norm":
        wanted = (wide - wide.mean(over, keepdims=True)) / np.sqrt(wide.var(over, keepdims=True) + 1e-5)
    else:
        wanted = wide / np.sqrt((wide**2).mean(over, keepdims=True) + np.finfo(np.float32).eps)
    given: Any = list(shape) if choose.random() < 0.3 else shape[0] if count == 1 and choose.random() < 0.3 else shape
    try:
        found = getattr(F, name)(emberlet.asarray(x, device="numpy"), given)
    except EmberletError as error:
        return f"{name}({x.shape}, {given!r}) is refused: {error}" if fits else ""
    right = fits and np.allclose(np.asarray(found), wanted, 1e-3, 1e-3)
    return "" if right else f"{name}({x.shape}, {given!r}) is wrong"


def _narrowed(choose: random.Random) -> str:
    net = Module()
    values = _array(choose, (choose.randint(1, 9),), 10.0 ** choose.randint(-12, 37))
    if choose.random() < 0.3:
        values[0] = choose.choice([np.inf, -3.4e38, 0.0, 1.0])
    net.weight = nn.Param(emberlet.asarray(values, device="numpy", copy=True))
    other = Module()
    other.weight = nn.Param(emberlet.zeros(values.shape, device="numpy"))
    precision = choose.choice(["half", "half", "bfloat16"])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder, choose.choice(["w.bpk", "w.safetensors"])))
        net.save_file(path, precision)
        other.load_file(path)
        found = np.asarray(other.weight.val()).astype(np.float64)
    finite = np.isfinite(values)
    most = float(np.abs(values[finite]).max(initial=0.0))
    right = np.isfinite(found) == finite
    with np.errstate(all="ignore"):  # beside float16's least number, its steps are as large as it
        right &= ~finite | (np.abs(found - values) <= max(2.0**-8 * most, 2.0**-25))
    right &= not most or np.abs(found[finite]).max() > most / 2
    return "" if right.all() else f"{values.tolist()} becomes {found.tolist()} in {precision}"


def _records(choose: random.Random) -> str:
    widths = [choose.randint(1, 5) for _ in range(choose.randint(2, 4))]
    net = Module()
    net.layers = [nn.Linear(a, b, backend="numpy") for a, b in pairwise(widths)]
    net.norm = nn.LayerNorm(widths[-1], backend="numpy")
    state: dict[str, Any] = {"norm.weight": _array(choose, widths[-1:]), "norm.bias": _array(choose, widths[-1:])}  # type: ignore[arg-type]
    x = wide = _array(choose, (3, widths[0]))
    for i, (a, b) in enumerate(pairwise(widths)):
        state[f"layers.{i}.weight"], state[f"layers.{i}.bias"] = _array(choose, (b, a)), _array(choose, (b,))
        wide = wide @ state[f"layers.{i}.weight"].T + state[f"layers.{i}.bias"]
    wanted = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    wanted = wanted * state["norm.weight"] + state["norm.bias"]
    wrap = choose.choice([lambda a: a, lambda a: emberlet.asarray(a, device="numpy", copy=True)])
    net.load_record({name: wrap(a) for name, a in state.items()}, layout="pytorch")
    for a in state.values():
        a[...] = 113
    y = emberlet.asarray(x, device="numpy")
    for layer in net.layers:
        y = layer(y)
    found = np.asarray(net.norm(y))
    return "" if np.allclose(found, wanted, 1e-2, 1e-3) else f"widths {widths}: {found.tolist()}, not {wanted.tolist()}"


def _own_backend(choose: random.Random) -> str:
    own = choose.choice(sorted({w.backend for w in available()} - {"python"}))
    net = nn.Linear(choose.randint(1, 5), choose.randint(1, 5), backend="numpy")
    x = _array(choose, (2, np.asarray(net.weight.val()).shape[0]))
    wanted = np.asarray(net(emberlet.asarray(x, device="numpy")))
    fast = net.fork(own).compile()
    if fast.backend.name != own:
        return f"a model on {own} is compiled for {fast.backend.name}"
    return "" if _near(fast(emberlet.asarray(x, device=own)), wanted) else f"compiled for {own}, it is wrong"


def _squeezed(choose: random.Random) -> str:
    """Axes of 1 around an open one: Squeeze, then Slice of the first axis that is left, its bounds as inputs or, as
    before opset 10, as attributes."""
    open_at = choose.randint(0, 2)
    template: list[Any] = [1] * 4
    template[open_at], template[choose.randint(open_at + 1, 3)] = "n", choose.randint(2, 4)
    start, stop = choose.randint(0, 2), choose.choice([2, 5, 1 << 40])
    given: dict[str, Any] = {"starts": [start], "ends": [stop], "axes": [0]}
    constants = [helper.make_tensor(n, TensorProto.INT64, [1], v) for n, v in given.items()]
    opset, cut = 17, helper.make_node("Slice", ["y", *given], ["z"])
    if choose.random() < 0.5:
        opset, cut, constants = 9, helper.make_node("Slice", ["y"], ["z"], **given), []
    nodes = [helper.make_node("Squeeze", ["x"], ["y"]), cut]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, template)],
                              [value("z", TensorProto.FLOAT, [None, None])], constants)  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = InferenceSession(model.SerializeToString())
    for n in choose.sample(range(2, 9), 3):
        x = _array(choose, tuple(n if d == "n" else d for d in template))
        found = session.run(None, {"x": x})[0]
        if not np.array_equal(found, np.squeeze(x)[start:stop]):
            return f"{template}, n = {n}, [{start}:{stop}]: shape {found.shape}"
    return ""


def _not_a_number(choose: random.Random) -> str:
    """Quantizing gives NaN the lowest level, as onnxruntime does."""
    x = _array(choose, _shape(choose, 1), 20.0)
    x.reshape(-1)[choose.randrange(x.size)] = np.nan
    name, backend = choose.choice(["int8", "uint8", "int16", "uint16"]), choose.choice(available()).backend
    low, high = np.iinfo(name).min, np.iinfo(name).max
    wanted = np.where(np.isnan(x), low, np.clip(np.rint(x / 0.5), low, high))

    def quantized(x: Any) -> Any:
        return F.quantize_linear(x, 0.5, dtype=name)

    run = quantized if backend == "python" or choose.random() < 0.5 else compiled(quantized, backend, [])
    found = np.asarray(run(emberlet.asarray(x, device=backend)))
    return "" if np.array_equal(found, wanted) else f"{x.tolist()} as {name} on {backend}: {found.tolist()}"


def _outputs(choose: random.Random) -> str:
    model = helper.make_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder, choose.choice(["model.onnx", "w.bpk", "w.safetensors"]))
        unknown = Path(folder, "out.foo")
        if path.suffix == ".onnx":
            onnx.save(model, path)
        else:
            nn.Linear(2, 3, backend="numpy").save_file(str(path))
        before = path.read_bytes()
        above = os.path.join(folder, "..", Path(folder).name, path.name)
        out = choose.choice([str(path), os.path.join(folder, ".", path.name), above, str(unknown)])
        convert = path.suffix != ".onnx" or choose.random() < 0.5
        command = ["convert", str(path), out] if convert else ["compile", str(path), "--out", out]
        command += ["--overwrite"] * (choose.random() < 0.7)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = main(command)
        if not status or path.read_bytes() != before or unknown.exists():
            return f"emberlet {' '.join(command)} has status {status}"
    return ""


# What other files begin with -> what a message calls them
FILES = {
    b"\x1c\0\0\0TFL3": "TensorFlow Lite",
    b"\x18\0\0\0ORTM": "onnxruntime",
    b"\x89HDF\r\n\x1a\n": "HDF5",
    b"PK\x03\x04": "zip",
    b"GGUF\x03\0\0\0": "GGUF",
}


def _other_files(choose: random.Random) -> str:
    """A command that takes a model says what another file is, whatever it is called."""
    head, named = choose.choice(sorted(FILES.items()))
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder, choose.choice(["model.onnx", "model.tflite", "model.h5", "model"]))
        path.write_bytes(head + choose.randbytes(choose.randint(0, 64)))
        command = choose.choice([["codegen", str(path), "--out", folder], ["verify", str(path)], ["run", str(path)]])
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main(command)
    if status and named in said.getvalue():
        return ""
    return f"emberlet {command[0]} of {path.name}, {head!r}: status {status}, {said.getvalue()[:200]!r}"


def _step_by_step(choose: random.Random) -> str:
    """Outside of a plan, a recurrent layer that is recorded step by step again is said once to be faster compiled."""
    from emberlet.wgpu_backend.wasm import WasmBackend

    if "wasm" not in {w.backend for w in available()}:
        return ""
    own, steps, width = WasmBackend(), choose.randint(16, 24), choose.randint(1, 4)
    layer = choose.choice([nn.Gru, nn.Lstm])(width, choose.randint(1, 4), backend=own)
    x = emberlet.asarray(_array(choose, (1, steps, width)), backend=own)
    planned = layer.compile(x, backend=own)
    said = []
    for way in [planned, layer, layer, layer]:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            way(x)
        said.append(["compile" in str(w.message) for w in heard])
    return "" if said == [[], [], [True], []] else f"{steps} steps, in a plan and three times eagerly: {said}"


class _Told(Module):
    """Which operations it runs depends on a value."""

    def forward(self, x: Any) -> Any:
        return x * 2.0 if F.sum(x).item() > 0 else x - 1.0


def _told(choose: random.Random) -> str:
    """A model that has no plan runs as it is, says so in one warning, and why in `cut`."""
    here = sorted({w.backend for w in available()} - {"python"})
    backend = choose.choice([*here, None, "auto"])
    shape = (choose.randint(100, 300), choose.randint(3, 5))  # an input of few elements has a plan for each value
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fast = _Told().compile(backend=backend)
        for _ in range(18 if backend == "auto" else 3):
            x = _array(choose, shape)
            if not _near(fast(emberlet.asarray(x, device="numpy")), x * 2 if x.sum() > 0 else x - 1):
                return f"compiled for {backend}, it is wrong"
    heard = [str(w.message) for w in said if "operation by operation" in str(w.message)]
    if len(heard) == 1 and fast.cut is not None and str(fast.cut) in heard[0]:
        return ""
    return f"compiled for {backend}, it says {heard}; cut: {fast.cut}"


KERNEL = """{{{{ bindings }}}}

@compute @workgroup_size({{{{ workgroup }}}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let i = {{{{ flat }}}};
    if (i < {count}u) {{ {body} }}
}}
"""
OWN = """@group(0) @binding(0) var<storage, read_write> in0: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
"""
# what a kernel does -> (its statement, what it gives for x where i < count, None: it is refused)
BODIES: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "writes": ("out[i] = in0[i] * 2.0;", lambda x: x * 2),
    "adds": ("out[i] += in0[i];", lambda x: x),
    "writes some": ("if (in0[i] > 0.0) { out[i] = in0[i]; }", lambda x: np.maximum(x, 0)),
    "writes nothing": ("let unused = in0[i];", None),
    "writes its input": ("in0[i] = 113.0; out[i] = 1.0;", None),
}


def _kernels(choose: random.Random) -> str:
    """A custom kernel leaves its input, a layer's weight, as it was; what it does not write is 0."""
    if "wgpu" not in {w.backend for w in available()}:
        return ""
    name = choose.choice(sorted(BODIES))
    body, gives = BODIES[name]
    rows, columns = choose.randint(1, 6), choose.randint(1, 6)
    count = choose.choice([rows * columns, rows * columns, choose.randint(1, rows * columns)])
    source = KERNEL.format(count=count, body=body)
    if choose.random() < 0.4:
        source = source.replace("{{ bindings }}", OWN)
    net = nn.Linear(rows, columns, backend="numpy").fork("wgpu")
    before = np.array(np.asarray(net.weight.val()))
    wanted = np.zeros(rows * columns, np.float32)
    if gives is not None:
        wanted[:count] = gives(before.reshape(-1)[:count])
    old = [F.full((rows, columns), 7.0, device="wgpu") + 1.0 for _ in range(3)]
    assert old[0].tolist()
    del old  # memory that a result may get
    x = net.weight.val()
    try:
        found = np.asarray(x.backend.launch("drawn", source, [x], x.dtype, x.shape, (x.size, 64)))
    except EmberletError as error:
        found = None if gives is None else f"it is refused: {error}"
    if isinstance(found, str):
        return f"a kernel that {name}: {found}"
    if not np.array_equal(np.asarray(net.weight.val()), before):
        return f"a kernel that {name} changes a layer's weight"
    if gives is None:
        return "" if found is None else f"a kernel that {name} gives {found.tolist()}"
    return "" if _near(found.reshape(-1), wanted) else f"a kernel that {name} gives {found.tolist()}, not {wanted}"


def _functions() -> list[Any]:
    """All functions of emberlet's modules and classes."""
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("emberlet.") or module is None:
            continue
        for value in list(vars(module).values()):
            for f in list(vars(value).values()) if isinstance(value, type) else [value]:
                f = getattr(f, "__func__", getattr(f, "fget", f))
                if isinstance(f, types.FunctionType) and f.__module__ == name:
                    found[id(f)] = f
    return list(found.values())


def _renamed(choose: random.Random) -> str:
    """Which sizes a plan serves does not depend on what the library's own functions are called."""
    drawn = chains.draw(choose)
    assert drawn is not None
    case = chains.case_of(drawn)
    backend = choose.choice(sorted({w.backend for w in available()} - {"python"}))
    said = []
    functions = _functions()
    codes = [f.__code__ for f in functions]
    for renamed in (False, True):
        try:
            if renamed:
                for f, code in zip(functions, codes, strict=True):
                    f.__code__ = code.replace(co_name="renamed")
            fast = compiled(case.make(), backend, [], dims=opened_axes(case, case.calls[0]))
            for arrays in case.calls:
                with contextlib.suppress(EmberletError):
                    fast(*tensors(arrays, "numpy"))
            said.append(f"{fast!r}, fixed {fast.fixed}, open {fast.unopened}")
        except Unavailable:
            return ""
        finally:
            for f, code in zip(functions, codes, strict=True):
                f.__code__ = code
    return "" if said[0] == said[1] else f"{said[0]}, and renamed {said[1]}: {case.source}"


FAMILIES: dict[str, Callable[[random.Random], str]] = {
    "fields": _fields,
    "kernels": _kernels,
    "norms": _norms,
    "not a number": _not_a_number,
    "narrowed": _narrowed,
    "other files": _other_files,
    "own backend": _own_backend,
    "outputs": _outputs,
    "records": _records,
    "renamed": _renamed,
    "squeezed": _squeezed,
    "step by step": _step_by_step,
    "told": _told,
}


def difference(drawn: Drawn) -> str:
    COUNTED[f"promises: {drawn.family}"] += 1
    try:
        with quiet():
            said = FAMILIES[drawn.family](choice(drawn.seed, drawn.family))
    except Exception as error:
        said = f"raises {type(error).__name__}: {error}"
    return said and f"{drawn.family}: {said}"


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    return ()


def program(drawn: Drawn) -> str:
    return f"from contract.kinds.promises import Drawn, difference\n\nprint(difference({drawn!r}))"
