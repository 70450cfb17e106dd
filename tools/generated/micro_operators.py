"""The operators in docs/microcontrollers.md, written from the importers' tables: `python3 dev.py check --fix`."""

from __future__ import annotations

import sys
import textwrap

from ..paths import ROOT
from . import keep

PAGE = ROOT / "docs" / "microcontrollers.md"
BEGIN, END = "<!-- operators: begin (written by dev.py check --fix) -->\n", "<!-- operators: end -->"
WIDTH = 120

TITLES = {
    "activations": "functions of one number, sums, differences, products and quotients, softmax, quantization",
    "categories": "categories",
    "distances": "distances from constant rows",
    "dynamic": "quantization while the model runs (onnxruntime's `quantize_dynamic`)",
    "lanes": "along an axis, and by index",
    "linear_models": "linear models, support vector machines, columns and thresholds",
    "moves": "shapes and places: reshape, transpose, slice, pad, join, split, resize",
    "normalizations": "normalization by statistics of the input, and what is computed with it",
    "pairs": "of two tensors or more: extremes, powers, comparisons, logic, choices",
    "picks": "selection of elements at constant positions",
    "products": "convolutions, dense layers, batch normalization",
    "quantized": "quantized operators (onnxruntime's format `QOperator`), and weights of 2, 4 and 8 bits in blocks",
    "recurrences": "recurrent layers, in either direction or both",
    "reductions": "pooling and reductions",
    "trees": "trees, scalers, missing numbers",
}
"""What the importers' files hold, for people."""


def operators() -> dict[str, list[str]]:
    """The names of the operators, grouped by importer file, with the domains of those outside ONNX."""
    from emberlet.codegen.ops import REGISTRY
    from emberlet.micro.builder.importer import TRANSLATORS

    found: dict[str, list[str]] = {}
    for (domain, name), kind in sorted(REGISTRY.items()):
        for base in kind.__mro__:
            if base in TRANSLATORS:
                title = TITLES[TRANSLATORS[base].__module__.rsplit(".", 1)[1]]
                found.setdefault(title, []).append(f"{domain}.{name}" if domain else name)
                break
    return dict(sorted(found.items()))


def text() -> str:
    """A paragraph for each file, and one for the operators of .tflite files."""
    from emberlet.micro.builder.tflite import importing, table

    assert importing.CONVERTERS is table.CONVERTERS
    rows = [*operators().items(), ("of `.tflite` files", sorted(table.CONVERTERS))]
    lines = []
    for said, names in rows:
        listed = f"- {said}: {', '.join(f'`{n}`' for n in names)}"
        lines += textwrap.wrap(listed, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n" + "\n".join(lines) + "\n\n"


def page() -> str:
    """The page with its list as it should be."""
    whole = PAGE.read_text(encoding="utf-8")
    before, rest = whole.split(BEGIN)
    return before + BEGIN + text() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    sys.exit(keep(PAGE, page(), sys.argv[1:]))
