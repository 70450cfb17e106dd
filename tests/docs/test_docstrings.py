"""Everything public has a docstring for `help()`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from emberlet.backend import Backend
from emberlet.backend.protocol import Protocol

MODULES = [
    "emberlet",
    "emberlet.backend",
    "emberlet.burnpack",
    "emberlet.codegen",
    "emberlet.codegen.onnx_backend",
    "emberlet.config",
    "emberlet.errors",
    "emberlet.functional",
    "emberlet.host.burnpack_writer",
    "emberlet.micro.audio",
    "emberlet.micro.image",
    "emberlet.micro.stream",
    "emberlet.model",
    "emberlet.module",
    "emberlet.nn",
    "emberlet.param",
    "emberlet.wgpu_backend",
    "emberlet.wgpu_backend.compiled",
    "emberlet.wgpu_backend.device",
    "emberlet.wgpu_backend.plan_file",
    "emberlet.wgpu_backend.tuning",
]


def public(name: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module, and the public methods that its classes define."""
    module = importlib.import_module(name)
    assert module.__doc__, name
    for key in dir(module):
        found = getattr(module, key, None)  # a submodule that is not imported, or only in a browser
        ours = str(getattr(found, "__module__", "")).startswith("emberlet")
        if key.startswith("_") or not ours or not (inspect.isfunction(found) or inspect.isclass(found)):
            continue
        yield f"{name}.{key}", found
        for method, value in vars(found).items() if inspect.isclass(found) else ():
            value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            value = value.fget if isinstance(value, property) else value
            if hasattr(Protocol, method) and issubclass(found, Backend):
                continue  # documented in Protocol, once for all backends
            if not method.startswith("_") and inspect.isfunction(value):
                yield f"{name}.{key}.{method}", value


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_has_a_docstring(name: str) -> None:
    assert [key for key, found in public(name) if not found.__doc__] == []
