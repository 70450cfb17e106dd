"""Outputs, losses and times of a model and its variants, for the report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from emberlet.codegen.quantized.writing import Scheme
from numpy.typing import NDArray

from ....errors import EmberletError
from ....tensor import Tensor
from ...quantization.comparison import Outputs, compare
from ...quantization.report import Kept, Layer, Time
from ..results import parts
from .models import Arrays, Source, calls, nbytes

FEW = 64
"""Samples on which variants of the model are compared, and each layer alone where there are few."""
LEAST, PASSES = 8, 1024
"""Samples on which each layer alone is compared where there are many, and about how many for all layers together."""
BUDGET = 0.3
"""Seconds that a backend's time is measured for, at most about twice that."""

Tell = Callable[[str], None]


def outputs(model: Any, source: Source, samples: Arrays, compiled: bool = True) -> Outputs:
    """The outputs of a model on NumPy, by name, rows along the first axis."""
    call = model.compile(backend="numpy") if compiled else model
    found: dict[str, list[NDArray[Any]]] = {}
    with _without_warnings():
        for given in calls(source.inputs, samples, 32):
            for name, x in _named(call(*given), source.loaded.outputs).items():
                x = np.asarray(x)
                if x.dtype.kind == "V":  # floats of a dtype that NumPy lacks
                    x = x.astype(np.float32)
                found.setdefault(name, []).append(x if x.ndim else x.reshape(1))
    if compiled and call.cut is not None:
        source.planless = str(call.cut)
    if not found:
        raise EmberletError("the model gives no outputs for these samples, or they do not fill its batch")
    return {name: _stacked(pieces) for name, pieces in found.items()}


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Without the library's warnings that a model has no plan, or scales no room: the command says so once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _stacked(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    if len({x.shape[1:] for x in pieces}) == 1:
        return np.concatenate(pieces)
    return np.concatenate([x.reshape(-1) for x in pieces])  # lengths that differ


def _named(result: Any, names: Sequence[str]) -> dict[str, Any]:
    results = list(result) if isinstance(result, tuple) else [result]
    if len(names) != len(results):
        names = [f"output_{k}" for k in range(len(results))]
    found = {}
    for name, x in zip(names, results, strict=True):
        if isinstance(x, Tensor) or hasattr(x, "shape"):
            found[name] = x
        else:
            found.update({key: y for key, y in parts(name, x).items() if hasattr(y, "shape")})
    return found


def few(source: Source, samples: Arrays, most: int = FEW) -> Arrays:
    """The first samples, as many as fill the last batch where its size is fixed."""
    shapes = [i.shape for i in source.inputs if i.shape and samples[i.name].ndim == len(i.shape)]
    batch = max((shape[0] for shape in shapes if isinstance(shape[0], int)), default=1) or 1
    most = -(-most // batch) * batch
    return {name: x[:most] if x.ndim else x for name, x in samples.items()}


def count(samples: Arrays) -> int:
    """How many samples these are."""
    return len(next(iter(samples.values())))


def layers(source: Source, scheme: Scheme, samples: Arrays, tell: Tell) -> tuple[list[Layer], int]:
    """(what each layer loses if it alone is quantized, the worst first; the number of samples that this is measured
    on)"""
    names = [name for name in source.layers if name not in scheme.keep]
    samples = few(source, samples, min(FEW, max(LEAST, PASSES // max(len(names), 1))))
    wanted = outputs(source.model, source, samples, compiled=False)
    found = []
    for k, name in enumerate(names):
        tell(f"quantizing layer {k + 1} of {len(names)} alone: {name}")
        with _without_warnings():
            made = source.variant(scheme, [name])
        got = outputs(made, source, samples, compiled=False)
        found.append(Layer(name, source.layers[name], compare(wanted, got).rms))
    return sorted(found, key=lambda layer: -layer.alone), count(samples)


def kept(
    source: Source, scheme: Scheme, worst: Sequence[Layer], samples: Arrays, labels: NDArray[Any] | None, tell: Tell
) -> list[Kept]:
    """What keeping the worst layers in float gives, for 0, 1, 2, 4, … of them."""
    wanted = outputs(source.model, source, samples, compiled=False)
    labels = None if labels is None else labels[: len(next(iter(wanted.values())))]
    found: list[Kept] = []
    for n in (0, 1, 2, 4, 8, 16):
        names = [layer.name for layer in worst[:n]]
        if n >= len(worst):
            break
        tell(f"keeping the worst {n} of {len(worst)} layers in float")
        with _without_warnings():
            model = source.variant(scheme.keeping(names))
        comparison = compare(wanted, outputs(model, source, samples, compiled=False), labels)
        found.append(Kept(n, names[-1] if names else "", nbytes(model), comparison))
    return found


def times(
    source: Source, quantized: Any, packed: Any, samples: Arrays, backends: Sequence[str], tell: Tell
) -> list[Time]:
    """The time of a call with one sample, or one batch where that is fixed, of the models on each backend. packed: the
    model with its weights alone quantized, or None."""
    given = calls(source.inputs, samples, 1)[0]
    models = [source.model, quantized, *([] if packed is None else [packed])]
    found = []
    for backend in backends:
        tell(f"measuring the time on {backend}")
        try:
            runs = [_call(model, backend, given) for model in models]
            with _without_warnings():
                before, after, *more = (seconds * 1e3 for seconds in _least(runs))
            found.append(Time(backend, before, after, weights=more[0] if more else None))
        except (EmberletError, ImportError) as error:
            found.append(Time(backend, None, None, (str(error) or type(error).__name__).splitlines()[0][:60]))
    return found


def _call(model: Any, backend: str, given: Sequence[NDArray[Any]]) -> Callable[[], Any]:
    from ....functional.arrays import asarray

    moved = model.fork(backend)
    tensors = [asarray(x, backend=backend) for x in given]
    call = moved if backend == "python" else moved.compile(backend=backend)

    def run() -> Any:
        result = call(*tensors)
        first = result[0] if isinstance(result, tuple) else result
        return np.asarray(first) if hasattr(first, "shape") else first

    return run


def _least(runs: Sequence[Callable[[], Any]]) -> list[float]:
    """The shortest times of functions, called in turn, after a first call of each."""
    for call in runs:
        call()
    best = [float("inf")] * len(runs)
    end = time.perf_counter() + BUDGET
    while True:
        for k, call in enumerate(runs):
            begin = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - begin)
        if time.perf_counter() > end:
            return best
