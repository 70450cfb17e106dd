"""What becomes of models with one thing changed: a line for each, recorded."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any, TypeVar

from emberlet.codegen.ir.problem import Problem
from emberlet.errors import EmberletError, ModelError
from emberlet.micro.builder.fuse import fuse
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.plan import plan
from emberlet.micro.builder.quantization.quantize import quantize_graph

from ..recorded import recording, sections
from .described import described, digest, planned

ARROW = " -> "
COMPILER = "refused by the compiler"
MOST = 20
"""Outcomes of a model that are recorded."""

WORDED_ELSEWHERE = re.compile(r"(is malformed|its inputs do not fit)\b.*")
"""Reasons whose end comes from Python or NumPy, which differ by version."""

T = TypeVar("T")


def of_its_own(translate: Callable[..., Any]) -> Callable[..., Any]:
    """The function without the reasons that the compiler gives, such as a wrong attribute: they are recorded with its
    operators."""

    def told(*given: Any) -> Any:
        try:
            return translate(*given)
        except (Problem, EmberletError) as error:
            *_, (frame, _) = walk_tb(error.__traceback__)
            if "micro" in Path(frame.f_code.co_filename).parts:
                raise
            raise Problem(COMPILER) from error

    return told


def outcome(read: Callable[[], Graph], exact: bool = True) -> str:
    """Digests of a model's inputs and outputs, its layers and those that run, or the reasons against them."""
    try:
        graph = read()
    except ModelError as error:
        first, *reasons = str(error).splitlines()
        own = " / ".join(WORDED_ELSEWHERE.sub(r"\1", reason) for reason in reasons)
        return own if first.endswith("cannot run on a microcontroller:") else COMPILER
    except EmberletError as error:
        return str(error)
    ports = [(name, graph.shapes[name]) for name in (*graph.inputs, *graph.outputs)]
    kinds = " ".join(dict.fromkeys(layer.kind for layer in graph.layers))
    text = f"{kinds}: {digest(str(ports))} {_digest(described(graph, exact))}"
    if not graph.grids:
        return text
    try:
        built = quantize_graph(fuse(graph))
        return f"{text} {_digest([*described(built, exact=False), *planned(plan(built), exact=False)])}"
    except EmberletError as error:
        return f"{text} {error}"


def _digest(lines: Iterable[str]) -> str:
    return digest("\n".join(lines))


def lines_of(file: Path, title: str, every: Mapping[str, T], outcome: Callable[[T], str]) -> str:
    """The recorded changes, and what they lead to now. Of those that lead to the same, the first is recorded, and of
    all a sample."""
    if not recording():
        labels = [line.partition(ARROW)[0] for line in sections(file).get(title, "").splitlines()]
        return "\n".join(f"{label}{ARROW}{outcome(every[label])}" for label in labels)
    found: dict[str, str] = {}
    for label, made in every.items():
        found.setdefault(outcome(made), label)
    (first, as_it_is), *others = found.items()
    some = sorted(random.Random(title).sample(range(len(others)), min(MOST, len(others))))
    kept = [(first, as_it_is), *(others[k] for k in some)]
    return "\n".join(f"{label}{ARROW}{said}" for said, label in kept)
