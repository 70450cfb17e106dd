"""emberlet score MODEL INPUT… --out DIR"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence

from ...errors import EmberletError
from ..extras import require
from .model import backends
from .plain import plain
from .progress import Rows, step


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file, or a generated module (.py), which is executed")
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="Parquet, CSV or .npy files, pictures, or folders")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder for the results, as Parquet")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=COLUMN[,COLUMN…]",
        help="the column, or the columns of numbers, for an input of the model (default: the column of its name)",
    )
    parser.add_argument("--preprocess", metavar="MODULE:FUNCTION", help="a function from a batch to the model's inputs")
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="NAME[=COLUMN]",
        help="an output to write, and its column; repeat for more (default: all)",
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="an input column to copy; repeat for more"
    )
    parser.add_argument("--backend", default="auto", help=f"{backends()} (default: wgpu on Ray's GPUs, else numpy)")
    parser.add_argument("--batch-size", type=int, metavar="N", help="rows that are computed at once (default: by size)")
    parser.add_argument("--rows-per-file", type=int, metavar="N", help="rows per file (default: 8192; pictures: 256)")
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="a Ray cluster, HOST:PORT or auto (default: this machine alone)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes with the model (default: one per CPU)")
    parser.add_argument(
        "--cpus", type=float, default=1, metavar="N", help="CPUs of each worker, for Ray and for BLAS (default: 1)"
    )
    parser.add_argument("--gpus", type=float, default=0, metavar="N", help="GPUs of each worker, for Ray: 1 or less")
    parser.add_argument("--resume", action="store_true", help="continue an earlier run with the same arguments")
    parser.add_argument(
        "--skip-bad", action="store_true", help="report rows that cannot be read or scored, and continue"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    for name, least in (("workers", 1), ("cpus", 0), ("gpus", 0)):
        number = getattr(arguments, name)
        if number is not None and not number >= least:
            raise EmberletError(f"--{name} is {number:g}, expected {least} or more")
    require("emberlet score", "ray", "pyarrow", "numpy")
    from ...batch import ray_cluster, scoring

    ray_cluster.check(arguments.ray)
    with step(f"checking {arguments.model} and its inputs"):
        job = scoring.prepare(
            arguments.model,
            arguments.inputs,
            arguments.out,
            columns={name: column.split(",") for name, column in _pairs("--input", arguments.input).items()},
            outputs=_pairs("--output", arguments.output, alone=True),
            keep=arguments.keep,
            preprocess=arguments.preprocess,
            backend=arguments.backend,
            batch_size=arguments.batch_size,
            rows_per_file=arguments.rows_per_file,
            resume=arguments.resume,
            skip_bad=arguments.skip_bad,
        )
    # Ray prints the death of a worker, which it replaces, to stdout.
    with Rows("scoring") as bar, contextlib.redirect_stdout(sys.stderr):
        done = scoring.run(
            job,
            address=arguments.ray,
            workers=arguments.workers,
            cpus=arguments.cpus,
            gpus=arguments.gpus,
            report=bar.at,
            quiet=True,
        )
    if arguments.json:
        skipped = [{"file": file, "row": row if row >= 0 else None, "why": why} for file, row, why in done.skipped]
        print(
            json.dumps({"rows": done.rows, "files": done.files, "seconds": done.seconds, "skipped": skipped}, indent=2)
        )
        return 0
    for file, row, why in done.skipped[:20]:
        print(plain(f"skipped {file}{f' row {row}' if row > 0 else ''}: {why}"))
    if len(done.skipped) > 20:
        print(f"skipped {len(done.skipped) - 20} more")
    if job.done:
        print(plain(f"nothing is left to do: {arguments.out} holds all {done.rows} rows"))
        return 0
    told = f", skipped {len(done.skipped)}" if arguments.skip_bad else ""
    print(plain(f"wrote {done.rows} rows in {done.files} files to {arguments.out}{told}: {done.seconds:.1f} s, "
                f"{done.workers} worker{'s' * (done.workers > 1)}"))  # fmt: skip
    return 0


def _pairs(option: str, given: Sequence[str], alone: bool = False) -> dict[str, str]:
    """name -> value of NAME=VALUE; NAME alone stands for NAME=NAME where that is allowed. Raises EmberletError."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.partition("=")
        if not name or not (value or (alone and not equals)):
            raise EmberletError(f"{option} {word}: expected NAME{'[=COLUMN]' if alone else '=COLUMN'}")
        if name in found:
            raise EmberletError(f"{option} {name}: given twice")
        found[name] = value or name
    return found
