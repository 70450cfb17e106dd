"""Looking up functions by name; each is imported from its family on first use.

The short table below has those that small networks need; the full table, names.py, is loaded for the rest.
"""

# family -> (functions that are also Tensor methods, functions that are not)
EVERYDAY = {
    "arrays": ("", "asarray"),
    "convolution": ("", "conv"),
    "max_pooling": ("", "max_pool"),
    "python_values": ("item tolist", ""),
    "rectifiers": ("relu", ""),
    "reshaping": ("reshape flatten", ""),
}

_known = {}
gate = None  # on CPython: the gate that explains wrong arguments (host/interface/guarding.py)


def _search(families, name):
    # A linear search: an index of all names would take 40 KB on a device, and each name is looked up only once.
    word = " " + name + " "
    for family in families:
        methods, functions = families[family]
        if word in " " + methods + " ":
            return family, True
        if word in " " + functions + " ":
            return family, False
    return None


def _find(name):
    """(family, whether it is also a method) of a function, or None."""
    found = _search(EVERYDAY, name)
    if found is None and name[:2] != "__":
        from .names import FAMILIES

        found = _search(FAMILIES, name)
    return found


def function(name):
    """The function called `name`, imported from its family on first use; None if there is none."""
    found = _known.get(name)
    where = None if found else _find(name)
    if where:
        home = "emberlet.functional." + where[0] if where[0] != "display" else "emberlet.display"
        found = getattr(__import__(home, None, None, ("*",)), name)
        if gate:
            found = gate(found)
        _known[name] = found
    return found


def method(name):
    """The function behind the Tensor method `name`, or None."""
    where = _find(name)
    return function(name) if where and where[1] else None


def absent(where, name):
    """What is called `name` elsewhere, on CPython. Raises AttributeError."""
    return __import__("emberlet.errors.absent", None, None, ("find",)).find(where, name)
