"""The names that a package finds in its files, for `dir(emberlet.nn)`, documents and stubs."""

from __future__ import annotations

import inspect
import pkgutil
from functools import cache
from importlib import import_module
from typing import Any


@cache
def homes(package: str = "emberlet.nn") -> dict[str, Any]:
    """{name: class or function} of everything that `package` imports from its files on demand, in the order of the
    files."""
    found = {}
    whole = import_module(package)
    for file in pkgutil.iter_modules(whole.__path__):
        module = import_module(f"{package}.{file.name}")
        for name, value in vars(module).items():
            if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            if value.__module__ == module.__name__ and getattr(whole, name, None) is value:
                found[name] = value
    return found


def names(package: str) -> list[str]:
    """What `dir(package)` lists, sorted."""
    return sorted([*homes(package), "Module", "Model", "Param", "ParamId"])
