"""emberlet run MODEL --input NAME=FILE.npy --out FILE.npz"""

from __future__ import annotations

import argparse
import time
from typing import Any

from ...errors import EmberletError
from ...tensor import Tensor
from .. import npy
from ..folders import outputs
from . import model as models
from .plain import plain
from .progress import step
from .results import first_elements


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file, or a generated module (.py), which is executed")
    models.add_arguments(parser)
    models.add_freeze(parser)
    parser.add_argument("--out", metavar="FILE.npz", help="where to write the outputs")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times and print the times")
    outputs.add_overwrite(parser)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def run(arguments: argparse.Namespace) -> int:
    if arguments.repeat < 1:
        raise EmberletError(f"--repeat is {arguments.repeat}, expected 1 or more")
    if arguments.out:
        inputs = [*outputs.model_files(arguments.model), *outputs.given_files(arguments.input)]
        outputs.check(arguments.out, inputs=inputs, endings=[".npz"], mark=npy.COMMENT, overwrite=arguments.overwrite)
    with step(f"loading {arguments.model}"):
        loaded = models.load(arguments.model, arguments.backend, arguments.freeze)
    given = models.read_inputs(loaded, arguments.input, arguments.backend)
    missing = [str(i) for i in loaded.inputs if i.name not in given]
    if missing:
        raise EmberletError(f"the model also needs --input NAME=FILE for {'; '.join(missing)}")
    if arguments.repeat > 1:
        loaded = loaded.compiled()
    seconds = []
    with step("running"):
        for _ in range(arguments.repeat):
            begin = time.perf_counter()
            results = loaded(given)
            for x in results.values():
                x.backend.to_bytes(x) if x.dtype.kind != "string" else x.backend.to_list(x)
            seconds.append(time.perf_counter() - begin)
    if arguments.out:
        npy.save_archive(arguments.out, results)
    if arguments.json:
        import json

        print(json.dumps(_report(results, seconds), indent=2))
        return 0
    for name, x in results.items():
        print(plain(f"{name}: {x.dtype} {x.shape} {first_elements(x)}"))
    if arguments.repeat > 1:
        import statistics

        rest = seconds[1:]
        print(f"first {seconds[0] * 1e3:.2f} ms, then median {statistics.median(rest) * 1e3:.2f} ms, "
              f"fastest {min(rest) * 1e3:.2f} ms of {len(rest)}")  # fmt: skip
    if arguments.out:
        print(f"wrote {arguments.out}")
    return 0


def _report(outputs: dict[str, Tensor], seconds: list[float]) -> dict[str, Any]:
    described = {}
    for name, x in outputs.items():
        one: dict[str, Any] = {"dtype": str(x.dtype), "shape": list(x.shape), "backend": repr(x.backend)}
        if x.size and x.dtype.kind != "string":
            values = [float(v) for v in x.backend.to_list(x)]
            finite = [v for v in values if v - v == 0]
            one["finite"] = len(finite)
            if finite:
                one |= {"min": min(finite), "max": max(finite), "mean": sum(finite) / len(finite)}
        described[name] = one
    times = {"first_ms": seconds[0] * 1e3, "all_ms": [s * 1e3 for s in seconds]}
    if len(seconds) > 1:
        import statistics

        times["median_ms"] = statistics.median(seconds[1:]) * 1e3
    return {"outputs": described, "times": times}
