"""emberlet graph MODEL.onnx --out FILE.svg"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...errors import EmberletError
from ..files import atomic_write
from .plain import plain

KINDS = (".svg", ".html", ".txt")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("--out", required=True, metavar="FILE", help=f"what to write: {', '.join(KINDS)}")
    parser.add_argument("--depth", type=int, metavar="N", help="levels of modules that are open (default: some)")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="a size to count operations with")


def run(arguments: argparse.Namespace) -> int:
    kind = next((k for k in KINDS if arguments.out.lower().endswith(k)), None)
    if kind is None:
        raise EmberletError(f"--out {arguments.out}: expected a name that ends in {', '.join(KINDS)}")
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
    with atomic_write(arguments.out) as file:
        file.write(text.encode())
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
