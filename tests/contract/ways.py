"""The ways of running what a case makes. Each opens a case and returns a function of arrays that gives the results as a
caller gets them."""

from __future__ import annotations

import copy
import os
import pickle
import re
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet.backend import get_backend
from emberlet.backend.axes import argument_names
from emberlet.errors import BackendError, EmberletError, IndexingError

from tools import components

from .case import COUNTED, Case

Run = Callable[[tuple[Any, ...]], Any]
BACKENDS = ("python", "numpy", "wgpu", "wasm", "native")


# All that a way may be left out for; each is counted. Parts of what `save` and the runtimes say are among them.
REASONS = (
    "no axis is left open",
    "functions are not copied",
    "a saved plan has one set of shapes, dtypes and numbers",
    # What a saved plan cannot hold
    "must not return empty",
    "live on the GPU",
    "cannot be saved",
    "must return a tensor",
    # Which sizes it cannot leave open
    "cannot be left open",
    "no single plan serves",
    "an index is outside at some lengths",
    # Runtimes
    "MicroPython has no NumPy",
    "calls that mean something else in other libraries are refused on CPython only",
    "a result that is no tensor",
    "no module named",
    "MicroPython's memory is full",
    "no typed array",
    # Fronts
    "files hold arrays",
    "the inputs or outputs are no rows",
)
# Errors of Python, of which no part of a plan may depend: they are bugs of whoever makes it.
PYTHON = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    ArithmeticError,
    AssertionError,
    RecursionError,
    ValueError,
)


class Unavailable(Exception):
    """This way has no form for this case, for one of REASONS."""

    def __init__(self, words: str) -> None:
        reason = next((r for r in REASONS if r in words), None)
        assert reason is not None, f"no way may be left out because of: {words}"
        super().__init__(reason)


class Broken(Exception):
    """A call changes what belongs to its caller."""


class Way(NamedTuple):
    """open: from a case and example arrays to a function of arrays. Raises what the product raises, and Unavailable
    where the documentation says that this case cannot be run so."""

    name: str
    backend: str
    open: Callable[[Case, tuple[Any, ...]], Run]


def tensors(arrays: tuple[Any, ...], backend: str) -> list[Any]:
    return [emberlet.asarray(a, backend=backend) if isinstance(a, np.ndarray) else a for a in arrays]


def _eager(backend: str) -> Way:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        model = case.make(backend)

        def run(arrays: tuple[Any, ...]) -> Any:
            given = owned(arrays, backend)
            result = model(*given)
            if not any(x is r for x in given for r in (result if isinstance(result, tuple) else (result,))):
                take_back(given, arrays)
            return result

        return run

    return Way(f"eager on {backend}", backend, open_)


def owned(arrays: tuple[Any, ...], backend: str) -> list[Any]:
    """Tensors of their own: `asarray(a)` shares memory with a, which docs/tensors.md says."""
    return [emberlet.asarray(a, backend=backend, copy=True) if isinstance(a, np.ndarray) else a for a in arrays]


def take_back(given: list[Any], arrays: tuple[Any, ...]) -> None:
    """Check that a call has left its tensors as they were, then assign to them, as their owner may."""
    for i, (x, array) in enumerate(zip(given, arrays, strict=True)):
        if not isinstance(x, emberlet.Tensor):
            continue
        # Not the array's bytes: where float64 is computed in float32, a tensor never had these.
        if np.asarray(x).tobytes() != np.asarray(emberlet.asarray(array, backend=x.backend, copy=True)).tobytes():
            raise Broken(f"a call changes its input {i}")
        if x.size and x.dtype.kind in ("float", "int", "uint"):
            x[...] = 113


def compiled(model: Any, backend: str, examples: list[Any], **options: Any) -> Any:
    """`compile` of a module or a function."""
    if hasattr(model, "compile"):
        return model.compile(*examples, backend=backend, **options)
    if backend == "numpy":
        from emberlet.host.numpy_backend.compile import compile as on_numpy

        return on_numpy(model, *examples, **options)
    from emberlet.wgpu_backend.compiled import compile as on_gpu

    return on_gpu(model, *examples, backend=backend, **options)


def planned(fast: Any, result: Any) -> Any:
    """The result, of a plan or not, for reasons that count.

    Raises:
        Broken: The reason is an error of Python, which a plan without open sizes, or none at all, would hide.
    """
    for what, why in (("no plan", fast.cut), ("a size is fixed", fast.fixed), ("no open sizes", fast.unopened)):
        for reason in why.values() if isinstance(why, dict) else () if why is None else (why,):
            if isinstance(reason.__cause__, PYTHON) and not isinstance(reason.__cause__, EmberletError):
                raise Broken(f"there is {what}, since {type(reason).__name__}: {reason}")
            COUNTED[f"calls: {what} ({type(reason).__name__})"] += 1
    return result


def _compiled(backend: str) -> Way:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        fast = compiled(case.make(), backend, [])
        return lambda arrays: planned(fast, fast(*tensors(arrays, backend if case.seed % 2 else "numpy")))

    return Way(f"compiled for {backend}", backend, open_)


def _changed(one: Any, other: Any) -> list[int]:
    """The lengths of an array that another has not."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray) or one.ndim != other.ndim:
        return []
    return [a for a, b in zip(one.shape, other.shape, strict=True) if a != b]


def opened_axes(case: Case, example: tuple[Any, ...]) -> dict[Any, dict[int, str]]:
    """The axes to leave open, as `compile` takes them: one length of the inputs, or two, first those that other calls
    change."""
    arrays = [a for a in example if isinstance(a, np.ndarray)]
    changed = {d for call in case.calls for a, b in zip(example, call, strict=False) for d in _changed(a, b)}
    lengths = sorted({d for a in arrays for d in a.shape if d > 1}, key=lambda d: (d not in changed, d))
    chosen = [d for i, d in enumerate(lengths) if d in changed or (case.seed >> i) & 1][:2]
    names = argument_names(case.make(), len(example))
    found = {
        name: {k: f"n{d}" for k, d in enumerate(a.shape) if d in chosen}
        for name, a in zip(names, example, strict=True)
        if isinstance(a, np.ndarray) and any(d in chosen for d in a.shape)
    }
    if not found:
        raise Unavailable("no axis is left open")
    return found


def _open_sizes(backend: str) -> Way:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        fast = compiled(case.make(), backend, [], dims=opened_axes(case, example))
        return lambda arrays: planned(fast, fast(*tensors(arrays, "numpy")))

    return Way(f"compiled for {backend} with open sizes", backend, open_)


def _by_default(case: Case, example: tuple[Any, ...]) -> Run:
    from emberlet.wgpu_backend.llvm.or_numpy import NativeOrNumpy

    model = case.make("numpy")
    fast = model.compile() if hasattr(model, "compile") else NativeOrNumpy(model)
    return lambda arrays: planned(fast, fast(*tensors(arrays, "numpy")))


def _pickled(case: Case, example: tuple[Any, ...]) -> Run:
    fast = pickle.loads(pickle.dumps(compiled(case.make(), "numpy", tensors(example, "numpy"))))
    return lambda arrays: fast(*tensors(arrays, "numpy"))


def _copied(backend: str) -> Way:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        model = case.make(backend)
        if not hasattr(model, "params"):
            raise Unavailable("functions are not copied")
        model = pickle.loads(pickle.dumps(model)) if case.seed % 2 else copy.deepcopy(model)
        return lambda arrays: model(*owned(arrays, backend))

    return Way(f"copied on {backend}", backend, open_)


def kinds_of(arrays: tuple[Any, ...]) -> list[Any]:
    """What a saved plan is made for."""
    return [(a.shape, a.dtype) if isinstance(a, np.ndarray) else a for a in arrays]


LONGEST = 64  # of the lengths that a saved module leaves open


def _saved_with_open_sizes(case: Case, example: tuple[Any, ...]) -> Run:
    from emberlet.wgpu_backend import plan_file
    from emberlet.wgpu_backend.wasm import writer

    opened = opened_axes(case, example)
    dims = {x: {k: (name, LONGEST) for k, name in axes.items()} for x, axes in opened.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.wasm")
        try:
            writer.save(path, case.make(), *tensors(example, "numpy"), dims=dims)
        except EmberletError as error:
            if any(words in str(error) for words in REASONS) and "cannot compute this" not in str(error):
                raise Unavailable(str(error)) from None
            if isinstance(error, IndexingError) and re.search(r" of length [a-z]", str(error)):
                raise Unavailable("an index is outside at some lengths") from None
            # A length that is open has its name in the words; eagerly it is the number after the n.
            raise type(error)(re.sub(r"\bn(\d+)\b", r"\1", str(error))) from None
        plan = plan_file.load(path)
    names = argument_names(case.make(), len(example))

    def kinds(arrays: tuple[Any, ...]) -> list[Any]:
        """What the module is made for: an array's dtype and shape, in which names stand for open lengths."""
        return [
            (a.dtype, *(opened.get(x, {}).get(k, n) for k, n in enumerate(a.shape))) if isinstance(a, np.ndarray) else a
            for x, a in zip(names, arrays, strict=True)
        ]

    def lengths(arrays: tuple[Any, ...]) -> set[tuple[str, int]]:
        pairs = zip(names, arrays, strict=True)
        return {(name, a.shape[k]) for x, a in pairs if isinstance(a, np.ndarray)
                for k, name in opened.get(x, {}).items() if k < a.ndim}  # fmt: skip

    def run(arrays: tuple[Any, ...]) -> Any:
        found = lengths(arrays)
        same = len({name for name, _ in found}) == len(found) and all(0 < n <= LONGEST for _, n in found)
        if kinds(arrays) != kinds(example) or not same:
            raise Unavailable("a saved plan has one set of shapes, dtypes and numbers")
        given = [x for x in tensors(arrays, "numpy") if isinstance(x, emberlet.Tensor)]
        return tuple(d.to_tensor("numpy") for d in plan.run(*given))

    return run


def _saved(backend: str) -> Way:
    def open_(case: Case, example: tuple[Any, ...]) -> Run:
        from emberlet.wgpu_backend import plan_file
        from emberlet.wgpu_backend.wasm import writer

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plan.wasm" if backend == "wasm" else "plan.bpk")
            save = writer.save if backend == "wasm" else plan_file.save
            try:
                save(path, case.make(), *tensors(example, "numpy"))
            except EmberletError as error:
                if any(words in str(error) for words in REASONS):
                    raise Unavailable(str(error)) from None
                raise
            device = None if backend == "wasm" else get_backend("wgpu").device
            plan = plan_file.load(path, device)
        kinds = kinds_of(example)

        def run(arrays: tuple[Any, ...]) -> Any:
            if kinds_of(arrays) != kinds:
                raise Unavailable("a saved plan has one set of shapes, dtypes and numbers")
            given = [x for x in tensors(arrays, "numpy") if isinstance(x, emberlet.Tensor)]
            return tuple(d.to_tensor("numpy") for d in plan.run(*given))

        return run

    return Way(f"saved for {backend} and loaded", backend, open_)


WAYS = [
    *(_eager(b) for b in BACKENDS if b != "numpy"),
    *(_compiled(b) for b in ("numpy", "wgpu", "wasm", "native")),
    Way("compiled by default", "native", _by_default),
    *(_open_sizes(b) for b in ("numpy", "wgpu", "wasm", "native")),
    Way("compiled for numpy and pickled", "numpy", _pickled),
    *(_copied(b) for b in ("numpy", "wasm", "native")),
    *(_saved(b) for b in ("wgpu", "wasm")),
    Way("saved for wasm with open sizes and loaded", "wasm", _saved_with_open_sizes),
]
REFERENCE = Way("eager on numpy", "numpy", lambda case, example: _eager("numpy").open(case, example))
# How often a way is tried, relative to the others: those on NumPy have the most forms, and the GPU's compile slowly.
SHARE = {"numpy": 0.5, "python": 0.3, "wgpu": 0.12, "wasm": 0.3, "native": 0.15}


def available() -> list[Way]:
    """The ways of this machine."""
    missing = set()
    if components.get("gpu-driver").find() is None:
        missing.add("wgpu")
    for name in ("wasm", "native"):
        try:
            get_backend(name)
        except BackendError:
            missing.add(name)
    return [w for w in WAYS if w.backend not in missing]
