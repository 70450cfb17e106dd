"""The layout of dense weights in a record: Burn's, (d_input, d_output), or PyTorch's, the transpose.

A file says which it has in its metadata, under "emberlet.layout"; a file that says nothing has Burn's. A plain dict
cannot say it, and where a weight is square its shape does not tell either: then the caller must.
"""

from ..errors import LoadError
from ..tensor import Tensor
from . import leaves

KEY = "emberlet.layout"
LAYOUTS = ("burn", "pytorch")


def dense_weights(module, kind):
    """(name, Param) of every weight that PyTorch stores transposed."""
    for name, holder, key, param in leaves(module, kind):
        if key == "weight" and getattr(holder, "TRANSPOSED_IN_PYTORCH", False):
            yield name, param


def adapter(module, record, layout, kind):
    """A function (name, Tensor) -> Tensor that brings a record's values into this library's layout.

    Raises LoadError for an unknown layout, for one that contradicts what the file says, and for a dict with square
    dense weights where no layout is given.
    """
    texts = getattr(record, "metadata", {})
    said = texts.get(KEY, "burn" if hasattr(record, "raw") or hasattr(record, "param_ids") else None)
    for one in (layout, said):
        if one not in (None,) + LAYOUTS:
            raise LoadError("layout is one of {}, found {!r}".format(", ".join(LAYOUTS), one))
    if layout and KEY in texts and layout != said:
        raise LoadError("the file says that its layout is {!r}; it was to be loaded as {!r}".format(said, layout))
    turned = {}
    for name, param in dense_weights(module, kind):
        if layout is None and said is None and name in record and param.shape[0] == param.shape[1]:
            raise LoadError(
                "{} is square, so its shape does not tell whether it is stored (d_input, d_output) or, as PyTorch "
                "does, transposed; pass layout='burn' or layout='pytorch' to load_record".format(name)
            )
        if (layout or said) == "pytorch":
            turned[name] = True

    def adapt(name, value):
        # The Param gets a tensor of its own: assigning to the record's leaves it as it is.
        return value.mT if name in turned else Tensor(value.data, value.dtype, value.shape, value.backend)

    return adapt
