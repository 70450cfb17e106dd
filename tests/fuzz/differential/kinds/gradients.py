"""Gradients of random networks on numpy, python, wasm and wgpu, compared with PyTorch's and with finite differences.

Layers, weights that are used twice, loops, branches, views, indices, masks, scans and losses, in float32 with parts in
float16 and bfloat16. The loss is a weighted sum of all results, and every input of floats has a gradient.

**What is compared.** In float64, NumPy's gradients with PyTorch's, where it is installed and has all functions of the
program, and with finite differences along one direction for each input. Then the gradients on each backend, in the
program's dtypes, and of compiled training steps on NumPy, wasm and wgpu where all inputs are float32, with those in
float64, within

    16 * (E + S) + 64 * eps * M

where E is the distance of NumPy's gradients in the program's dtypes, S how far those in float64 move if every value of
the program moves by one unit in its last place, M the largest gradient (or result, if that is larger), and eps the
precision of the narrowest float. wgpu, in software on most machines, takes every fourth program, as do compiled steps
on wasm.

`dev.py fuzz gradients --write` writes what was compared to docs/training.md.

**Kinks.** Where gradients in float64 jump if the inputs move by a millionth of a thousandth, a last digit may decide
which side counts. Such programs are compared only if nothing in them rounds.
"""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet import optim
from emberlet.module import Module

from tools.paths import ROOT

from .. import in_torch, networks
from ..drawing import Pool, Skip
from ..straight import Program

NEEDS = ("gpu-driver",)
EPSILON = {"float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}
NEAR, STEP = 1e-9, 1e-5
ROUNDS = re.compile(
    r"exp|tanh|sin|cos|erf|sigm|silu|gelu|soft|atan|log|sqrt|elu|mish|swish|norm|var|mean|/|attention|hypot|lstm|gru|entropy"
    r"|linear|conv|avg_pool|float16|hard|prelu|matmul|@"
)
BACKENDS = ("python", "wasm", "wgpu")
COUNTED = dict.fromkeys(
    ["compared", "with PyTorch", "with finite differences", *("on " + name for name in BACKENDS),
     "compiled on numpy", "compiled on wasm", "compiled on wgpu", "on a kink"], 0,
)  # fmt: skip
TABLE = ROOT / "docs" / "training.md"
BEGIN, END = "<!-- gradients: written by dev.py fuzz gradients -->\n", "<!-- end of gradients -->\n"


class Variant(NamedTuple):
    """gpu: whether wgpu takes part; noise: the seed of what is moved."""

    gpu: bool
    noise: int


def draw(choose: random.Random) -> Program | None:
    pool = Pool(choose)
    try:
        networks.inputs(pool)
        networks.grow(pool, choose.choice([1, 2, 3, 4, 6, 8, 12, 16]))
        return pool.program(Variant(choose.random() < 0.25, choose.randrange(1 << 30)))
    except Skip:
        return None


def difference(case: Program) -> str:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _difference(case)


def simpler(case: Program) -> Iterable[Program]:
    return case.simpler()


def program(case: Program) -> str:
    floats = [i.name for i in case.inputs if i.array.dtype.kind == "f"]
    moved = ", ".join(
        f"emberlet.asarray({i.name}, backend=backend)" + (".require_grad()" if i.name in floats else "")
        for i in case.inputs
    )
    names = ", ".join(i.name for i in case.inputs)
    return (
        f"{case.text()}\nfor backend in ('numpy', 'python', 'wgpu', 'wasm'):\n"
        f"    backend = emberlet.autodiff(backend)\n    given = [{moved}]  # {names}\n"
        "    wave = [y * emberlet.cos(emberlet.arange(y.size, device=backend) * 1.7 + 0.3).astype(y.dtype)"
        ".reshape(y.shape)\n"
        "            for y in program(*given) if y.dtype.is_float]\n"
        "    grads = sum((w.sum().astype('float32') for w in wave[1:]), wave[0].sum().astype('float32')).backward()\n"
        f"    print(backend, *[x.grad(grads) for x in given if x.is_require_grad()])\n"
    )


def write(cases: int, differ: int, seed: int) -> None:
    """Write the table of a run of so many cases."""
    rows = [("programs drawn", cases), *((name, n) for name, n in COUNTED.items() if n), ("differ", differ)]
    lines = ["| | programs |", "|---|---:|", *(f"| {name} | {count:,} |" for name, count in rows)]
    text = "\n".join([*lines, "", f"Seed {seed}, {date.today()}."])
    before, _, rest = TABLE.read_text(encoding="utf-8").partition(BEGIN)
    TABLE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def seeds(shape: tuple[int, ...]) -> Any:
    """The gradients that results are given: numbers in [-1, 1] without a pattern."""
    count = int(np.prod(shape, dtype=int))
    return np.array([math.cos(1.7 * i + 0.3) for i in range(count)], np.float64).reshape(shape)


def _gradients(f: Any, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """(results, gradients of the inputs that are floats), as arrays of float64."""
    results, pull = emberlet.vjp(f, *inputs)

    def seed(y: Any) -> Any:
        return emberlet.asarray(seeds(y.shape), backend="numpy").astype(y.dtype).to(y.backend)

    found = pull(tuple(seed(y) if y.dtype.is_float else y for y in results))
    arrays = [np.asarray(y.to("numpy").astype("float64") if y.dtype.is_float else y.to("numpy")) for y in results]
    return arrays, [np.asarray(g.to("numpy").astype("float64")) for g in found if g is not None]


def _difference(case: Program) -> str:
    try:
        wide, narrow = case.widened(), case.tensors("numpy")
        if not any(x.dtype.is_float for x in wide):
            return ""
        values = _values(case, case.function(wide=True, watch=_watching), wide)
        if not all(np.isfinite(v).all() for v in values.values() if v.dtype.kind == "f"):
            return ""
    except Exception:
        return ""  # no valid program (any more): shrinking tries some
    f = case.function(wide=True)
    try:
        results, want = _gradients(f, wide)
        noise = random.Random(case.variant.noise)
        nearby = [_gradients(f, [_moved(x, NEAR, noise) for x in wide])[1] for _ in range(3)]
    except Exception as error:
        return f"numpy in float64 raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if not all(np.isfinite(g).all() for g in want):
        return ""
    size = max([1.0, *(float(np.abs(a).max()) for a in want + results if a.size and a.dtype.kind == "f")])
    kink = any(
        not np.allclose(a, b, rtol=1e-4, atol=1e-5 * size) for near in nearby for a, b in zip(near, want, strict=True)
    )
    exact = not ROUNDS.search(" ".join(line.text for line in case.lines))
    if kink:
        COUNTED["on a kink"] += 1
        if not exact:
            return ""
    COUNTED["compared"] += 1
    said = _torch(case, wide, results, want, size)
    if not said and not kink:
        COUNTED["with finite differences"] += 1
        said = _finite(f, wide, want, size)
    return said or _backends(case, narrow, f, wide, want, size)


def _watching(name: str, x: Any) -> Any:
    _watching.seen[name] = np.asarray(x.astype("float64") if x.dtype.is_float else x)  # type: ignore[attr-defined]
    return x


def _values(case: Program, f: Any, inputs: list[Any]) -> dict[str, Any]:
    _watching.seen = {}  # type: ignore[attr-defined]
    f(*inputs)
    return _watching.seen  # type: ignore[attr-defined, no-any-return]


def _moved(x: Any, by: float, noise: random.Random) -> Any:
    """x with each element of a float moved by a part of itself, at random."""
    if not x.dtype.is_float:
        return x
    array = np.asarray(x)
    moves = np.array([noise.uniform(-1.0, 1.0) for _ in range(array.size)]).reshape(array.shape)
    return emberlet.asarray(array + moves * by * np.maximum(np.abs(array), 1.0), backend="numpy")


def _torch(case: Program, wide: list[Any], results: list[Any], want: list[Any], size: float) -> str:
    if not in_torch.installed():
        return ""
    try:
        values, found = in_torch.gradients(case, wide, seeds)
    except Exception:
        return ""
    COUNTED["with PyTorch"] += 1
    for i, (ours, theirs) in enumerate(zip(results, values, strict=True)):
        if ours.shape != theirs.shape:
            return ""  # an index of numbers among lists, which PyTorch applies first, unlike NumPy
        if not np.allclose(ours, theirs, rtol=1e-7, atol=1e-9 * size):
            return f"output {i} is {ours.tolist()}, in PyTorch {theirs.tolist()}"
    for i, (ours, theirs) in enumerate(zip(want, found, strict=True)):
        if np.isfinite(theirs).all() and not np.allclose(ours, theirs, rtol=1e-6, atol=1e-8 * size):
            return f"gradient {i} is {ours.tolist()}, in PyTorch {theirs.tolist()}"
    return ""


def _finite(f: Any, wide: list[Any], want: list[Any], size: float) -> str:
    """Finite differences along a direction for each input."""
    places = [i for i, x in enumerate(wide) if x.dtype.is_float]
    for i, gradient in zip(places, want, strict=True):
        array, direction = np.asarray(wide[i]), np.sin(1.0 + 12.9898 * np.arange(1, wide[i].size + 1) + i)
        direction = direction.reshape(array.shape)
        ends, total = [], 0.0
        for step in (STEP, 0.0, -STEP, STEP / 2, -STEP / 2):
            moved = emberlet.asarray(array + step * direction, backend="numpy")
            found = [
                np.asarray(y) for y in f(*[moved if j == i else x for j, x in enumerate(wide)]) if y.dtype.is_float
            ]
            ends.append(sum(float((y * seeds(y.shape)).sum()) for y in found))
            total = sum(float(np.abs(y).sum()) for y in found)
        analytic, numeric = float((gradient * direction).sum()), (ends[0] - ends[2]) / (2 * STEP)
        right, left, closer = (ends[0] - ends[1]) / STEP, (ends[1] - ends[2]) / STEP, (ends[3] - ends[4]) / STEP
        near = 1e-4 * max(abs(numeric), 0.1 * float(np.abs(gradient).sum()), 1.0) + 1e-9 * total
        smooth = abs(right - left) <= near and abs(numeric - closer) <= near  # else a kink, or a jump
        if smooth and not abs(numeric - analytic) <= near:
            return f"gradient {i} along a direction is {analytic}, finite differences give {numeric}"
    return ""


def _backends(case: Program, narrow: list[Any], f: Any, wide: list[Any], want: list[Any], size: float) -> str:
    dtypes = {str(x.dtype.name) for x in narrow} | set(re.findall(r"D\.(b?float16)", case.text()))
    eps = max(EPSILON.get(name, 0.0) for name in (*dtypes, "float32"))
    noise = random.Random(case.variant.noise + 1)

    def shaken(name: str, x: Any) -> Any:
        if not x.dtype.is_float:
            return x
        moves = np.array([noise.choice((-eps, eps)) for _ in range(x.size)]).reshape(x.shape) + 1.0
        return x * emberlet.asarray(moves, backend=x.backend)

    moved = case.function(wide=True, watch=shaken)
    try:
        spread = [np.zeros_like(g) for g in want]
        for _ in range(3):
            given = [_moved(x, eps / 2, noise) for x in wide]
            for s, g, w in zip(spread, _gradients(moved, given)[1], want, strict=True):
                np.maximum(s, np.abs(g - w), out=s)
        found = _gradients(case.function(), narrow)[1]
    except Exception as error:
        return f"numpy raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if not all(np.isfinite(g).all() for g in found + spread):
        return ""
    lost = [float(np.max(np.abs(g - w) + s, initial=0.0)) for g, w, s in zip(found, want, spread, strict=True)]
    if eps == EPSILON["float32"] and max(lost, default=0) > 1e-2 * size:  # a jump in float32 only
        COUNTED["on a kink"] += 1
        return ""
    compiled = ["compiled on numpy", *(["compiled on wasm", "compiled on wgpu"] if case.variant.gpu else [])]
    if not any(g.any() for g in want) or any(x.dtype.is_float and str(x.dtype) != "float32" for x in narrow):
        compiled = []
    for way in [*("on " + name for name in (BACKENDS if case.variant.gpu else BACKENDS[:2])), *compiled]:
        name = way.rpartition(" ")[2]
        try:
            if way in compiled:
                found_or_none = _by_a_compiled_step(case, name)
                if found_or_none is None:
                    continue
                got = found_or_none
            else:
                got = _gradients(case.function(), case.tensors(name))[1]
        except Exception as error:
            return f"{way} raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        COUNTED[way] += 1
        for i, (g, w, e) in enumerate(zip(got, want, lost, strict=True)):
            if g.shape != w.shape or not np.all(np.abs(g - w) <= 16 * e + 64 * eps * size):
                return f"gradient {i} {way} is {g.tolist()}, in float64 {w.tolist()}"
    return ""


RATE = 1024.0  # so large that the weights take no digits from what a step subtracts


class _Inputs(Module):
    """The float inputs of a program as parameters."""

    def __init__(self, floats: list[Any]) -> None:
        self.floats = [emberlet.Param(x) for x in floats]


def _by_a_compiled_step(case: Program, name: str) -> list[Any] | None:
    """The gradients that a compiled step of SGD subtracts from the inputs; None where it is no plan."""
    inputs, function = case.tensors(name), case.function()
    is_float = [x.dtype.is_float for x in inputs]
    model = _Inputs([x for x, f in zip(inputs, is_float, strict=True) if f])

    def loss(model: Any, *rest: Any) -> Any:
        floats, others = iter(model.floats), iter(rest)
        found = function(*[next(floats).val() if f else next(others) for f in is_float])
        parts = [y.astype("float32") * emberlet.asarray(seeds(y.shape).astype(np.float32), backend=y.backend)
                 for y in found if y.dtype.is_float]  # fmt: skip
        return sum([p.sum() for p in parts[1:]], parts[0].sum())

    before = [np.asarray(p.val().to("numpy").astype("float64")) for p in model.floats]
    step = model.compile_step(loss, optim.SgdConfig().init())
    step(RATE, *[x for x, f in zip(inputs, is_float, strict=True) if not f])
    if step.cut is not None:
        return None
    after = [np.asarray(p.val().inner().to("numpy").astype("float64")) for p in model.floats]
    return [(old - new) / RATE for old, new in zip(before, after, strict=True)]
