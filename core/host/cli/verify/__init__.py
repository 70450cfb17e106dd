"""emberlet verify MODEL.onnx --backend NAME"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import Any

from .... import dtypes
from ....errors import EmberletError
from ....tensor import Tensor
from ... import extras
from ...memory import error_text
from ...other_formats import refusal
from .. import model as models
from .. import sizing
from ..plain import plain
from ..progress import step
from ..results import first_elements, parts
from . import ways


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    models.add_arguments(parser)
    models.add_freeze(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed of the inputs that are not given (default: 0)")
    models.add_sizes(parser)
    parser.add_argument("--atol", type=float, default=1e-4, help="absolute tolerance (default: 1e-4)")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative tolerance (default: 1e-3)")
    parser.add_argument("--reference", choices=("onnxruntime", "onnx"), help="what to compare with")
    parser.add_argument(
        "--ways",
        default="all",
        metavar="NAMES",
        help=f"which ways of running are compared, over {ways.DRAWS} inputs: {', '.join(ways.NAMES)}; all by default",
    )
    parser.add_argument("--bisect", action="store_true", help="name the first node whose value differs")
    parser.add_argument(
        "--idioms", action="store_true", help="say which patterns were recognized, and check each against its parts"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(arguments: argparse.Namespace) -> int:
    extras.require("verify", "onnx", "numpy")
    import numpy as np

    _check(arguments)
    with step(f"loading {arguments.model}"):
        loaded = models.load(arguments.model, arguments.backend, arguments.freeze)
    given = models.read_inputs(loaded, arguments.input, arguments.backend)
    free = replace(loaded, inputs=tuple(i for i in loaded.inputs if i.name not in given))

    def attempt(sizes: sizing.Sizes, seed: int = arguments.seed) -> tuple[dict[str, Tensor], dict[str, Any]]:
        random = np.random.default_rng(seed)
        drawn = {i.name: _drawn(i, sizes, random, arguments.backend) for i in free.inputs}
        inputs = {i.name: given[i.name] if i.name in given else drawn[i.name] for i in loaded.inputs}
        return inputs, {name: to_numpy(x) for name, x in loaded(inputs).items()}

    with step("running"):
        (inputs, ours), sizes = sizing.fitted(free, sizing.sizes(arguments.dim, loaded), attempt)
    if arguments.bisect:
        return _bisect(arguments, loaded, inputs)
    frozen = {name: to_numpy(x) for name, x in loaded.frozen.items()}
    with step("running the reference"):
        reference, call = _reference(arguments.model, arguments.reference)
        try:
            wanted = call({name: to_numpy(x) for name, x in inputs.items()} | frozen)
        except Exception as error:  # the errors of both have no common base
            raise EmberletError(f"{reference} fails on these inputs: {error_text(error)}") from None
    named = zip(loaded.outputs, wanted, strict=True)
    expected = {part: x for name, value in named for part, x in parts(name, value).items()}
    rows = [_row(arguments, name, ours, expected, reference) for name in {**ours, **expected}]
    run_so = _ways(arguments, loaded, inputs, attempt, sizes, call)
    named_patterns = _idioms(arguments, loaded, inputs, attempt, free, sizes) if arguments.idioms else []
    good = all(row["within"] for row in (*rows, *run_so, *named_patterns))
    if arguments.json:
        for row in (*rows, *named_patterns):  # JSON has neither infinity nor NaN
            row.update({key: None for key, value in row.items() if isinstance(value, float) and not isfinite(value)})
        said = {"reference": reference, "outputs": rows, "within": good, "sizes": sizes, "frozen": list(loaded.frozen)}
        said["ways"] = run_so
        if arguments.idioms:
            said["idioms"] = named_patterns
        print(json.dumps(said, indent=2))
        return 0 if good else 1
    print(plain(f"compared with {reference}, tolerance {arguments.atol:g} + {arguments.rtol:g} × |expected|"))
    if loaded.frozen:
        print(plain("frozen: " + ", ".join(f"{name} = {first_elements(x)}" for name, x in loaded.frozen.items())))
    if sizes:
        print(plain("sizes: " + ", ".join(f"{name} = {size}" for name, size in sizes.items())))
    for row in (*rows, *run_so, *named_patterns):
        what = f"{row['idiom']} ({'; '.join(row['found'])})" if "idiom" in row else row.get("output") or row["way"]
        print(plain(f"{'ok ' if row['within'] else 'OUT'} {what}: {row['note']}"))
    if arguments.idioms and not named_patterns:
        print("no pattern was recognized")
    return 0 if good else 1


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.model.endswith(".onnx"):
        raise EmberletError(refusal(arguments.model, "an .onnx file"))
    for option in ("seed", "atol", "rtol"):
        if not 0 <= getattr(arguments, option):  # nor NaN
            raise EmberletError(f"--{option} is {getattr(arguments, option)}, expected 0 or more")


def _row(
    arguments: argparse.Namespace, name: str, ours: dict[str, Any], expected: dict[str, Any], reference: str
) -> dict[str, Any]:
    """How an output compares with the reference's."""
    if name not in ours or name not in expected:
        found = f"only {'emberlet' if name in ours else reference} returns it"
        return {"output": name, "within": False, "note": found}
    return {"output": name, **compare(ours[name], _array(expected[name]), arguments.atol, arguments.rtol)}


def _ways(
    arguments: argparse.Namespace,
    loaded: models.Loaded,
    inputs: dict[str, Tensor],
    attempt: Callable[[sizing.Sizes, int], Any],
    sizes: sizing.Sizes,
    call: Callable[[dict[str, Any]], list[Any]],
) -> list[dict[str, Any]]:
    """The rows of the ways of running, over several inputs of the same sizes in turn."""
    frozen = {name: to_numpy(x) for name, x in loaded.frozen.items()}

    def reference(given: dict[str, Tensor]) -> dict[str, Any]:
        try:
            found = call({name: to_numpy(x) for name, x in given.items()} | frozen)
        except Exception as error:  # as above
            raise EmberletError(f"the reference fails on these inputs: {error}") from None
        named = zip(loaded.outputs, found, strict=True)
        return {part: _array(x) for name, value in named for part, x in parts(name, value).items()}

    names = ways.chosen(arguments.ways)
    draws = [inputs]
    for n in range(1, ways.DRAWS):
        with suppress(EmberletError):  # other values that the model or the reference refuses
            other = attempt(sizes, arguments.seed + n)[0]
            reference(other)
            draws.append(other)
    with step("running it in other ways"):
        return ways.rows(
            arguments.model, names, loaded, draws, reference, to_numpy,
            lambda a, b: compare(a, b, arguments.atol, arguments.rtol),
        )  # fmt: skip


def _idioms(
    arguments: argparse.Namespace,
    loaded: models.Loaded,
    inputs: dict[str, Tensor],
    attempt: Callable[[sizing.Sizes, int], Any],
    free: models.Loaded,
    sizes: sizing.Sizes,
) -> list[dict[str, Any]]:
    from .. import idioms

    draws = [inputs]
    names = sizing.free_names(free.inputs, sizing.sizes(arguments.dim, loaded))
    for n in range(1, idioms.RUNS):
        seed = arguments.seed + n
        try:  # an attention over a single key would be trivially equal
            draws.append(attempt({**sizes, **idioms.drawn_sizes(names, seed)}, seed)[0])
        except EmberletError:  # the model accepts only some sizes
            draws.append(attempt(sizes, seed)[0])
    with step("checking what was recognized"):
        path, backend, freeze = arguments.model, arguments.backend, arguments.freeze
        return idioms.rows(
            path, backend, freeze, loaded, draws, to_numpy, lambda a, b: compare(a, b, arguments.atol, arguments.rtol)
        )


def _bisect(arguments: argparse.Namespace, loaded: models.Loaded, inputs: dict[str, Tensor]) -> int:
    from ..bisect import first_difference

    def reference(exposed: Any) -> tuple[str, dict[str, Any]]:
        name, call = _reference(exposed.SerializeToString(), arguments.reference)
        try:
            wanted = call({name: to_numpy(x) for name, x in {**inputs, **loaded.frozen}.items()})
        except Exception as error:  # the errors of both have no common base
            raise EmberletError(f"{name} fails on these inputs: {error_text(error)}") from None
        return name, dict(zip([o.name for o in exposed.graph.output], wanted, strict=True))

    def near(name: str, got: Any, expected: Any) -> tuple[bool, str]:
        mine, theirs = parts(name, got), parts(name, expected)
        for part, x in mine.items():
            if part not in theirs:
                return False, f"{part} is not in the reference's result"
            said = compare(_array(x), _array(theirs[part]), arguments.atol, arguments.rtol)
            if not said["within"]:
                return False, str(said["note"])
        return len(mine) == len(theirs), f"{len(mine)} parts where {len(theirs)} are expected"

    with step("comparing node by node"):
        found = first_difference(arguments.model, arguments.backend, inputs, loaded.frozen, reference, near)
    if arguments.json:
        print(json.dumps({**found._asdict(), "within": not found.node}, indent=2))
    elif found.node:
        print(plain(f"first difference from {found.reference}: node {found.node}, {found.output}: {found.note}"))
    else:
        print(plain(f"all {found.compared} values are as {found.reference} has them"))
    return 1 if found.node else 0


def _array(x: Any) -> Any:
    import numpy as np

    return to_numpy(x) if isinstance(x, Tensor) else np.asarray(x)


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


def _drawn(i: models.Input, sizes: sizing.Sizes, random: Any, backend: str | None) -> Tensor:
    """A random input: normal floats, integers from 0 to 9, fair bools; dimensions of unknown size are 1."""
    import numpy as np

    from ....functional.arrays import asarray

    if i.dtype is None or i.shape is None or i.dtype is dtypes.string:
        raise EmberletError(f"nothing can be drawn for the input {i}; give --input {i.name}=FILE.npy")
    shape = sizing.sized(i, sizes)
    if i.dtype.is_float:
        values = random.standard_normal(shape).astype(np.float32)
    elif i.dtype.is_bool:
        values = random.integers(0, 2, shape).astype(bool)
    else:
        high = 10 if i.dtype.bits >= 8 else 2 ** (i.dtype.bits - 1)
        values = random.integers(0, high, shape)
    return asarray(values, dtype=i.dtype, backend=backend)


def to_numpy(x: Tensor) -> Any:
    """The tensor as a NumPy array (with ml_dtypes' types if NumPy has none; strings as objects)."""
    import numpy as np

    if x.dtype is dtypes.string:
        return np.array(x.backend.to_list(x), dtype=object).reshape(x.shape)
    if x.dtype.bits >= 8 and x.dtype.code is not None:
        data = np.frombuffer(bytes(x.backend.to_bytes(x)), dtype=np.bool_ if x.dtype.is_bool else x.dtype.name)
        return data.reshape(x.shape)
    import ml_dtypes

    values = np.array(x.backend.to_list(x), dtype=np.float32).reshape(x.shape)
    return values.astype(getattr(ml_dtypes, x.dtype.name))


def _reference(model: str | bytes, asked: str | None) -> tuple[str, Callable[[dict[str, Any]], list[Any]]]:
    """(name, function from named inputs to the list of outputs): onnxruntime, else ONNX's reference."""
    problem: Exception | None = None
    if asked != "onnx":
        try:
            import onnxruntime

            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            return f"onnxruntime {onnxruntime.__version__}", lambda inputs: list(session.run(None, inputs))
        except Exception as error:  # onnxruntime's errors have no common base
            if asked == "onnxruntime":
                raise EmberletError(f"onnxruntime cannot run the model: {error_text(error)}") from None
            problem = error
    import onnx
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(onnx.load_from_string(model) if isinstance(model, bytes) else model)
    except Exception as error:  # missing operators, and files that it cannot read
        refused = "" if problem is None else f"; nor does onnxruntime: {problem}"
        raise EmberletError(
            f"ONNX's reference implementation cannot run the model: {error_text(error)}{refused}"
        ) from None
    name = f"ONNX's reference {onnx.__version__}"
    if not isinstance(problem, ImportError) and problem is not None:
        name += f" (onnxruntime refuses the model: {str(problem).splitlines()[0]})"
    return name, lambda inputs: list(evaluator.run(None, inputs))
