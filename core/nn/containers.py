"""Modules made of modules, under PyTorch's names: a list or a dict as an attribute does the same without a class."""

from ..errors import ArgumentError
from ..module import Module


def _name(container, name, layer):
    """Hold `layer` under `name`. Raises ArgumentError for a method's name."""
    kind = type(container)
    if hasattr(kind, name):
        raise ArgumentError("{}: {!r} is a method of every module; take another name".format(kind.__name__, name))
    setattr(container, name, layer)


class _Numbered(Module):
    """Modules under their numbers as names, as in a state dict of PyTorch: `0.weight`."""

    def __init__(self, modules=()):
        for layer in modules:
            self.append(layer)

    def append(self, layer):
        """Add a module at the end. Returns self."""
        if not callable(layer):
            raise ArgumentError("{} holds modules, found {!r}".format(type(self).__name__, layer))
        setattr(self, str(len(self)), layer)
        return self

    def extend(self, modules):
        """Add several modules at the end. Returns self."""
        for layer in modules:
            self.append(layer)
        return self

    def _all(self):
        return list(self.__dict__.values())

    def __len__(self):
        return len(self.__dict__)

    def __iter__(self):
        return iter(self._all())

    def __getitem__(self, key):
        found = self._all()[key]
        return ModuleList(found) if isinstance(key, slice) else found


class Sequential(_Numbered):
    """Modules called one after the other, each with the result of the one before: `nn.Sequential(a, b)(x)` is b(a(x)).

    modules: modules or functions, or one list of them, or one dict, whose keys are then their names.
    """

    def __init__(self, *modules):
        if len(modules) == 1 and isinstance(modules[0], dict):
            for name in modules[0]:
                _name(self, name, modules[0][name])
        else:
            super().__init__(modules[0] if len(modules) == 1 and isinstance(modules[0], (list, tuple)) else modules)

    def __getitem__(self, key):
        found = self._all()[key]
        return Sequential(*found) if isinstance(key, slice) else found

    def forward(self, x):
        """x through all modules in turn."""
        for layer in self._all():
            x = layer(x)
        return x


class ModuleList(_Numbered):
    """A list of modules; the module that holds it calls them."""


class ModuleDict(Module):
    """A dict of modules by name; the module that holds it calls them."""

    def __init__(self, modules=None):
        self.update(modules or {})

    def update(self, modules):
        """Add or replace modules: a dict, or pairs of a name and a module."""
        for name, layer in modules.items() if isinstance(modules, dict) else modules:
            self[name] = layer

    def __setitem__(self, name, layer):
        _name(self, name, layer)

    def __getitem__(self, name):
        return self.__dict__[name]

    def __contains__(self, name):
        return name in self.__dict__

    def __len__(self):
        return len(self.__dict__)

    def __iter__(self):
        return iter(self.__dict__)

    def keys(self):
        """The names."""
        return self.__dict__.keys()

    def values(self):
        """The modules."""
        return self.__dict__.values()

    def items(self):
        """The pairs of a name and a module."""
        return self.__dict__.items()
