"""Instantiates a generated class without writing a file."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from .module import Written
from .names import identifier

if TYPE_CHECKING:
    from emberlet.backend import Backend
    from emberlet.model import Model as GeneratedModel


def instantiate(written: Written, name: str, backend: Backend | str | None = None) -> GeneratedModel:
    """The generated class, imported from its source, as an instance without weights."""
    module = ModuleType(identifier(name, "model"))
    exec(compile(written.source, f"<{module.__name__}.py>", "exec"), module.__dict__)
    instance: GeneratedModel = getattr(module, written.class_name)(backend=backend)
    return instance
