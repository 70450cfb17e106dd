"""emberlet quantize MODEL --calibration DATA --out DIR: a smaller model, and a report of what that costs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import EmberletError
from ...extras import missing, require
from ..plain import noted, plain
from ..progress import step
from .checks import FORMS, METHODS, PERCENTILE, WEIGHTS, check

if TYPE_CHECKING:
    from .library import Made
    from .models import Source

SCALES = {"float16": "float16", "bfloat16": "bfloat16", "e8m0": "float8_e8m0fnu", "ue4m3": "float8_e4m3fn"}
VALUES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m1": "float4_e2m1fn", "nf4": "nf4"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file, or a generated module (.py), which is executed")
    parser.add_argument(
        "--calibration",
        nargs="+",
        required=True,
        metavar="DATA",
        help="samples of the inputs: an .npz or .npy file, or Parquet, CSV, pictures, folders of them",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write to")
    parser.add_argument("--name", help="name of the files (default: the model file's)")
    parser.add_argument("--bits", type=int, default=8, choices=(8, 4, 2), help="of each weight (default: 8)")
    parser.add_argument(
        "--scheme",
        default="symmetric",
        metavar="WORDS",
        help="of the weights: symmetric or affine; what shares a scale: tensor, channel, a number of weights, or "
        "channels x weights of each (128x128); the scales: float16, bfloat16, e8m0 or ue4m3 instead of float32; "
        "values that are no integers: e4m3, e5m2, e2m1 or nf4; "
        "affine,32,float16 for example (default: symmetric,channel)",
    )
    parser.add_argument(
        "--weights",
        default="rtn",
        metavar="WORDS",
        help="how the weights are chosen: rtn (to the nearest), gptq or awq (by the samples); and equalize (weights of "
        "consecutive layers, ONNX files) and bias (correct biases by the samples); equalize,bias for example "
        "(default: rtn)",
    )
    parser.add_argument(
        "--onnx",
        choices=FORMS,
        help="write an ONNX file with the quantized weights, too: DequantizeLinear of integers, or MatMulNBits for "
        "products of matrices; with static activations qdq (the default) or qoperator, operators on integers",
    )
    parser.add_argument(
        "--activations",
        nargs="?",
        const="static",
        choices=("static", "dynamic"),
        help="quantize activations to 8 bits, too: static, by the samples' ranges (the default), or "
        "dynamic, the inputs of products by the range of each call",
    )
    parser.add_argument(
        "--method", choices=METHODS, help="how the ranges of static activations are chosen (default: minmax)"
    )
    parser.add_argument("--percentile", type=float, default=PERCENTILE, help="share of the values in a range (99.99)")
    parser.add_argument(
        "--keep", action="append", default=[], metavar="LAYER", help="a layer that stays in float; repeat for more"
    )
    parser.add_argument(
        "--keep-worst", type=int, default=0, metavar="N", help="keep the N layers in float that lose most"
    )
    parser.add_argument(
        "--input", action="append", default=[], metavar="NAME=COLUMN[,COLUMN…]", help="the column for an input"
    )
    parser.add_argument("--labels", metavar="COLUMN", help="the column of classes, for accuracies")
    parser.add_argument("--preprocess", metavar="MODULE:FUNCTION", help="a function from a batch to the model's inputs")
    parser.add_argument("--samples", type=int, default=512, metavar="N", help="samples to read, at most (default: 512)")
    parser.add_argument(
        "--time",
        default="all",
        metavar="BACKENDS",
        help="backends to time on, separated by commas, or none (default: all of numpy, native, wasm, wgpu)",
    )
    parser.add_argument(
        "--fail-below",
        type=float,
        metavar="SHARE",
        help="write nothing and end with status 1 if the accuracy (without labels: the agreement) is below, 0 to 1",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--force", action="store_true", help="overwrite files that were edited, or that others wrote")


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)  # refuses before anything is read
    require("emberlet quantize", "numpy")
    from emberlet.codegen.quantized import writing

    from . import library
    from .samples import fitted, read, taken

    method, equalize, bias = weight_words(arguments.weights)
    words = scheme_words(arguments.scheme, arguments.bits)
    with step("reading samples"):
        columns, labels = taken(read(arguments.calibration, arguments.samples), arguments.labels)
        columns = _preprocessed(columns, arguments.preprocess)
    given = {name: column.split(",") for name, column in _pairs(arguments.input).items()}
    samples: dict[str, Any] = {}

    def fit(inputs: Any) -> Any:
        if not samples:
            samples.update(fitted(columns, inputs, given))
        return samples

    with step(f"reading {arguments.model}"):
        source = library.source_of(
            arguments.model, arguments.name, arguments.activations, arguments.method or METHODS[0],
            arguments.percentile, equalize, arguments.onnx, fit, _tell,
        )  # fmt: skip
        fit(source.inputs)
    source.check(arguments.keep, arguments.keep_worst)
    scheme = source.scheme(writing.Scheme(arguments.bits, **words, method=method, keep=arguments.keep))
    out, inputs = Path(arguments.out), [*source.files, *arguments.calibration]
    text = writing.quantizing(source.text, scheme)
    writing.check(out, source.stem, text, inputs, arguments.force, source.writes_onnx)

    made = library.measured(
        source, scheme, samples, labels=labels, correct_bias=bias, keep_worst=arguments.keep_worst,
        backends=_backends(arguments.time), how=library.said(method, equalize, bias), tell=_tell, during=_shown,
    )  # fmt: skip
    report = made.report
    comparison = report.comparison
    failed = arguments.fail_below is not None and not comparison.share >= arguments.fail_below
    # Before the report: who reads only its first lines, through a pipe, wants the files as well.
    written = [] if failed else _written(out, source, made)
    print(json.dumps(report.as_json(), indent=2) if arguments.json else plain(str(report)))
    if failed and not arguments.json:
        print(plain(f"\n{comparison.share:.2%} is below {arguments.fail_below:.2%}: nothing was written"))
    elif not arguments.json:
        print(plain(f"\nwrote {', '.join(written)}"))
    return 1 if failed else 0


@contextmanager
def _shown(text: str) -> Iterator[None]:
    with step(text), noted():
        yield


def _written(out: Path, source: Source, made: Made) -> list[str]:
    from . import library

    with step(f"writing {out}"):
        return library.write(out, source, made)


def scheme_words(text: str, bits: int) -> dict[str, Any]:
    """The arguments of WeightScheme, by name, of words such as "affine,32". Raises EmberletError."""
    found: dict[str, Any] = {"mode": "symmetric", "level": "channel", "scale_dtype": "float32", "value_dtype": None}
    said: dict[str, str] = {}
    value: str | int | tuple[int, int]
    for word in text.split(","):
        if word in ("symmetric", "affine"):
            key, value = "mode", word
        elif word in ("tensor", "channel"):
            key, value = "level", word
        elif _is_count(word):
            key, value = "level", int(word)
        elif len(sides := word.split("x")) == 2 and all(map(_is_count, sides)):
            key, value = "level", (int(sides[0]), int(sides[1]))
        elif word in SCALES:
            key, value = "scale_dtype", SCALES[word]
        elif word in VALUES:
            key, value = "value_dtype", VALUES[word]
        else:
            raise EmberletError(
                f"--scheme {text}: {word!r} is none of symmetric, affine, tensor, channel, a number of weights, "
                f"channels x weights of each (128x128), "
                f"{', '.join(SCALES)} (scales), {', '.join(VALUES)} (values)"
            )
        if said.setdefault(key, word) != word:
            raise EmberletError(f"--scheme {text}: {said[key]!r} and {word!r} contradict each other; give one of them")
        found[key] = value
    level = found["level"]
    side = level[1] if isinstance(level, tuple) else level
    if isinstance(side, int) and side * bits % 8:
        raise EmberletError(f"--scheme {text}: {said['level']} weights of {bits} bits do not fill whole bytes")
    return found


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 11 and 0 < int(word) < 1 << 31


def weight_words(text: str) -> tuple[str, bool, bool]:
    """(method, whether to equalize, whether to correct biases) of words such as "gptq,bias". Raises EmberletError."""
    words = text.split(",")
    methods = [word for word in words if word in WEIGHTS]
    for word in words:
        if word not in (*WEIGHTS, "equalize", "bias"):
            raise EmberletError(f"--weights {text}: {word!r} is none of {', '.join(WEIGHTS)}, equalize and bias")
    if len(methods) > 1:
        raise EmberletError(f"--weights {text}: give one of {', '.join(WEIGHTS)}")
    return methods[0] if methods else "rtn", "equalize" in words, "bias" in words


def _check(a: argparse.Namespace) -> None:
    words = {"bits": a.bits, **scheme_words(a.scheme, a.bits)}
    check(
        scheme=words, weights=weight_words(a.weights)[0], activations=a.activations,
        method=a.method or METHODS[0], percentile=a.percentile, onnx=a.onnx, keep_worst=a.keep_worst,
    )  # fmt: skip
    if a.samples < 1:
        raise EmberletError(f"--samples is {a.samples}, expected 1 or more")
    if a.fail_below is not None and not 0 <= a.fail_below <= 1:
        raise EmberletError(f"--fail-below is {a.fail_below:g}, expected a share from 0 to 1")
    _backends(a.time)


def _backends(words: str) -> list[str]:
    """The backends of --time. Raises EmberletError."""
    from ....backend import names

    if words == "none":
        return []
    if words == "all":
        needs = {"numpy": "numpy", "native": "llvmlite", "wasm": "wasmtime", "wgpu": "wgpu"}
        return [name for name, library in needs.items() if not missing([library])]
    found = words.split(",")
    for name in found:
        if name.partition(":")[0] not in names():
            raise EmberletError(f"--time {words}: there is no backend {name!r}; the backends are {', '.join(names())}")
    return found


def _pairs(given: list[str]) -> dict[str, str]:
    found = {}
    for word in given:
        name, _, column = word.partition("=")
        if not name or not column:
            raise EmberletError(f"--input {word}: expected NAME=COLUMN")
        found[name] = column
    return found


def _preprocessed(columns: dict[str, Any], named: str | None) -> dict[str, Any]:
    if named is None:
        return columns
    from ....batch.opened import function

    return dict(function(named)(columns))


def _tell(text: str) -> None:
    """Show what is being done, on a terminal."""
    import sys

    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{plain(text)} …\r")
        sys.stderr.flush()
