"""`emberlet micro build` and `emberlet micro deploy`: called by `emberlet.host.cli`."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emberlet.errors import EmberletError, UnsupportedError

from .boards import ALIASES, BOARDS, Board, board
from .build import (
    INT4,
    KERNELS,
    LEAST_AGREEMENT,
    LEAST_OF_CLASSES,
    METHODS,
    WEIGHTS,
    BuildResult,
    Options,
    build,
    module_name,
)
from .cost import VIPER, Cost, flash_of, report, shortfalls
from .deploy import HELPERS, commands, deploy, helper_commands
from .emit.loading import Partition
from .quantization.calibrate import samples_from
from .written import BYTECODE, including, write


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 0, or 1 if the model does not fit a board. Raises EmberletError,
    OSError."""
    parser = argparse.ArgumentParser(prog="emberlet micro", description="Models for microcontrollers.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    _add_build(verbs.add_parser("build", help="build MicroPython files from a model"))
    _add_deploy(verbs.add_parser("deploy", help="copy built files to a board"))
    arguments = parser.parse_args(argv)
    return _build(arguments) if arguments.verb == "build" else _deploy(arguments)


def _add_build(p: argparse.ArgumentParser) -> None:
    p.add_argument("model", type=Path, help="an ONNX file, float32 or quantized (QDQ), or a .tflite file")
    p.add_argument("--calibration", type=Path, metavar="NPZ", help="samples of the inputs, for calibrating int8")
    p.add_argument(
        "--float",
        action="store_true",
        help="stay float32; the default without --calibration if the model is not quantized",
    )
    p.add_argument("--out", type=Path, default=Path("dist"), help="folder to write to (default: dist)")
    p.add_argument("--name", help="name of the modules (default: the model's file name)")
    names = ", ".join([*BOARDS, *ALIASES])
    p.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=SIZES",
        help="sizes that the model leaves open: of an input (image=1,3,96,96) or a dimension (frames=49); repeatable",
    )
    p.add_argument("--board", action="append", default=[], metavar="NAME", help=f"one of {names}; repeatable")
    p.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="INPUT=OUTPUT",
        help="an input that gets an output of the previous call, kept on the board; repeatable",
    )
    p.add_argument(
        "--stream",
        type=int,
        metavar="AXIS",
        help="the axis of the input that is time: each call takes new steps and gives the result for the whole window",
    )
    p.add_argument(
        "--new-steps",
        type=int,
        metavar="N",
        help="new steps in each call of a stream (default: the fewest that save most work)",
    )
    p.add_argument("--weights", choices=WEIGHTS, default="file", help="where the weights are stored (default: file)")
    p.add_argument("--method", choices=METHODS, default="auto", help="how ranges are calibrated (default: auto)")
    p.add_argument("--percentile", type=float, default=99.99, help="share of the values in a range (default: 99.99)")
    p.add_argument(
        "--least-agreement",
        type=float,
        metavar="SHARE",
        help="fail if int8 and float32 agree on fewer calibration samples; 0 never fails (default: "
        f"{LEAST_AGREEMENT}, {LEAST_OF_CLASSES} of labeled classes if the scores differ)",
    )
    p.add_argument("--partition", default="", metavar="WHERE", help="rp2: its start in bytes; esp32: its label")
    p.add_argument(
        "--kernels",
        choices=KERNELS,
        default="assembly",
        help="assembly where the board supports it (default), or viper everywhere",
    )
    p.add_argument(
        "--int4",
        choices=INT4,
        default="packed",
        help="4-bit weights: two per byte (default), or one per byte, which is larger and faster",
    )
    p.add_argument("--second-core", action="store_true", help="rp2: half of each large layer runs on the second core")
    p.add_argument("--steps", action="store_true", help="write `steps`, which gives back control after each layer")
    p.add_argument("--layers", action="store_true", help="write a module that lists and times the layers on the board")
    p.add_argument("--arena", default="", metavar="MODULE", help="use the arena of another model's module on the board")
    p.add_argument("--overwrite", action="store_true", help="replace files that no earlier build wrote")
    p.add_argument("--json", action="store_true", help="print the report as one JSON object, for scripts")
    p.add_argument("--micropython", metavar="RELEASE", help="oldest release that loads the .mpy files, such as 1.22")


def _add_deploy(p: argparse.ArgumentParser) -> None:
    p.add_argument("out", type=Path, help="the folder that `micro build` wrote")
    p.add_argument("--board", help="one of the boards that the model was built for")
    p.add_argument("--port", help="the board's port, as mpremote's connect takes it")
    p.add_argument("--to", default="/", help="folder on the board (default: /)")
    p.add_argument("--helper", action="append", default=[], metavar="NAME", help=f"{', '.join(HELPERS)}; repeatable")
    p.add_argument(
        "--in-place",
        action="store_true",
        help="copy over the old files one by one, if the board has no room for both; do not interrupt it",
    )
    p.add_argument(
        "--slots",
        action="store_true",
        help="keep the previous model on the board as a fallback; the first deployment with --slots has none",
    )
    p.add_argument("--dry-run", action="store_true", help="only print the mpremote commands")


def _build(a: argparse.Namespace) -> int:
    from .from_ir import read_graph

    if not 50 < a.percentile <= 100:
        raise EmberletError(f"--percentile is {a.percentile:g}, expected more than 50 and at most 100")
    if a.least_agreement is not None and not 0 <= a.least_agreement <= 1:
        raise EmberletError(f"--least-agreement is {a.least_agreement:g}, expected a share from 0 to 1")
    if a.micropython and not re.fullmatch(r"v?\d+(\.\d+){1,2}", a.micropython):
        raise EmberletError(f"--micropython is {a.micropython!r}, expected a release such as 1.22")
    name = module_name(a.name or a.model.stem)
    boards = [board(b) for b in a.board]
    graph = read_graph(a.model, name, dict(_sizes(text) for text in a.shape), dict(_state(text) for text in a.state))
    samples = samples_from(a.calibration, graph) if a.calibration and not a.float else None
    options = Options(
        name=name,
        weights=a.weights,
        boards=boards,
        method=a.method,
        percentile=a.percentile,
        least_agreement=a.least_agreement,
        partition=_partition(a.weights, a.partition, boards[0] if boards else None),
        release=a.micropython,
        kernels=a.kernels,
        int4=a.int4,
        second_core=a.second_core,
        layers=a.layers,
        steps=a.steps,
        arena=module_name(a.arena) if a.arena else "",
        floats=a.float,
        stream=a.stream,
        new_steps=a.new_steps,
    )
    built = build(graph, options, samples)
    inputs = [a.model, a.calibration] if a.calibration else [a.model]
    written = write(built, options, a.out, inputs=inputs, overwrite=a.overwrite)
    if a.json:
        print(json.dumps(facts(built, options) | {"files": [str(path) for path in written]}, indent=1))
    else:
        print_report(built, options)
        print(f"  written to {a.out}: {len(written)} files")
        for arch in sorted(built.deployed) if a.weights == "frozen" else []:
            print(f"  next: add {including(a.out, arch or BYTECODE)} to your firmware's manifest.py, and build it")
    return 0 if all(not shortfalls(_cost(built, b), b, a.weights) for b in boards) else 1


def _sizes(text: str) -> tuple[str, tuple[int, ...]]:
    """Name and sizes of a --shape. Raises EmberletError."""
    name, _, sizes = text.rpartition("=")
    if not name or not re.fullmatch(r"\d+(,\d+)*", sizes):
        raise EmberletError(f"--shape is {text!r}, expected NAME=SIZES, such as image=1,3,96,96")
    return name, tuple(int(n) for n in sizes.split(","))


def _state(text: str) -> tuple[str, str]:
    """Input and output of a --state. Raises EmberletError."""
    source, _, output = text.partition("=")
    if not source or not output:
        raise EmberletError(f"--state is {text!r}, expected INPUT=OUTPUT, such as cache=new_cache")
    return source, output


def _partition(weights: str, where: str, board: Board | None) -> Partition | None:
    """The weights' location in flash. Raises UnsupportedError for a board that cannot read there, EmberletError."""
    if weights != "partition":
        return None
    if board and not board.chip:
        raise UnsupportedError(f"{board.name} has no flash partitions to read; use --weights romfs or frozen")
    chip = board.chip if board else "rp2" if where[:1].isdigit() else "esp32"
    if chip != "rp2":
        return Partition("esp32", label=where or "model")
    try:
        return Partition("rp2", start=int(where or "0", 0))
    except ValueError:
        raise EmberletError(f"--partition is {where!r}, expected its start in bytes, such as 0x100000") from None


def _cost(built: BuildResult, board: Board) -> Cost:
    return built.costs[board.arch] if board.arch in built.costs else built.costs[""]


def facts(built: BuildResult, options: Options) -> dict[str, Any]:
    """What `print_report` prints, for scripts. Sizes are in bytes, times in milliseconds; a board's `missing` says what
    does not fit; `instructions` are those of the boards' 32-bit processors, and None on a PC;
    `cycles_are_timed` says whether the cycles of each are published or assumed."""
    boards = {}
    for b in options.boards:
        cost = _cost(built, b)
        missing = shortfalls(cost, b, options.weights)
        boards[b.name] = {
            "title": b.title,
            "arch": b.arch,
            "fits": not missing,
            "missing": missing,
            "memory": {"needed": cost.ram, "available": b.heap},
            "flash": {"needed": cost.flash, "available": flash_of(b, options.weights)},
            "instructions": None if b.arch == "x64" else round(cost.work * VIPER),
            "cycles": round(cost.cycles(b)),
            "cycles_are_timed": b.is_timed,
            "milliseconds": cost.milliseconds(b),
            "mhz": b.mhz,
        }
    agreement = built.agreement
    return {
        "name": options.name,
        "weights": options.weights,
        "inputs": [port.text() for port in built.program.inputs],
        "outputs": [port.text() for port in built.program.outputs],
        "costs": {arch or BYTECODE: {**vars(cost), "ram": cost.ram} for arch, cost in built.costs.items()},
        "boards": boards,
        "agreement": None if agreement is None else {**vars(agreement), "share": agreement.share},
        "notes": list(built.notes),
    }


def print_report(built: BuildResult, options: Options) -> None:
    """Print the model's requirements, and whether it fits."""
    shared = sorted(built.costs)
    for arch in shared:
        boards = [b for b in options.boards if b.arch == arch or not arch]
        first, *lines = report(options.name, built.costs[arch], boards, options.weights)
        if arch == shared[0]:
            inputs = [f"  input   {port.text()}" for port in built.program.inputs]
            if options.stream is not None:
                inputs[0] += f", the new ones of {built.graph.layouts[built.graph.inputs[0]][0][options.stream]} steps"
            print("\n".join([first, *inputs, *lines]))
        else:
            print("\n".join(lines[3:]))
    if built.agreement:
        print(f"  {built.agreement}")
    for note in built.notes:
        print(f"  note: {note}")


def _deploy(a: argparse.Namespace) -> int:
    steps = [
        *helper_commands(a.helper, a.port, a.in_place),
        *commands(a.out, a.board, a.port, a.to, a.in_place, a.slots),
    ]
    if a.dry_run:
        for step in steps:
            print(shlex.join(["mpremote", *step]))
        return 0
    return deploy(steps)
