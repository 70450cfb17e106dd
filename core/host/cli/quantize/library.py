"""Quantizing a model and measuring what that costs: what the command and `emberlet.codegen.quantize` have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from emberlet.codegen.quantized import writing

from ....backend import names
from ....errors import ArgumentError, UnsupportedError
from ...quantization.comparison import Outputs, accuracy, check_labels, compare
from ...quantization.report import Report
from ...quantization.report import samples as counted
from . import measuring
from .checks import PERCENTILE, check
from .models import Source, nbytes
from .ranged import OfEachCall, Ranged
from .rewritten import Dynamic, Static
from .samples import fitted

Tell = Callable[[str], None]
During = Callable[[str], AbstractContextManager[Any]]


class Made(NamedTuple):
    """A quantized model. text: the source of its module; more: other files, by name."""

    model: Any
    text: str
    more: dict[str, bytes]
    report: Report


class Quantized(NamedTuple):
    """model: the quantized model, on NumPy; report: what that costs, a page of text with str(), data with as_json()."""

    model: Any
    report: Report


def quantize(
    model: str | Path, samples: Any, *, labels: Any = None, bits: int = 8, mode: str = "symmetric",
    level: str | int | tuple[int, int] = "channel", scale_dtype: str = "float32", value_dtype: str | None = None,
    weights: str = "rtn", equalize: bool = False, correct_bias: bool = False, activations: str | None = None,
    method: str = "minmax", percentile: float = PERCENTILE, keep: Sequence[str] = (), keep_worst: int = 0,
    backends: Sequence[str] = (), onnx: str | None = None, name: str | None = None, out: str | Path | None = None,
    force: bool = False, tell: Tell | None = None,
) -> Quantized:  # fmt: skip
    """Quantize a model as `emberlet quantize` does (docs/quantization.md), and measure what that costs.

    model: an ONNX file, or a generated module (.py), which is executed. samples: input name -> array, a row for each
    sample, or the array of a model with one input; labels: the class of each. bits, mode, level, scale_dtype,
    value_dtype, correct_bias, keep: as in `Module.quantize_weights`, and weights its `method`. equalize: scale channels
    of consecutive layers (ONNX files). activations: None for floats, "static" for ranges from the samples by `method`
    and `percentile`, "dynamic" for the range of each call. keep_worst: how many of the layers that lose
    most stay in float. backends: those to measure times on. out: a folder to write the module, its weights, the
    report's page and, with activations or `onnx`, an ONNX file to, under `name`; force: also over files that others
    wrote. tell(text) is called with what is being done.

    Raises EmberletError for samples that do not fit, UnsupportedError for what cannot be quantized so, OverwriteError.
    """
    columns = dict(samples) if isinstance(samples, Mapping) else {"": np.asarray(samples)}
    columns = {key: np.asarray(x) for key, x in columns.items()}
    lengths = {key: len(x) if x.ndim else 0 for key, x in columns.items()}
    if labels is not None:
        labels = np.asarray(labels)
        lengths["labels"] = len(labels) if labels.ndim == 1 and labels.dtype.kind in "biuf" else 0
    if not columns or 0 in lengths.values() or len(set(lengths.values())) > 1:
        raise ArgumentError(
            "samples are arrays by the names of the inputs, or the only one, with a row for each sample, and labels as "
            f"many numbers; found {lengths or 'none'}"
        )
    words: dict[str, Any] = {
        "bits": bits, "mode": mode, "level": level, "scale_dtype": scale_dtype, "value_dtype": value_dtype
    }  # fmt: skip
    check(
        scheme=words, weights=weights, activations=activations, method=method, percentile=percentile, onnx=onnx,
        keep_worst=keep_worst,
    )  # fmt: skip
    keep, backends = ([given] if isinstance(given, str) else list(given) for given in (keep, backends))
    unknown = [each for each in backends if each.partition(":")[0] not in names()]
    if unknown:
        raise UnsupportedError(f"there is no backend {unknown[0]!r}; the backends are {', '.join(names())}")
    path, held = str(model), dict[str, Any]()

    def fit(inputs: Any) -> Any:
        if not held:
            held.update(fitted(columns, inputs, {}))
        return held

    tell = tell or (lambda _: None)
    source = source_of(path, name, activations, method, percentile, equalize, onnx, fit, tell)
    fit(source.inputs)
    source.check(keep, keep_worst)
    scheme = source.scheme(writing.Scheme(**words, keep=keep, method=weights))
    if out is not None:
        text = writing.quantizing(source.text, scheme)
        writing.check(Path(out), source.stem, text, source.files, force, source.writes_onnx)
    made = measured(
        source, scheme, held, labels=labels, correct_bias=correct_bias, keep_worst=keep_worst, backends=backends,
        how=said(weights, equalize, correct_bias), tell=tell,
    )  # fmt: skip
    if out is not None:
        write(Path(out), source, made)
    return Quantized(made.model, made.report)


def source_of(
    path: str, name: str | None, activations: str | None, method: str, percentile: float, equalize: bool,
    onnx: str | None, fit: Callable[[Any], Any], tell: Tell,
) -> Source:  # fmt: skip
    """The float model and its variants. fit: a function from inputs to samples."""
    if path.endswith(".onnx") and activations:
        if activations == "dynamic":
            return Dynamic(path, name, equalize)
        return Static(path, name, fit, method, percentile, tell, equalize, onnx or "qdq")
    if activations == "dynamic":
        return OfEachCall(path, name, equalize, onnx)
    if activations:
        return Ranged(path, name, fit, method, percentile, tell, equalize, onnx)
    return Source(path, name, equalize, onnx)


def measured(
    source: Source, scheme: writing.Scheme, samples: dict[str, Any], *, labels: Any, correct_bias: bool,
    keep_worst: int, backends: Sequence[str], how: str, tell: Tell, during: During = nullcontext,
) -> Made:  # fmt: skip
    """Quantize a model and measure what that costs. how: words for how the weights were chosen; during(text) surrounds
    the parts that take long."""
    some = measuring.few(source, samples)
    marked = None if labels is None else labels[: measuring.count(some)]
    if labels is not None:  # before what takes long
        check_labels(next(iter(measuring.outputs(source.model, source, some, compiled=False).values())), labels)
    with during("choosing weights"):
        source.choose(scheme, correct_bias, samples, tell)
        scheme = source.scheme(scheme)
    worst, alone = measuring.layers(source, scheme, samples, tell)
    if keep_worst:
        names = [layer.name for layer in worst[:keep_worst]]
        scheme, worst = scheme.keeping(names), [layer for layer in worst if layer.name not in names]
    held = measuring.kept(source, scheme, worst, some, marked, tell)
    with during("comparing"):
        model, text, more = source.final(scheme)
        wanted = measuring.outputs(source.model, source, samples)
        found = measuring.outputs(model, source, samples)
        rows = len(next(iter(found.values())))
        labels = None if labels is None else labels[:rows]
        comparison = compare(wanted, found, labels)
    timed = backends and source.activations is not None
    packed = Source.variant(source, scheme.with_activations(None)) if timed else None
    report = Report(
        model=source.stem,
        scheme=f"{scheme}{how}",
        activations=source.activations,
        samples=measuring.count(samples),
        before=source.before(),
        after=nbytes(model),
        comparison=comparison,
        accuracy=None if labels is None else accuracy(next(iter(wanted.values())), labels),
        layers=worst,
        kept=held,
        times=measuring.times(source, model, packed, samples, backends, tell),
        few=measuring.count(some),
        alone=alone,
        held=scheme.keep,
        notes=(*_few(samples), *_nan(wanted), *source.notes, *_planless(source.planless)),
    )
    return Made(model, text, more, report)


def said(method: str, equalize: bool, bias: bool) -> str:
    """How the weights were chosen, for the report."""
    word = {"rtn": "", "gptq": ", by GPTQ", "awq": ", by AWQ"}[method]
    return word + (", equalized" if equalize else "") + (", biases corrected" if bias else "")


def _few(samples: dict[str, Any]) -> tuple[str, ...]:
    count = measuring.count(samples)
    said = f"{counted(count)} say{'s' if count == 1 else ''} little"
    return (f"{said}; 100 or more of what the model will see say more",) if count < 20 else ()


def _nan(outputs: Outputs) -> tuple[str, ...]:
    names = [name for name, x in outputs.items() if x.dtype.kind == "f" and np.isnan(x).any()]
    return tuple(f"the float model's {name} holds NaN, which counts as no difference if it stays" for name in names)


def _planless(why: str) -> tuple[str, ...]:
    return (f"the model has no plan on NumPy and runs operation by operation there: {why}",) if why else ()


def write(out: Path, source: Source, made: Made) -> list[str]:
    """Write the module, its weights, the report's page and other files; returns their paths. Raises OSError."""
    from emberlet.codegen.generation import made_folder

    from ...quantization.page import as_html
    from ...together import together

    more = {**made.more, source.stem + ".quantized.html": as_html(made.report).encode()}
    metadata = {"generator": "emberlet", "model": source.stem, "quantized": made.report.scheme}
    with made_folder(out), together(out) as draft:
        writing.write(draft, source.stem, made.text, made.model, metadata, more)
    return [str(out / name) for name in (source.stem + ".py", source.stem + ".bpk", *more)]
