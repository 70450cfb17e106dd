"""Instantiates a generated class without writing a file."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from emberlet.nn import Module

from .module import Written
from .names import identifier

if TYPE_CHECKING:
    from emberlet.backend import Backend
    from emberlet.model import Model as GeneratedModel

# (name, source) -> the module made from it; its classes keep it alive.
_modules: WeakValueDictionary[tuple[str, str], ModuleType] = WeakValueDictionary()


def instantiate(written: Written, name: str, backend: Backend | str | None = None) -> GeneratedModel:
    """The generated class, imported from its source, as an instance without weights. It can be pickled: what is written
    is the source, since no file holds it."""
    module = _executed(identifier(name, "model"), written.source)
    instance: GeneratedModel = getattr(module, written.class_name)(backend=backend)
    return instance


def _executed(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, f"<{name}.py>", "exec"), module.__dict__)
    for made in vars(module).values():
        if isinstance(made, type) and issubclass(made, Module) and made.__module__ == name:
            made._origin = (module, source)  # type: ignore[attr-defined]
            made.__reduce_ex__ = _reduced  # type: ignore[method-assign]
    _modules[name, source] = module
    return module


def _reduced(self: Any, protocol: Any) -> tuple[Any, ...]:
    module, source = type(self)._origin
    sources = vars(type(self)).get("SOURCES")
    return _blank, (module.__name__, source, type(self).__name__, sources), dict(self.__dict__)


def _blank(name: str, source: str, class_name: str, sources: Any) -> Any:
    """An object of a generated class, without attributes."""
    module = _modules.get((name, source)) or _executed(name, source)
    made = getattr(module, class_name)
    if sources is not None:
        made.SOURCES = sources
    return made.__new__(made)
