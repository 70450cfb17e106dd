"""emberlet compile MODEL --out FILE.plan"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Any

from ...errors import EmberletError, ModelError
from ...functional.creation.fills import zeros
from ..folders import outputs
from . import model as models
from . import sizing
from .options import Named
from .plain import plain
from .progress import step

MARKS = {".plan": b"emberlet.plan", ".wasm": b"emberlet.crc32"}  # what every file of ours holds


class Branches(ModelError):
    """The control flow of an ONNX file depends on a value. input: the name of an input that decides it."""

    def __init__(self, error: ModelError, name: str) -> None:
        super().__init__(Named("freeze", [f"{name}=VALUE"], before=f"{error}, {name}: make it a constant, "))
        self.input = name


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file, or a generated module (.py), which is executed")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="where to write (default: the model's name with .plan); NAME.wasm writes a WebAssembly module",
    )
    parser.add_argument(
        "--weights",
        choices=("float32", "float16", "q8"),
        default="float32",
        help="how the file stores large weights; q8: int8, with a float16 scale for each 32",
    )
    models.add_sizes(
        parser,
        "; length=1..512 leaves it open: the file runs every length from 1 to 512; length=64..512:64: in steps of 64",
    )
    models.add_freeze(parser)
    outputs.add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    out = arguments.out or os.path.splitext(os.path.basename(arguments.model))[0] + ".plan"
    mark = MARKS.get(os.path.splitext(out)[1].lower(), b"")
    inputs = outputs.model_files(arguments.model)
    outputs.check(out, inputs=inputs, endings=[*MARKS], mark=mark, overwrite=arguments.overwrite)
    weights = None if arguments.weights == "float32" else arguments.weights
    plan, dims, chosen = write(arguments.model, out, arguments.dim, arguments.freeze, weights)
    size = os.path.getsize(out)
    served = "".join(f", {name} {limits[0]} to {limits[-1]}{_by(limits)}" for name, limits in dims.items())
    print(f"wrote {out}: {len(plan.steps)} dispatches of {len(plan.kernels)} kernels, {size} bytes{served}")
    if chosen:
        has = " ".join(f"--dim {shlex.quote(f'{name}={n}')}" for name, n in chosen.items())
        more = "to choose others, give them in the same way, or as ranges, such as --dim length=1..512"
        print(
            plain(f"the model leaves sizes open, and the file was made with {has}; {more}, where the model takes them")
        )
    return 0


def write(
    path: str,
    out: str,
    dim: Sequence[str],
    freeze: Sequence[str],
    weights: str | None,
    relaxed: bool | None = None,
    classes: Sequence[str] | None = None,
) -> tuple[Any, dict[str, sizing.Range], sizing.Sizes]:
    """Write the compiled model; returns its plan, the range of each dimension that is left open, and the sizes that
    were chosen because `dim` gives none. dim, freeze: the words of --dim and --freeze.
    relaxed: whether the engines that run a .wasm file have relaxed SIMD; None: it runs on both. classes: those of
    devices that a plan is for; None: all.

    Raises EmberletError, OSError.
    """
    from emberlet.wgpu_backend.plan.writer import save

    with step(f"loading {path}"):
        loaded = models.load(path, None, freeze, flat=True)
    dims, given = sizing.ranges(dim, loaded)
    sizes = sizing.sizes(given, loaded)
    for name, limits in dims.items():
        low, high, each = limits[0], limits[-1], limits.step if isinstance(limits, range) else 1
        sizes[name.replace("[", ":").rstrip("]")] = low + min(max(0, 8 - low), high - low) // each * each
    for i in loaded.inputs:
        if i.dtype is None or i.shape is None:
            raise EmberletError(f"the dtype and shape of input {i} are not known, and a plan needs both")

    def attempt(sizes: sizing.Sizes) -> Any:
        return save(
            out,
            loaded.model,
            *[zeros(sizing.sized(i, sizes), dtype=i.dtype) for i in loaded.inputs],
            inputs=[i.name for i in loaded.inputs],
            outputs=list(loaded.outputs) or None,
            dims=dims,
            weights=weights,
            relaxed=relaxed,
            classes=classes,
        )

    with step("planning"):
        try:
            plan, taken = sizing.fitted(loaded, sizes, attempt)
        except ModelError as error:
            position = next(iter(getattr(error.__cause__, "inputs", ())), None)  # of a ValueNeeded
            if position is None or not path.endswith(".onnx"):
                raise
            raise Branches(error, loaded.inputs[position].name) from error
    return plan, dims, {name: taken.get(name, 1) for name in sizing.free_names(loaded.inputs, sizes)}


def _by(limits: sizing.Range) -> str:
    return f" by {limits.step}" if isinstance(limits, range) else ""
