"""Layers, named and called like PyTorch's, with lazy parameters: constructing one allocates nothing.

The first use of `emberlet.nn.Linear` imports core/nn/linear.py and nothing else: a layer is in the file of its own name
(ConvTranspose2d in conv_transpose.py), or in the one that names.py gives. docs/modules.md lists every layer.
"""


def __getattr__(name):
    found = getattr(_file(_snake(name)), name, None) if name[0].isupper() else None
    if found is None:
        file = _file("names").FILES.get(name)
        found = getattr(_file(file), name) if file else _file(name)
        if found is None:
            from ..lookup import absent

            found = absent("emberlet.nn", name)
    globals()[name] = found
    return found


def __dir__():
    from ..host.interface.layers import names

    return names("emberlet.nn")


def _file(name):
    """The module of that name, or None if there is no such file."""
    path = "emberlet." + (name[2:] if name[0] == "." else "nn." + name)
    try:
        return __import__(path, None, None, ("*",))
    except ImportError as error:
        if repr(path) in str(error):
            return None
        raise  # the file exists, but an import in it failed


def _snake(name):
    """conv_transpose for ConvTranspose2d."""
    if name[-1] == "d" and name[-2] in "1234":
        name = name[:-2]
    return "".join(["_" + c.lower() if c.isupper() else c for c in name])[1:]
