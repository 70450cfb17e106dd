"""What options of quantizing exclude each other: those of the command, and of `emberlet.codegen.quantize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....errors import UnsupportedError
from ....functional.quantized.weights import WeightScheme

WEIGHTS = ("rtn", "gptq", "awq")  # store/weight_methods, which needs NumPy
METHODS = ("minmax", "moving-average", "percentile", "entropy", "mse")  # quantization/calibration.py, which needs NumPy
PERCENTILE = 99.99
FORMS = ("qdq", "nbits", "qoperator")  # of the ONNX file


def check(
    *, scheme: Mapping[str, Any], weights: str, activations: str | None, method: str, percentile: float,
    onnx: str | None, keep_worst: int,
) -> None:  # fmt: skip
    """Raise UnsupportedError for words that are none, or exclude each other. scheme: bits, mode, level, scale_dtype
    and value_dtype."""
    for named, given, known in (
        ("weights", weights, WEIGHTS), ("activations", activations, (None, "static", "dynamic")),
        ("method", method, METHODS), ("onnx", onnx, (None, *FORMS)),
    ):  # fmt: skip
        if given not in known:
            raise UnsupportedError(f"{named} is one of {', '.join(map(str, known))}, found {given!r}")
    of = WeightScheme(
        scheme["bits"], scheme["mode"], scheme["level"], "min-max", scheme["scale_dtype"], scheme["value_dtype"]
    )
    if scheme["value_dtype"] is not None and weights != "rtn":
        raise UnsupportedError(f"{weights} chooses integers, not {scheme['value_dtype']}; leave one of them out")
    if activations and repr(of) != repr(WeightScheme()):
        raise UnsupportedError(
            "activations need weights of 8 bits, symmetric, a scale for each channel: leave out bits and the scheme "
            "(mode, level, scale_dtype, value_dtype), or activations"
        )
    _check_activations(activations, method, percentile)
    _check_file(activations, onnx)
    if keep_worst < 0:
        raise UnsupportedError(f"keep_worst is {keep_worst}, expected 0 or more")


def _check_activations(activations: str | None, method: str, percentile: float) -> None:
    if activations != "static" and (method != METHODS[0] or percentile != PERCENTILE):
        raise UnsupportedError('method and percentile choose the ranges of activations="static" (--activations); leave '
                               "them out")  # fmt: skip
    if not 50 < percentile <= 100:
        raise UnsupportedError(f"percentile is {percentile:g}, expected more than 50 and at most 100")


def _check_file(activations: str | None, onnx: str | None) -> None:
    if activations == "dynamic" and onnx:
        raise UnsupportedError("dynamic activations write an ONNX file themselves: leave out onnx")
    if activations == "static" and onnx == "nbits":
        raise UnsupportedError("MatMulNBits (nbits) takes floats: give onnx qdq or qoperator, or leave out activations")
    if not activations and onnx == "qoperator":
        raise UnsupportedError("qoperator computes with integers: add static activations, or give onnx qdq or nbits")
