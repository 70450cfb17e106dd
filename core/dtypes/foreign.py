"""The dtypes that NumPy, PyTorch and Python itself mean: np.float32, "f4", torch.float16, int."""

from . import BY_NAME

_WORDS = {
    "half": "float16", "single": "float32", "double": "float64", "float": "float32", "int": "int64", "long": "int64",
    "short": "int16", "byte": "int8", "ubyte": "uint8", "bool_": "bool", "str": "string", "str_": "string",
}  # fmt: skip
_KINDS = {"f": "float", "i": "int", "u": "uint"}


def foreign(name):
    """The DType that `name` means elsewhere, or None.

    Python's own types mean what Python's numbers become: int is int64, float is float32, as in `asarray([1.5])`.
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
    if name[:1] in _KINDS and name[1:] in ("1", "2", "4", "8"):
        name = "{}{}".format(_KINDS[name[0]], 8 * int(name[1:]))
    return BY_NAME.get(_WORDS.get(name, name))
