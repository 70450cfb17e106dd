"""emberlet verify MODEL.onnx --backend NAME"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from math import isfinite
from typing import Any

from ... import dtypes
from ...errors import EmberletError
from ...tensor import Tensor
from .. import extras
from . import model as models
from .plain import plain
from .progress import step


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    models.add_arguments(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs that are not given (default: 0)")
    models.add_sizes(parser)
    parser.add_argument("--atol", type=float, default=1e-4, help="absolute tolerance (default: 1e-4)")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative tolerance (default: 1e-3)")
    parser.add_argument("--reference", choices=("onnxruntime", "onnx"), help="what to compare with")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def run(arguments: argparse.Namespace) -> int:
    extras.require("verify", "onnx", "numpy")
    import numpy as np

    if not arguments.model.endswith(".onnx"):
        raise EmberletError(f"{arguments.model}: expected an .onnx file")
    for option in ("seed", "atol", "rtol"):
        if not 0 <= getattr(arguments, option):  # nor NaN
            raise EmberletError(f"--{option} is {getattr(arguments, option)}, expected 0 or more")
    with step(f"loading {arguments.model}"):
        loaded = models.load(arguments.model, arguments.backend)
    inputs = models.read_inputs(loaded, arguments.input, arguments.backend)
    sizes = models.sizes(arguments.dim, loaded)
    random = np.random.default_rng(arguments.seed)
    for i in loaded.inputs:
        if i.name not in inputs:
            inputs[i.name] = _drawn(i, sizes, random, arguments.backend)
    with step("running"):
        ours = {name: to_numpy(x) for name, x in loaded(inputs).items()}
    with step("running the reference"):
        reference, call = _reference(arguments.model, arguments.reference)
        try:
            wanted = call({name: to_numpy(x) for name, x in inputs.items()})
        except Exception as error:  # neither's errors have a common base
            raise EmberletError(f"{reference} fails on these inputs: {error}") from None
    rows = []
    for (name, got), expected in zip(ours.items(), wanted, strict=True):
        rows.append({"output": name, **compare(got, np.asarray(expected), arguments.atol, arguments.rtol)})
    good = all(row["within"] for row in rows)
    if arguments.json:
        for row in rows:  # JSON has neither infinity nor NaN
            row.update({key: None for key, value in row.items() if isinstance(value, float) and not isfinite(value)})
        print(json.dumps({"reference": reference, "outputs": rows, "within": good}, indent=2))
        return 0 if good else 1
    print(plain(f"compared with {reference}, tolerance {arguments.atol:g} + {arguments.rtol:g} × |expected|"))
    for row in rows:
        mark = "ok " if row["within"] else "OUT"
        print(plain(f"{mark} {row['output']}: {row['note']}"))
    return 0 if good else 1


def compare(got: Any, expected: Any, atol: float, rtol: float) -> dict[str, Any]:
    """The largest absolute and relative difference of two arrays, and whether all elements are within tolerance."""
    import numpy as np

    if got.shape != expected.shape:
        return {"within": False, "note": f"shape {got.shape} where {expected.shape} is expected"}
    if got.dtype.kind in "OUSTb" or expected.dtype.kind in "OUSTb":
        different = int((got.astype(str) != expected.astype(str)).sum())
        return {"within": not different, "different": different, "note": f"{different} of {got.size} elements differ"}
    a, b = got.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", divide="ignore"):
        absolute = np.where(same, 0.0, np.abs(a - b))
        relative = np.where(same, 0.0, absolute / np.abs(b))
        near = np.isfinite(b) & (absolute <= atol + rtol * np.abs(b))
    within = bool(np.all(same | near))
    largest = float(absolute.max(initial=0.0))
    ratio = float(relative.max(initial=0.0))
    note = f"{got.dtype} {got.shape} differs by at most {largest:.3g} absolute, {ratio:.3g} relative"
    return {"within": within, "absolute": largest, "relative": ratio, "note": note}


def _drawn(i: models.Input, sizes: dict[str, int], random: Any, backend: str | None) -> Tensor:
    """A random input: normal floats, integers of 0 to 9, fair bools; dimensions of unknown size are 1."""
    import numpy as np

    from ...functional.arrays import asarray

    if i.dtype is None or i.shape is None or i.dtype is dtypes.string:
        raise EmberletError(f"nothing can be drawn for the input {i}; give --input {i.name}=FILE.npy")
    shape = models.sized(i.shape, sizes)
    if i.dtype.is_float:
        values = random.standard_normal(shape).astype(np.float32)
    elif i.dtype.is_bool:
        values = random.integers(0, 2, shape).astype(bool)
    else:
        high = 10 if i.dtype.bits >= 8 else 2 ** (i.dtype.bits - 1)
        values = random.integers(0, high, shape)
    return asarray(values, dtype=i.dtype, backend=backend)


def to_numpy(x: Tensor) -> Any:
    """The tensor as a NumPy array (of ml_dtypes' types where NumPy has none; strings as objects)."""
    import numpy as np

    if x.dtype is dtypes.string:
        return np.array(x.backend.to_list(x), dtype=object).reshape(x.shape)
    if x.dtype.bits >= 8 and x.dtype.code is not None:
        data = np.frombuffer(bytes(x.backend.to_bytes(x)), dtype=np.bool_ if x.dtype.is_bool else x.dtype.name)
        return data.reshape(x.shape)
    import ml_dtypes

    values = np.array(x.backend.to_list(x), dtype=np.float32).reshape(x.shape)
    return values.astype(getattr(ml_dtypes, x.dtype.name))


def _reference(path: str, asked: str | None) -> tuple[str, Callable[[dict[str, Any]], list[Any]]]:
    """(name, function from named inputs to the list of outputs): onnxruntime, else ONNX's reference."""
    problem: Exception | None = None
    if asked != "onnx":
        try:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            return f"onnxruntime {onnxruntime.__version__}", lambda inputs: list(session.run(None, inputs))
        except Exception as error:  # onnxruntime's errors have no common base
            if asked == "onnxruntime":
                raise EmberletError(f"onnxruntime cannot run {path}: {error}") from None
            problem = error
    import onnx
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(path)
    name = f"ONNX's reference {onnx.__version__}"
    if not isinstance(problem, ImportError) and problem is not None:
        name += f" (onnxruntime refuses the model: {str(problem).splitlines()[0]})"
    return name, lambda inputs: list(evaluator.run(None, inputs))
