"""The layout of dense weights in a record: Burn's, (d_input, d_output), or PyTorch's, the transpose.

A file declares its layout in its metadata under "emberlet.layout"; the default is Burn's. A plain dict declares
nothing, and the shape of a square weight does not tell either: then the caller must pass it.
"""

from ..errors import refuse
from ..tensor import Tensor
from . import leaves

KEY = "emberlet.layout"
LAYOUTS = ("burn", "pytorch")


def dense_weights(module, kind):
    """(name, Param) of every weight that PyTorch stores transposed."""
    for name, holder, key, param in leaves(module, kind):
        if key == "weight" and getattr(type(holder), "TRANSPOSED_IN_PYTORCH", False):
            yield name, param


def adapter(module, record, layout, kind):
    """A function (name, Tensor) -> Tensor that brings a record's values into this library's layout.

    Raises LoadError for an unknown layout, one that contradicts the file's, and a dict with square dense weights and no
    layout.
    """
    texts = getattr(record, "metadata", {})
    said = texts.get(KEY, "burn" if hasattr(record, "raw") or hasattr(record, "param_ids") else None)
    for one in (layout, said):
        if one not in (None,) + LAYOUTS:
            refuse("layout", one)
    if layout and KEY in texts and layout != said:
        refuse("other layout", said, layout)
    turned = {}
    for name, param in dense_weights(module, kind):
        if layout is None and said is None and name in record and param.shape[0] == param.shape[1]:
            refuse("square", name)
        if (layout or said) == "pytorch":
            turned[name] = True

    def adapt(name, value):
        if not hasattr(value, "backend"):  # another library's array
            from ..host.sharing.foreign import tensor_of

            value = tensor_of(value)
        # The Param gets a tensor of its own: assigning to the record's does not change it.
        return value.mT if name in turned else Tensor(value.data, value.dtype, value.shape, value.backend)

    return adapt
