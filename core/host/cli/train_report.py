"""emberlet train-report DIR: a page with the curves of a training."""

from __future__ import annotations

import argparse
import os

from ..files import atomic_write
from ..folders import outputs
from .plain import plain


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", help="the folder of a Learner")
    parser.add_argument("--out", metavar="FILE", help="what to write: .html (default: report.html in the folder)")
    outputs.add_overwrite(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...train.learner.report import page
    from ...train.learner.report.reading import read

    out = arguments.out or os.path.join(arguments.directory, "report.html")
    found = read(arguments.directory)
    outputs.check(out, endings=(".html",), mark=page.MARK.encode(), overwrite=arguments.overwrite)
    title = os.path.basename(os.path.abspath(arguments.directory))
    with atomic_write(out) as file:
        file.write(page.as_html(found, title).encode())
    print(plain(f"wrote {out}"))
    return 0
