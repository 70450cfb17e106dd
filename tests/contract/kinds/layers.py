"""Layers and functions in configurations that differ from those of tests/core/calls by up to three options, lengths,
axes, dtypes or words, on every way."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet.errors import EmberletError
from support.neighboring_calls import SCOPE, neighbors

from ..case import Case, of_growing_lengths, of_other_dtypes, of_other_kinds, of_other_lengths, other_values
from ..properties import broken
from ..reference import Expected, Refused, choice, expected, quiet
from ..ways import Way

NEEDS: tuple[str, ...] = ()
FOLDER = Path(__file__).resolve().parents[2] / "core" / "calls"
TOPICS = ("elementwise", "indexing", "layers", "layers", "movement", "quantized", "recurrent", "reductions",
          "transformer", "windows", "windows")  # fmt: skip
MAKERS = ("X", "P", "V")
# Random results: random_numbers.py compares those.
LEFT_OUT = ("ropout", "GaussianNoise", "random", "multinomial", "bernoulli", "lambda")
CHANGES = 3
LARGEST = 4000


class Drawn(NamedTuple):
    """A call as in tests/core/calls, and a seed."""

    text: str
    seed: int


@cache
def lines(topic: str) -> list[str]:
    text = (FOLDER / f"{topic}.txt").read_text(encoding="utf-8")
    found = [line for line in text.splitlines() if line and line[0] != "#" and not any(w in line for w in LEFT_OUT)]
    return [line for line in found if parsed(line)]


def parsed(text: str) -> tuple[str, list[str]] | None:
    """(source, the texts of the arrays) of a call; None if it takes no tensors."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.Call):
        return None
    given: list[tuple[int, int]] = []
    for node in [*tree.args, *(k.value for k in tree.keywords)]:
        made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS
        if made and '"string"' not in ast.unparse(node) and "'string'" not in ast.unparse(node):
            given.append((node.col_offset, node.end_col_offset or 0))
    if not given:
        return None
    given.sort()
    names = [f"x{i}" for i in range(len(given))]
    layer = text.startswith("nn.") and isinstance(tree.func, ast.Call)
    if layer:
        if len(given) != len(tree.args) + len(tree.keywords) or tree.keywords or "X(" in ast.unparse(tree.func):
            return None
        source = f"def make(B):\n    emberlet.set_default_backend(B)\n    return {ast.unparse(tree.func)}\n"
    else:
        if text.startswith("nn.") or not isinstance(tree.func, ast.Name):
            return None
        body = text
        for name, (start, end) in reversed(list(zip(names, given, strict=True))):
            body = body[:start] + name + body[end:]
        if any(f"{m}(" in body for m in (*MAKERS, "S")):
            return None
        body = f"def program({', '.join(names)}):\n    return F.{body}"
        source = f"{body}\n\n\ndef make(B):\n    return program\n"
    return source, [text[a:b] for a, b in given]


def arrays_of(texts: list[str]) -> tuple[Any, ...] | None:
    """The arrays of a call; None where NumPy has no such dtype, or they are too large."""
    found = []
    for text in texts:
        try:
            array = np.array(np.asarray(eval(text, SCOPE)))
        except Exception:
            return None
        if array.dtype.kind not in "fiub" or array.size > LARGEST:
            return None
        found.append(array)
    return tuple(found)


def changed(choose: random.Random, text: str) -> str:
    """The call with one thing changed."""
    # tests/core/test_wrong_arguments.py has arguments of other types.
    found = [call for _, call in neighbors(text) if call != text and call.count("None") <= text.count("None")]
    return choose.choice(found) if found else text


def case_of(drawn: Drawn, kind: str) -> Case | None:
    made = parsed(drawn.text)
    arrays = None if made is None else arrays_of(made[1])
    if made is None or arrays is None:
        return None
    choose = choice(drawn.seed, "values")
    # Integers may be indices or lengths, which are valid only as they are.
    other = tuple(a if a.dtype.kind != "f" else other_values(a, choose) for a in arrays)
    return Case(made[0], (arrays, other), drawn.seed, kind)


def further(case: Case) -> list[tuple[Any, ...]]:
    """Arrays of other lengths, of other integers, of other dtypes, for calls after the first two."""
    choose = choice(case.seed, "further")
    arrays = case.calls[0]
    found = of_growing_lengths(arrays, choose) if choose.random() < 0.3 else []
    found = found or [of_other_lengths(arrays, choose), of_other_lengths(arrays, choose)]
    if any(isinstance(a, np.ndarray) and a.dtype.kind == "i" for a in arrays):
        found.append(tuple(a if a.dtype.kind == "f" else other_values(a, choose) for a in arrays))
    if choose.random() < 0.3:
        # A layer may have tables of its own in float32, whose last digit float64 would show.
        found.append(of_other_dtypes(arrays, "nn." not in case.source))
    if choose.random() < 0.1:
        found.append(of_other_kinds(arrays))
    return found


def with_further(case: Case) -> tuple[Case, list[Expected]]:
    """The case with those further calls that eager NumPy computes, and what each call gives."""
    wanted = [expected(case, arrays) for arrays in case.calls]
    for arrays in [] if any(isinstance(w, Refused) for w in wanted) else further(case):
        try:
            found = expected(case, arrays)
        except Exception:  # such arrays are no arguments of it
            continue
        if not isinstance(found, Refused):
            case, wanted = case._replace(calls=(*case.calls, arrays)), [*wanted, found]
    return case, wanted


def draw(choose: random.Random) -> Drawn | None:
    text = choose.choice(lines(choose.choice(TOPICS)))
    for _ in range(choose.randint(0, CHANGES)):
        new = changed(choose, text)
        if valid(new) is True:
            text = new
    return Drawn(text, choose.randrange(1 << 30))


def valid(text: str) -> bool | None:
    """Whether eager NumPy computes a call; None if it is no case."""
    case = case_of(Drawn(text, 0), "layer configurations")
    if case is None:
        return None
    try:
        with quiet():
            return not isinstance(expected(case, case.calls[0], exact=True), Refused)
    except Exception:
        return None  # an argument of another type, which tests/core/test_wrong_arguments.py draws
    finally:
        emberlet.set_default_backend(None)


def difference(drawn: Drawn, ways: Iterable[Way] | None = None) -> str:
    case = case_of(drawn, "layer configurations")
    if case is None:
        return ""
    try:
        case, wanted = with_further(case)
        return broken(case, ways, wanted)
    except EmberletError as error:
        return f"making it raises {type(error).__name__}: {error}"
    finally:
        emberlet.set_default_backend(None)


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    """Neighbors with shorter text."""
    shorter = {call for _, call in neighbors(drawn.text) if len(call) < len(drawn.text)}
    return (drawn._replace(text=call) for call in sorted(shorter, key=len) if valid(call) is not None)


def program(drawn: Drawn) -> str:
    case = case_of(drawn, "")
    return drawn.text if case is None else f"# {drawn.text}\n{with_further(case)[0].text()}"
