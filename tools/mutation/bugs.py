"""One-line bugs that a Python file can be given, found in its syntax tree.

Each changes one expression: a comparison, an arithmetic operator, `and` and `or`, a number, a condition, a guard, the
order of two arguments. Messages, annotations and docstrings are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
KINDS = ("comparison", "arithmetic", "and/or", "negation", "constant", "arguments", "condition", "guard")
SYMMETRIC = {"min", "max", "gcd", "lcm", "hypot"}  # functions of two arguments in any order: exchanging them is no bug
# Nothing inside these is changed: texts, types and raised errors.
LEFT_ALONE = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.Assert)


@dataclass(frozen=True)
class Bug:
    """A change of the bytes from `start` to `end` of a file."""

    file: Path
    kind: str
    line: int
    scope: str  # the names of the classes and functions around it, with dots
    start: int
    end: int
    new: bytes

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new + source[self.end :]

    def diff(self, source: bytes) -> str:
        """The line before and after."""
        old, new = source.splitlines(), self.apply(source).splitlines()
        return f"- {old[self.line - 1].decode().strip()}\n+ {new[self.line - 1].decode().strip()}"


def bugs_of(file: Path, source: bytes) -> list[Bug]:
    """Every bug that `file` can be given. A few break its syntax: see `compiles`."""
    return list(_Finder(file, source).found())


def compiles(bug: Bug) -> bool:
    """Whether the file with the bug still compiles."""
    try:
        compile(bug.apply(bug.file.read_bytes()), "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    def __init__(self, file: Path, source: bytes) -> None:
        self.file, self.source = file, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def found(self) -> Iterator[Bug]:
        yield from self._below(ast.parse(self.source), "")

    def _below(self, node: ast.AST, scope: str) -> Iterator[Bug]:
        if isinstance(node, LEFT_ALONE) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: checks the code itself
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            scope = f"{scope}.{node.name}".lstrip(".")
        for kind, start, end, new in self._changes(node):
            if start < end and b"\n" not in self.source[start:end] + new:
                line = self.source.count(b"\n", 0, start) + 1
                yield Bug(self.file, kind, line, scope, start, end, new)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._below(child, scope)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, bytes]]:  # noqa: C901
        match node:
            case ast.Compare():
                for left, operator, right in zip(
                    [node.left, *node.comparators], node.ops, node.comparators, strict=False
                ):
                    yield from self._operator("comparison", left, right, COMPARISONS.get(type(operator)))
            case ast.BinOp(left=left, op=operator, right=right):
                if not any(_is_text(side) or _is_type(side) for side in (left, right)):
                    yield from self._operator("arithmetic", left, right, ARITHMETIC.get(type(operator)))
            case ast.AugAssign(target=left, op=operator, value=right):
                if not _is_text(right) and (words := ARITHMETIC.get(type(operator))):
                    yield from self._operator("arithmetic", left, right, (words[0] + "=", words[1] + "="))
            case ast.BoolOp(op=operator, values=values):
                words = ("and", "or") if isinstance(operator, ast.And) else ("or", "and")
                for left, right in pairwise(values):
                    yield from self._operator("and/or", left, right, words)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "negation", self._start(node), self._start(operand), b""
            case ast.Constant(value=bool(value)):
                yield "constant", *self._span(node), str(not value).encode()
            case ast.Constant(value=int(value)):
                yield "constant", *self._span(node), str(value + 1).encode()
                if value > 1:
                    yield "constant", *self._span(node), str(value - 1).encode()
            case ast.Constant(value=float(value)):
                yield "constant", *self._span(node), repr(value * 2 if value else 1.0).encode()
            case ast.Call(args=[first, second, *_]) if not _is_starred(first) and not _is_starred(second):
                (start, middle), (after, end) = self._span(first), self._span(second)
                one, between, other = self.source[start:middle], self.source[middle:after], self.source[after:end]
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if one != other and name not in SYMMETRIC:
                    yield "arguments", start, end, other + between + one
            case _:
                pass
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            start, end = self._span(node.test)
            yield "condition", start, end, b"not (" + self.source[start:end] + b")"
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue):
            yield "guard", *self._span(node.test), b"False"

    def _operator(
        self, kind: str, left: ast.AST, right: ast.AST, words: tuple[str, str] | None
    ) -> Iterator[tuple[str, int, int, bytes]]:
        if words:
            start, end = self._span(left)[1], self._start(right)
            spaced = rb"\s+".join(re.escape(word).encode() for word in words[0].split())
            if found := re.search(spaced, self.source[start:end]):
                yield kind, start + found.start(), start + found.end(), words[1].encode()

    def _start(self, node: ast.AST) -> int:
        return self._span(node)[0]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        at = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self.starts[at[0] - 1] + at[1], self.starts[at[2] - 1] + at[3]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_type(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id[:1].isupper() and not node.id.isupper()) or (
        isinstance(node, ast.Constant) and node.value is None
    )


def _is_starred(node: ast.AST) -> bool:
    return isinstance(node, ast.Starred)
