"""What `dir()` shows: the public names of `emberlet`, and the methods that Tensor looks up by name."""

from __future__ import annotations

import sys
from typing import Any

# Modules that a program may import.
MODULES = (
    "autodiff",
    "codegen",
    "data",
    "errors",
    "functional",
    "fft",
    "linalg",
    "micro",
    "nn",
    "optim",
    "train",
    "wgpu_backend",
)
# For CPython only; names.find of interface/elsewhere finds them.
HOST_ONLY = ("complex64", "complex128", "show")
CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")


def names() -> list[str]:
    """The public names of `emberlet`, sorted."""
    from .. import dtypes, errors
    from ..names import all_names

    emberlet = vars(sys.modules["emberlet"])
    raised = [name for name in dir(errors) if name.endswith("Error")]
    special = [name for name in emberlet if name.startswith("__")]
    return sorted(
        {*all_names(), *emberlet["_HOMES"], *raised, *dtypes.BY_NAME, *MODULES, *HOST_ONLY, *CONSTANTS, *special}
    )


def find(where: str, name: str) -> Any:
    """What the module `where` has under another name than `name`; of `__all__`, its public names, which are imported
    on first use. Raises AttributeError, saying what to write."""
    if name == "__all__":
        return [public for public in dir(sys.modules[where]) if public[0] != "_" and _importable(where, public)]
    from .interface.elsewhere import names

    return names.find(where, name)


def _importable(where: str, name: str) -> bool:
    """Whether what a name needs, such as NumPy, is installed; without it, asking for the name says so."""
    try:
        getattr(sys.modules[where], name)
    except ImportError:
        return False
    return True


class Method:
    """A method of Tensor that is looked up on first access and then stored in the class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any) -> Any:
        from ..lookup import method

        function = method(self.name)
        setattr(owner, self.name, function)
        return getattr(owner if instance is None else instance, self.name)
