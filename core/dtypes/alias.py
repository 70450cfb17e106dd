"""Other names of dtypes: those of NumPy, PyTorch and Python itself (np.float32, "f4", torch.float16, int)."""

from . import BY_NAME

_WORDS = {
    "half": "float16", "single": "float32", "double": "float64", "float": "float32", "int": "int64", "long": "int64",
    "short": "int16", "byte": "int8", "ubyte": "uint8", "bool_": "bool", "str": "string", "str_": "string",
}  # fmt: skip
_KINDS = {"f": "float", "i": "int", "u": "uint"}


def alias(name):
    """The DType with a foreign name, or None.

    Python's types map to the dtypes of Python's numbers: int to int64, float to float32, as in `asarray([1.5])`.
    """
    if isinstance(name, type):
        name = name.__name__  # Python's own, or numpy.float32, ml_dtypes.bfloat16
    elif not isinstance(name, str):
        name = getattr(name, "name", None) or str(name)  # a numpy.dtype has a name, a torch.dtype none
        if not isinstance(name, str):
            return None
    name = name.split(".")[-1]
    if name[:1] in ("<", ">", "=", "|"):
        name = name[1:]
    if name == "?":
        name = "bool"
    if name[:1] == "c" and hasattr(memoryview, "cast"):  # not on MicroPython
        # Not by an import statement: devices have no such package.
        found = __import__("emberlet.host.complex_tensors", None, None, ("*",)).named(name)
        if found is not None:
            return found
    if name[:1] in _KINDS and name[1:] in ("1", "2", "4", "8"):
        name = "{}{}".format(_KINDS[name[0]], 8 * int(name[1:]))
    return BY_NAME.get(_WORDS.get(name, name))
