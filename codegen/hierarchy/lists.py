"""Lists of modules: equal constructors, or ones that differ in a single number, become a comprehension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..emit.expression import Attribute, Binary, Call, Comprehension, Dict, Expr, List, Literal, Name, flat, lift


def listed(items: Sequence[Expr]) -> Expr:
    """A list of constructors: consecutive ones that are equal, or differ in a number that grows by a step, become a
    comprehension."""
    runs: list[list[Expr]] = []
    texts: set[str] = set()  # those of the last run
    for item in items:
        text = flat(item)
        if runs and (texts == {text} or _stepped([*runs[-1], item]) is not None):
            runs[-1].append(item)
            texts.add(text)
        else:
            runs.append([item])
            texts = {text}
    out: Expr | None = None
    single: list[Expr] = []
    for run in [*runs, []]:
        again = _repeated(run)
        if run and again is None:
            single += run
            continue
        for part in (List(tuple(single)) if single else None, again):
            if part is not None:
                out = part if out is None else Binary("+", out, part)
        single = []
    return out if out is not None else List(())


def _repeated(run: Sequence[Expr]) -> Expr | None:
    """Equal constructors as a comprehension."""
    if len(run) < 2:
        return None
    if flat(run[0]) == flat(run[-1]):
        return Comprehension(run[0], "_", Call(Name("range"), (lift(len(run)),)))
    return _stepped(run) if len(run) > 2 else None


def _stepped(run: Sequence[Expr]) -> Expr | None:
    """Constructors that differ in one number, which grows by a constant step."""
    first = run[0]
    if not isinstance(first, Call):
        return None
    rows: list[tuple[Expr, ...]] = []
    for item in run:
        if not isinstance(item, Call) or item.function != first.function or len(item.args) != len(first.args):
            return None
        if [k for k, _ in item.kwargs] != [k for k, _ in first.kwargs]:
            return None
        rows.append((*item.args, *(v for _, v in item.kwargs)))
    columns = list(zip(*rows, strict=True))
    moving = [c for c in columns if len({flat(v) for v in c}) > 1]
    if not moving or any(c != moving[0] for c in moving):
        return None
    if not all(isinstance(v, Literal) and v.text.isdigit() for v in moving[0]):
        return None
    numbers = [int(v.text) for v in moving[0] if isinstance(v, Literal)]
    step = numbers[1] - numbers[0]
    if step <= 0 or any(b - a != step for a, b in pairwise(numbers)):
        return None
    values = [Name("n") if c == moving[0] else c[0] for c in columns]
    width = len(first.args)
    names = [k for k, _ in first.kwargs]
    call = Call(first.function, tuple(values[:width]), tuple(zip(names, values[width:], strict=True)))
    ends = (numbers[0], numbers[-1] + step) if step == 1 else (numbers[0], numbers[-1] + step, step)
    return Comprehension(call, "n", Call(Name("range"), tuple(map(lift, ends))))


def held(tree: dict[str, Any]) -> Expr:
    """A field's value: a constructor, or a list or dict of such."""
    keys = list(tree)
    values = [v if not isinstance(v, dict) else held(v) for v in tree.values()]
    if all(k.isdigit() for k in keys):
        numbers = [int(k) for k in keys]
        pairs = sorted(zip(numbers, values, strict=True), key=lambda p: p[0])
        if [n for n, _ in pairs] == list(range(len(pairs))):
            return listed([v for _, v in pairs])
        return Dict(tuple((lift(n), v) for n, v in pairs))
    return Call(Attribute(Name("nn"), "Group"), (), tuple(zip(keys, values, strict=True)))
