"""Random graphs through NumPy, wgpu and wasm (each plain and compiled), python, a saved plan and plans of open sizes.

Movement, indexing, reductions, scans, concatenation, order, products, attention, windows, elementwise operations and
casts, with constants on either side, unit, middle, length-one and empty axes and negative steps. The kernels are those
of a real GPU, of a device in software or of SwiftShader, at random, and maps are of single elements or of four.

**Tolerances.** Each program also runs in float64 on NumPy. Integers, bools, shapes and dtypes must be equal. So must
floats that are exact (drawing.py): no operation before them rounds. Every other float may be off by

    8 * E + 64 * eps(dtype) * M

where E is the largest distance between NumPy's result in the dtypes of the program and in float64 (what the precision
itself loses on this graph, conditioning included), M the largest finite magnitude of the result, and eps the dtype's
precision. 64 covers the permitted errors of functions: WGSL's exp may be off by 3 + 2|x| units, Emberlet's own by 8. A
real GPU and relaxed SIMD may also be off by 8 * eps(dtype) * the largest finite magnitude of the inputs: their
divisions and fused multiply-adds round where NumPy happens to be exact, so the variance of equal numbers is not 0
there. Where that is not enough, E also counts how far the result in float64 moves if every value that NumPy rounds is
moved by one unit in its last place, up or down at random: NumPy's rounding errors may cancel by luck (the sum of a
normalized axis is 0), while those of others are as small and do not. Where NumPy and float64 disagree about what is
finite, nothing is compared.

**Open sizes.** In every second case a plan leaves axes of the inputs open; axes of one length share a name. It runs at
the drawn sizes and at other sizes at which the program runs on NumPy.
"""

from __future__ import annotations

import os
import random
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet.backend import get_backend
from emberlet.errors import EmberletError

from .. import operations
from ..drawing import Pool, Skip, comparable
from ..straight import Program

NEEDS = ("gpu-driver",)
EPSILON = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 9.8e-4, "bfloat16": 7.9e-3}
KEPT = 600  # pipelines kept between cases
SIZES = 12  # times other sizes are drawn for a plan with open ones
OTHERS = 4  # of them that are run
LARGEST = 1 << 14  # elements of a result at them


class Variant(NamedTuple):
    """How the GPU runs a program: the class of device for its kernels, and the number of elements from which a map
    computes four at a time. opened: 0, or the seed for the axes that a plan leaves open and for their sizes."""

    device_class: str
    wide: int
    saved: bool
    opened: int


def draw(choose: random.Random) -> Program | None:
    pool = Pool(choose)
    try:
        operations.inputs(pool)
        operations.grow(pool, choose.choice([1, 2, 3, 4, 6, 8, 12]))
        variant = Variant(
            choose.choice(["cpu", "gpu", "swiftshader"]),
            choose.choice([4, 1 << 14]),
            choose.random() < 0.4,
            choose.choice([0, choose.randrange(1, 1 << 30)]),
        )
        return pool.program(variant)
    except Skip:
        return None


def difference(case: Program) -> str:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = case.function()(*case.tensors("numpy"))
            wide = case.function(wide=True)(*case.widened())
            want = [(np.asarray(x), x.dtype.name) for x in want]
            numbers = [np.asarray(x) for x in wide]
    except Exception:
        return ""  # no valid program (any more): shrinking tries some
    for name, run in TARGETS.items():
        try:
            with _vectors(case.variant), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = run(case)
        except Exception as error:
            return f"{name} raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
        for i, got in enumerate(found or ()):
            said = _differs(*got, *want[i], numbers[i], _given(case, name))
            if said and _differs(*got, *want[i], numbers[i], _given(case, name), _moved(case)[i]):
                return f"{name}, output {i}: {said}"
    return _open_sizes(case)


def simpler(case: Program) -> Iterable[Program]:
    return case.simpler()


def program(case: Program) -> str:
    names = ", ".join(i.name for i in case.inputs)
    head = f"# kernels for {case.variant.device_class!r}, vectors from {case.variant.wide} elements on\n"
    if case.variant.opened:
        head += f"# axes that a plan leaves open: {_opened(case, random.Random(case.variant.opened))}\n"
    moved = ", ".join(f"emberlet.asarray({i.name}, backend=backend)" for i in case.inputs)
    return (
        f"{head}{case.text()}\nfor backend in ('numpy', 'python', 'wgpu', 'wasm'):\n"
        f"    print(backend, *[np.asarray(x).tolist() for x in program({moved})])  # {names}\n"
    )


# -- comparison ---------------------------------------------------------------------------------------------------


def _given(case: Program, name: str) -> float:
    """The largest finite magnitude of the inputs for the targets that round in their own ways, else 0."""
    from emberlet.wgpu_backend.kernels.table import Options

    if name in ("python", "numpy compiled"):
        return 0.0
    if name not in ON_WASM and Options.of(_made(case.variant.device_class, case.variant.wide).device).software:
        return 0.0
    arrays = [np.asarray(i.array, np.float64) for i in case.inputs]
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in arrays), default=0.0)


def _moved(case: Program) -> list[float]:
    """How far each output in float64 moves if every value that NumPy rounds is off by one unit in the last place."""
    every = case._replace(outputs=tuple(line.name for line in case.lines))
    values = dict(zip(every.outputs, every.function()(*case.tensors("numpy")), strict=True))
    exact = dict(zip(every.outputs, every.function(wide=True)(*case.widened()), strict=True))
    draw = np.random.default_rng(1)

    def shake(name: str, x: Any) -> Any:
        precision = EPSILON.get(values[name].dtype.name)
        if precision is None or np.array_equal(np.asarray(values[name]), np.asarray(exact[name]), equal_nan=True):
            return x
        numbers = np.asarray(x, dtype=np.float64)
        moved = numbers * (1 + precision * draw.choice([-1.0, 1.0], numbers.shape))
        return emberlet.asarray(moved, backend="numpy")

    moved = case.function(wide=True, watch=shake)(*case.widened())
    out = []
    for name, x in zip(case.outputs, moved, strict=True):
        a, b = np.asarray(x), np.asarray(exact.get(name, x))  # an output may be an input
        if a.dtype.kind != "f" or a.shape != b.shape:
            out.append(0.0)
            continue
        both = np.isfinite(a) & np.isfinite(b)
        out.append(float(np.abs(a - b)[both].max(initial=0.0)))
    return out


def _differs(got: Any, got_dtype: str, want: Any, dtype: str, wide: Any, given: float, moved: float = 0.0) -> str:
    if got_dtype != dtype or got.shape != want.shape:
        return f"{got_dtype} {got.shape}, NumPy has {dtype} {want.shape}"
    if dtype not in EPSILON:
        wrong = got != want
    else:
        got, want = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            sound = np.isfinite(want) == np.isfinite(wide)
            both = np.isfinite(want) & np.isfinite(wide)
            lost = max(moved, float(np.abs(want - wide)[both].max(initial=0.0)))
            size = float(np.abs(wide)[both].max(initial=0.0))
            near = np.abs(got - want) <= 8 * lost + EPSILON[dtype] * (64 * size + 8 * given)
        wrong = sound & ~(near | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not np.any(wrong):
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(wrong)) if np.ndim(wrong) else ()
    return f"{int(np.sum(wrong))} of {want.size} elements differ; at {at} it has {got[at]}, NumPy has {want[at]}"


# -- implementations ------------------------------------------------------------------------------------------------


def _array(x: Any) -> tuple[Any, str]:
    return np.asarray(x), str(x.dtype.name)


def _python(case: Program) -> list[Any]:
    return [_array(x) for x in case.function()(*case.tensors(get_backend("python")))]


def _plain(case: Program) -> list[Any]:
    backend = _backend(case.variant)
    return [_array(x) for x in case.function()(*case.tensors(backend))]


def _compiled(case: Program) -> list[Any]:
    from emberlet.wgpu_backend.compiled import compile as compiled

    tensors = case.tensors(get_backend("numpy"))
    return [_array(x) for x in compiled(case.function(), *tensors, backend=_backend(case.variant))(*tensors)]


def _saved(case: Program) -> list[Any] | None:
    from emberlet.wgpu_backend import plan_file

    if not case.variant.saved:
        return None
    tensors = case.tensors(get_backend("numpy"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.bpk")
        try:
            plan_file.save(path, case.function(), *tensors)
        except EmberletError as error:
            if (
                "must not return empty" in str(error)
                or "live on the GPU" in str(error)
                or "cannot be saved" in str(error)
            ):
                return None
            raise
        plan = plan_file.load(path, _backend(case.variant).device)
        return [_array(d.to_tensor("numpy")) for d in plan.run(*tensors)]


@contextmanager
def _vectors(variant: Variant) -> Iterator[None]:
    """Use maps of the variant's width; at the end, the process has its previous width again."""
    from emberlet.wgpu_backend.record import node

    before, node.WIDE = node.WIDE, variant.wide
    try:
        yield
    finally:
        node.WIDE = before


def _backend(variant: Variant) -> Any:
    """A wgpu backend that makes the kernels of the variant, on the one device."""
    found = _made(variant.device_class, variant.wide)
    if len(found.device.pipelines) > KEPT:
        found.device.pipelines.clear()
    return found


@cache
def _made(device_class: str, wide: int) -> Any:
    from emberlet.wgpu_backend import WgpuBackend
    from emberlet.wgpu_backend.device import open_device
    from emberlet.wgpu_backend.kernels.table import Options

    backend = WgpuBackend(device=open_device())
    real = Options.of(backend.device)
    backend._options = Options(device_class, real.max_bindings, real.page_bytes, real.workgroup_bytes)
    return backend


def _opened(case: Program, choose: random.Random) -> dict[str, dict[int, str]]:
    """The axes that are left open, as `compile` takes them."""
    lengths = sorted({d for given in case.inputs for d in given.array.shape if d > 1})
    chosen = [d for d in lengths if choose.random() < 0.7]
    return {
        given.name: {k: f"n{d}" for k, d in enumerate(given.array.shape) if d in chosen}
        for given in case.inputs
        if any(d in chosen for d in given.array.shape)
    }


def _resized(case: Program, opened: dict[str, dict[int, str]], choose: random.Random) -> Program:
    """The program with inputs of other sizes, whose elements are drawn from its own inputs."""
    labels = sorted({label for axes in opened.values() for label in axes.values()})
    changed = labels if choose.random() < 0.5 else [choose.choice(labels)]
    sizes = {label: choose.randint(1, 12) for label in changed}
    inputs = []
    for given in case.inputs:
        axes = opened.get(given.name, {})
        shape = [sizes.get(axes.get(k, ""), d) for k, d in enumerate(given.array.shape)]
        flat = given.array.reshape(-1)
        picked = [choose.randrange(flat.size) if flat.size else 0 for _ in range(int(np.prod(shape, dtype=int)))]
        inputs.append(given._replace(array=flat[picked].reshape(shape)))
    return case._replace(inputs=tuple(inputs))


def _open_sizes(case: Program) -> str:
    """The differences of a plan that leaves axes open, at the sizes of the case and at others."""
    if not case.variant.opened:
        return ""
    from emberlet.host.numpy_backend.compile import compile as compiled_on_numpy
    from emberlet.wgpu_backend.compiled import compile as compiled

    choose = random.Random(case.variant.opened)
    opened = _opened(case, choose)
    if not opened:
        return ""
    with _vectors(case.variant), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        models = {
            "numpy compiled": compiled_on_numpy(case.function(), dims=opened),
            "wgpu compiled": compiled(case.function(), backend=_backend(case.variant), dims=opened),
        }
        ran = 0
        for attempt in range(SIZES):
            now = _resized(case, opened, choose) if attempt else case
            where = f"a plan that leaves {opened} open, at {[i.array.shape for i in now.inputs]}"
            try:
                want = [(np.asarray(x), x.dtype.name) for x in now.function()(*now.tensors("numpy"))]
                numbers = [np.asarray(x) for x in now.function(wide=True)(*now.widened())]
                every = now._replace(outputs=tuple(line.name for line in now.lines))
                values = every.function()(*now.tensors("numpy"))
                wide = every.function(wide=True)(*now.widened())
            except Exception:
                continue  # the program is invalid for these sizes
            if any(x.size > LARGEST or not comparable(x, w) for x, w in zip(values, wide, strict=True)):
                continue
            for name, model in models.items():
                try:
                    found = [_array(x) for x in model(*now.tensors("numpy"))]
                except Exception as error:
                    return f"{where}, {name}, raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"
                for i, got in enumerate(found):
                    if want[i][1] not in EPSILON and not np.array_equal(want[i][0], numbers[i]):
                        continue  # an integer that a last digit decides
                    limits = (numbers[i], _given(now, name))
                    said = _differs(*got, *want[i], *limits)
                    if said and _differs(*got, *want[i], *limits, _moved(now)[i]):
                        return f"{where}, {name}, output {i}: {said}"
            ran += 1
            if ran == OTHERS:
                break
    return ""


def _compiled_on_numpy(case: Program) -> list[Any]:
    from emberlet.host.numpy_backend.compile import compile as compiled

    tensors = case.tensors(get_backend("numpy"))
    planned = compiled(case.function(), *tensors)
    planned(*tensors)
    return [_array(x) for x in planned(*tensors)]


def _wasm(case: Program) -> list[Any]:
    return [_array(x) for x in case.function()(*case.tensors(get_backend("wasm")))]


def _wasm_compiled(case: Program) -> list[Any]:
    from emberlet.wgpu_backend.compiled import compile as compiled

    tensors = case.tensors(get_backend("numpy"))
    return [_array(x) for x in compiled(case.function(), *tensors, backend="wasm")(*tensors)]


ON_WASM = ("wasm", "wasm compiled")
TARGETS: dict[str, Callable[[Program], list[Any] | None]] = {
    "python": _python,
    "numpy compiled": _compiled_on_numpy,
    "wgpu": _plain,
    "wgpu compiled": _compiled,
    "a saved plan": _saved,
    "wasm": _wasm,
    "wasm compiled": _wasm_compiled,
}
