"""The messages of loading weights: what was loaded, or why the weights do not match the module."""

from ..errors import LoadError
from ..param import Param
from .layouts import dense_weights


def differing(module, record, wrong, missing, unexpected, strict, layout=None):
    """Handle a load with names or values that do not match: returns None to go on with the others, or the record to
    retry with if it had Burn's names, PyTorch's, or dense weights in other forms. Raises LoadError."""
    if hasattr(memoryview, "cast"):  # not on MicroPython
        from ..store.quantized_layers import record_for

        again = record_for(module, record, layout)
        if again:
            return again
    if missing and unexpected:
        from .burn_names import renamed

        again = renamed(module, record)
        if again:
            return again
    if wrong or strict:
        names = record.tensors if hasattr(record, "raw") else record
        refuse_load(module, names, wrong, strict and missing, strict and unexpected)
    return None


def refuse_load(module, names, wrong, missing, unexpected):
    """Raise LoadError with every problem: values that do not match, and names that are missing or left over.

    names: name -> an object with the shape in the record.
    """
    lines = ["the weights do not fit {}; nothing was loaded".format(type(module).__name__)]
    if missing:
        lines.append("  missing: " + _first(sorted(missing), ", "))
    if unexpected:
        lines.append("  unexpected: " + _first(sorted(unexpected), ", "))
    if wrong:
        lines.append("  " + _first(wrong, "\n  "))
    for name, param in dense_weights(module, Param):
        if name in names and tuple(names[name].shape) == param.shape[::-1] != param.shape:
            lines.append("  PyTorch's weights? layout='pytorch' transposes those of dense layers")
            break
    raise LoadError("\n".join(lines))


def _first(names, between):
    """The first twenty of a list in a message, and how many more there are."""
    rest = len(names) - 20
    return between.join(names[:20]) + (between + "and {} more".format(rest) if rest > 0 else "")
