"""Renaming the tensors of a store: patterns, contiguous layer indices, enum variants removed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ..errors import EmberletError, LoadError


class KeyRemapper:
    """Renames by patterns in order; each is applied to the result of the previous one.

        KeyRemapper([(r"^model\\.", ""), (r"norm(\\d+)", r"norm_\\1")])

    patterns: (pattern of `re`, replacement) pairs; `add` appends one. A replacement may also name groups as Burn does:
    "$1", "${name}". Raises EmberletError for a malformed pattern or replacement.
    """

    def __init__(self, patterns: Iterable[tuple[str, str]] = ()) -> None:
        self.patterns: list[tuple[re.Pattern[str], str]] = []
        for pattern, replacement in patterns:
            self.add(pattern, replacement)

    def add(self, pattern: str, replacement: str) -> KeyRemapper:
        """Append one; returns the remapper."""
        replacement = re.sub(r"\$(?:(\d+|[A-Za-z_]\w*)|\{(\w+)\})", lambda m: rf"\g<{m[1] or m[2]}>", replacement)
        try:
            compiled = re.compile(pattern)
            re.sub(compiled, replacement, "")  # a replacement that refers to a missing group
        except (re.error, IndexError) as error:
            raise EmberletError(f"cannot rename {pattern!r} to {replacement!r}: {error}") from None
        self.patterns.append((compiled, replacement))
        return self

    add_pattern = add  # Burn's name

    def __call__(self, name: str) -> str:
        for pattern, replacement in self.patterns:
            try:
                name = pattern.sub(replacement, name)
            except (re.error, IndexError) as error:
                raise EmberletError(f"cannot rename {name!r} to {replacement!r}: {error}") from None
        return name


Renaming: TypeAlias = KeyRemapper | Callable[[str], str] | Mapping[str, str] | Iterable[tuple[str, str]]


def renamer_of(given: Renaming) -> Callable[[str], str]:
    """A function from name to name, given (pattern, replacement) pairs, a dict of whole names, a KeyRemapper or any
    function."""
    if isinstance(given, Mapping):
        table = dict(given)
        return lambda name: table.get(name, name)
    return given if callable(given) else KeyRemapper(given)


def renamed_keys(names: Iterable[str], rename: Callable[[str], str]) -> dict[str, str]:
    """Old name -> new name. Raises LoadError if two names become equal."""
    out: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        new = str(rename(name))
        if new in taken:
            raise LoadError(f"{taken[new]!r} and {name!r} would both be called {new!r}")
        taken[new] = name
        out[name] = new
    return out


def contiguous(names: Iterable[str]) -> dict[str, str]:
    """name -> the name with each list renumbered from 0 without gaps: fc.0, fc.2, fc.4 -> fc.0, fc.1, fc.2.

    Layers without parameters leave such gaps in the names of a PyTorch `Sequential`.
    """
    paths = {name: name.split(".") for name in names}
    found: dict[tuple[str, ...], set[str]] = {}
    for path in paths.values():
        for i, part in enumerate(path):
            if part.isdecimal() and part.isascii():
                found.setdefault(tuple(path[:i]), set()).add(part)
    index = {prefix: {n: str(i) for i, n in enumerate(sorted(ns, key=_order))} for prefix, ns in found.items()}
    return {
        name: ".".join(index.get(tuple(path[:i]), {}).get(part, part) for i, part in enumerate(path))
        for name, path in paths.items()
    }


def _order(number: str) -> tuple[int, str]:
    return len(number.lstrip("0")), number.lstrip("0")


def aligned(names: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """name -> the name with list numbers replaced by those of `wanted`, in order, if neither side's numbers contain the
    other's: with gaps on one side, the n-th layer here is the n-th there."""
    out: dict[str, str] = {}

    def walk(ours: list[list[str]], theirs: list[list[str]], before: list[str], done: list[str]) -> None:
        mine, other = _heads(ours), _heads(theirs)
        numbers = sorted((h for h in mine if h.isdecimal() and h.isascii()), key=_order)
        wants = sorted((h for h in other if h.isdecimal() and h.isascii()), key=_order)
        moved = {}
        if numbers and wants and not set(numbers) <= set(wants) and not set(wants) <= set(numbers):
            moved = dict(zip(numbers, wants, strict=False))
            # A remaining name must not collide with a renumbered one.
            moved.update({n: n + "+" for n in numbers[len(wants) :]})
        for head, rests in mine.items():
            new = moved.get(head, head)
            if any(not rest for rest in rests):
                out[".".join([*before, head])] = ".".join([*done, new])
            deeper = [rest for rest in rests if rest]
            if deeper:
                walk(deeper, [r for r in other.get(new, []) if r], [*before, head], [*done, new])

    walk([n.split(".") for n in names], [n.split(".") for n in wanted], [], [])
    return out


def _heads(paths: list[list[str]]) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for path in paths:
        found.setdefault(path[0], []).append(path[1:])
    return found


def without_variants(name: str) -> str:
    """The path without the parts that look like a Rust enum variant: CamelCase, and not last."""
    parts = name.split(".")
    return ".".join([p for p in parts[:-1] if not re.fullmatch(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", p)] + parts[-1:])
