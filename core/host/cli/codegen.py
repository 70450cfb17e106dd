"""emberlet codegen MODEL.onnx --out DIR"""

from __future__ import annotations

import argparse

from . import model as models
from .options import frozen_values
from .plain import noted, plain
from .progress import step


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--out", default=".", metavar="DIR", help="folder to write to (default: this one)")
    parser.add_argument("--name", help="name of the class and the files (default: the model file's)")
    parser.add_argument("--flat", action="store_true", help="one class for the whole model")
    parser.add_argument("--embed", action="store_true", help="put the weights into the module itself")
    parser.add_argument("--half", action="store_true", help="store floats as float16")
    parser.add_argument(
        "--passes", metavar="NAMES", help="the passes to run, separated by commas; 'none' for none (default: all)"
    )
    models.add_freeze(parser)
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="IN=OUT[:AXIS]",
        help="an input that is returned as an output, longer along AXIS; 'none': look for none; repeat for more",
    )
    parser.add_argument("--explain", action="store_true", help="print what each pass did")
    parser.add_argument("--force", action="store_true", help="overwrite a module that was edited")
    parser.add_argument("--comment", default="", metavar="TEXT", help="a comment for the top of the module")


def run(arguments: argparse.Namespace) -> int:
    from emberlet.codegen import generate

    passes = None
    if arguments.passes is not None:
        passes = [] if arguments.passes == "none" else arguments.passes.split(",")
    with step(f"generating {arguments.model}"), noted():
        made = generate(
            arguments.model,
            arguments.out,
            name=arguments.name,
            embed=arguments.embed,
            half=arguments.half,
            passes=passes,
            top_comment=arguments.comment,
            force=arguments.force,
            flat=arguments.flat,
            freeze=frozen_values(arguments.freeze),
            state=arguments.state,
        )
    if arguments.explain:
        print(plain("\n".join(made.notes)) or "no pass changed anything")
    files = f"{made.module}" if made.weights is None else f"{made.module} and {made.weights}"
    print(plain(f"wrote {files}: class {made.class_name}"))
    return 0
