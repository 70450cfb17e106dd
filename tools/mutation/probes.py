"""Records which statements run: every statement inside a function of the distribution has a probe.

An import hook compiles the files below one folder with `hits[n] = 1` in front of their n-th statement. That costs less
than a tracer, which is called for every line. Used by room.py, inside the processes that run tests.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import marshal
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

Span = tuple[int, int]  # the first and the last line of a statement; of `if`, `for` and the like only their head

_found: dict[str, tuple[bytearray, list[Span]]] = {}  # by file


def install(folder: str, cache: str) -> None:
    """Probe the Python files below `folder`; `cache`: a folder for the compiled code."""

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType | None:
            source = self.get_data(self.path)
            digest = hashlib.sha256(self.path.encode() + b"\0" + source).hexdigest()[:16]
            kept = Path(cache, f"{digest}.{sys.implementation.cache_tag}")
            name = f"_hits_{digest}"
            try:
                code, spans = marshal.loads(kept.read_bytes())
            except (OSError, ValueError, EOFError):
                code, spans = probed(source, self.path, name)
                kept.parent.mkdir(parents=True, exist_ok=True)
                unfinished = kept.with_suffix(f".{os.getpid()}")
                unfinished.write_bytes(marshal.dumps((code, spans)))
                unfinished.replace(kept)
            hits = bytearray(len(spans))
            setattr(builtins, name, hits)
            _found[os.path.realpath(self.path)] = (hits, spans)
            return code

    plain = FileFinder.path_hook((ExtensionFileLoader, [".so"]), (Loader, [".py"]))

    def hook(path: str) -> object:
        if not (path + os.sep).startswith(folder + os.sep):
            raise ImportError("not probed", path=path)
        return plain(path)

    sys.path_hooks.insert(0, hook)  # type: ignore[arg-type]
    sys.path_importer_cache.clear()


def probed(source: bytes, file: str, name: str) -> tuple[CodeType, list[Span]]:
    """The code of a file with a probe before every statement inside a function, and where those statements are."""
    tree = ast.parse(source)
    spans: list[Span] = []
    _probe(tree, name, spans, False)
    return compile(tree, file, "exec", dont_inherit=True), spans


def _probe(node: ast.AST, name: str, spans: list[Span], inside: bool) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        inside = not isinstance(node, ast.ClassDef)
    for block in _blocks(node):
        statements = list(block)
        block.clear()
        for at, statement in enumerate(statements):
            _probe(statement, name, spans, inside)
            if inside and not (at == 0 and _is_text(statement)):
                line = statement.lineno
                probe = ast.parse(f"{name}[{len(spans)}] = 1").body[0]
                for part in ast.walk(probe):
                    if hasattr(part, "lineno"):
                        ast.copy_location(part, statement)
                        part.end_lineno, part.end_col_offset = line, statement.col_offset  # type: ignore[attr-defined]
                block.append(probe)
                spans.append((line, _last_line(statement)))
            block.append(statement)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of statements of a node, those of its `except` and `case` too."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], ast.ExceptHandler | ast.match_case):
            for case in value:
                yield from _blocks(case)


def _last_line(statement: ast.stmt) -> int:
    body = next(_blocks(statement), None)
    end = statement.end_lineno or statement.lineno
    return max(statement.lineno, min(end, body[0].lineno - 1)) if body else end


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def clear() -> None:
    for hits, _ in _found.values():
        hits[:] = bytes(len(hits))


def executed() -> dict[str, bytes]:
    """file -> the lines that ran since `clear`: bit n % 8 of byte n // 8 for line n."""
    found = {}
    for file, (hits, spans) in _found.items():
        if 1 in hits:
            lines = {
                line for hit, (first, last) in zip(hits, spans, strict=True) if hit for line in range(first, last + 1)
            }
            bits = bytearray(max(lines) // 8 + 1)
            for line in lines:
                bits[line // 8] |= 1 << line % 8
            found[file] = bytes(bits)
    return found
