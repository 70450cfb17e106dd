"""What kernels and their writers take where nothing is said. `UPDATE_SNAPSHOTS=1 pytest` here records it anew."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from emberlet.micro import builder
from support.recorded import assert_recorded

RECORDED = Path(__file__).with_name("recorded_defaults.txt")
PACKAGES = ("assembly", "emit", "kernels")
PLAIN = (bool, int, float, str, tuple, type(None))


def defaults(what: Any) -> str:
    """The parameters that need not be given and what they are, but for objects."""
    try:
        parameters = inspect.signature(what).parameters.values()
    except (TypeError, ValueError):  # classes that make their own instances
        return ""
    return ", ".join(f"{p.name}={p.default!r}" for p in parameters if isinstance(p.default, PLAIN))


def callables(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            yield name, value
            yield from ((f"{name}.{n}", v) for n, v in vars(value).items() if inspect.isfunction(v) and n[:2] != "__")


def test_what_is_taken_where_nothing_is_said() -> None:
    root = builder.__name__
    lines: list[str] = []
    for found in pkgutil.walk_packages(builder.__path__, f"{root}."):
        if found.name.split(".")[len(root.split("."))] not in PACKAGES:
            continue
        module = importlib.import_module(found.name)
        for name, value in callables(module):
            if text := defaults(value):
                lines.append(f"{found.name.removeprefix(f'{root}.')}.{name}: {text}")
    assert_recorded(RECORDED, "defaults", "\n".join(sorted(lines)))
