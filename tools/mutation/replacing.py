"""Gives functions that are loaded the code of a changed file, so that a fork of a warm process has a bug."""

from __future__ import annotations

import gc
import os
import sys
from types import CodeType, FunctionType


def replace(file: str, sound: str) -> bool:
    """Give every loaded function of the file the code that the file holds now; `sound`: the text it was loaded from.

    Returns False if code that runs on import has changed in a module that is already loaded.
    """
    with open(file, "rb") as opened:
        new = compile(opened.read(), file, "exec", dont_inherit=True)
    old = compile(sound, file, "exec", dont_inherit=True)
    loaded = [
        module
        for module in list(sys.modules.values())
        if (path := getattr(module, "__file__", None)) and os.path.realpath(path) == file
    ]
    if not loaded:
        return True
    changed: dict[tuple[str, int], CodeType] = {}
    if not _changes(old, new, changed):
        return False
    for function in [found for found in gc.get_objects() if isinstance(found, FunctionType)]:
        code = function.__code__
        key = (code.co_qualname, code.co_firstlineno)
        if key in changed and os.path.realpath(code.co_filename) == file:
            if len(changed[key].co_freevars) != len(code.co_freevars):
                return False
            function.__code__ = changed[key]
    return True


def _changes(old: CodeType, new: CodeType, changed: dict[tuple[str, int], CodeType]) -> bool:
    """Collect the functions whose code differs; False if a module's or a class's own code differs."""
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new)]
    if len(inner[0]) != len(inner[1]):
        return False
    if not old.co_flags & 0x1:  # no CO_OPTIMIZED: the code of a module or of a class
        plain = [[c for c in code.co_consts if not isinstance(c, CodeType)] for code in (old, new)]
        if old.co_code != new.co_code or repr(plain[0]) != repr(plain[1]) or old.co_names != new.co_names:
            return False
    elif old != new:
        changed[old.co_qualname, old.co_firstlineno] = new
    return all(_changes(a, b, changed) for a, b in zip(*inner, strict=True))
