"""emberlet graph MODEL.onnx --out FILE.svg"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from ...errors import EmberletError
from ..files import atomic_write
from ..folders import outputs
from .plain import plain

KINDS = (".svg", ".html", ".txt")
MARK = b"written by emberlet graph"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--out", required=True, metavar="FILE", help=f"what to write: {', '.join(KINDS)}")
    parser.add_argument("--depth", type=int, metavar="N", help="levels of modules that are open (default: some)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a size to count operations with")
    outputs.add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    outputs.check(arguments.out, inputs=[arguments.model], endings=KINDS, mark=MARK, overwrite=arguments.overwrite)
    kind = os.path.splitext(arguments.out)[1].lower()
    if arguments.depth is not None and arguments.depth < 0:
        raise EmberletError(f"--depth {arguments.depth}: expected 0 or more")
    sizes = given_sizes(arguments.dim)
    from emberlet.codegen.picture.page import as_html
    from emberlet.codegen.picture.svg import as_svg
    from emberlet.codegen.picture.text import as_text
    from emberlet.codegen.picture.tree import tree

    box = tree(arguments.model, sizes=sizes)
    said = ", ".join(f"{name} = {n}" for name, n in sizes.items())
    note = f"FLOPs with {said}" if said else "FLOPs where every size that has a name is 1"
    if kind == ".svg":
        text = as_svg(box, arguments.depth, note)
    elif kind == ".html":
        text = as_html(box, arguments.depth, note)
    else:
        text = as_text(box, 8 if arguments.depth is None else arguments.depth)
    mark = MARK if kind == ".txt" else b"<!-- " + MARK + b" -->"
    with atomic_write(arguments.out) as file:
        file.write(text.encode(errors="backslashreplace") + mark + b"\n")
    print(plain(f"wrote {arguments.out}"))
    return 0


def given_sizes(pairs: Sequence[str]) -> dict[str, int]:
    """The sizes given by --dim."""
    found = {}
    for pair in pairs:
        name, _, size = pair.rpartition("=")
        if not name or not size.isdecimal():
            raise EmberletError(f"--dim {pair}: expected NAME=NUMBER")
        found[name] = int(size)
    return found
