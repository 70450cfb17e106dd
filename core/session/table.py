"""The table STATE of a model: which outputs become inputs of the next call.

It lists each state as a tuple: the input, the output, "append" or "replace", and the axis along which the output
extends the input (None for "replace"). Inputs and outputs are named as in INPUTS and OUTPUTS, or numbered. The
generator writes the table; a handwritten class declares its own.
"""

from ..errors import EmberletError
from .inputs import input_names

APPEND, REPLACE = "append", "replace"


class Entry:
    """A state: the positions of its input and output, the axis or None, and the names of both."""

    def __init__(self, input, output, axis, name, result):
        self.input = input
        self.output = output
        self.axis = axis
        self.name = name
        self.result = result


def entries(model, table=None):
    """The Entries of a model's STATE, or of another table. Raises EmberletError if it does not match the model."""
    table = getattr(model, "STATE", None) if table is None else table
    if not table:
        raise EmberletError(
            "{} has no STATE: declare which outputs feed which inputs with `emberlet codegen --state past=present`, or "
            'with STATE = (("past", "present", "append", 2),) in the class'.format(type(model).__name__)
        )
    names = input_names(model)
    given = getattr(model, "OUTPUTS", None)
    results = None if given is None else [e[0] for e in given]
    found = []
    for row in table:
        row = tuple(row)
        if len(row) == 3 and row[2] == REPLACE:
            row += (None,)
        if len(row) != 4 or row[2] not in (APPEND, REPLACE) or (row[2] == APPEND) != isinstance(row[3], int):
            raise EmberletError(
                "an entry of STATE is (input, output, 'append', axis) or (input, output, 'replace', None), "
                "found {!r}".format(row)
            )
        i, o = _number(row[0], names, "input"), _number(row[1], results, "output")
        for e in found:
            if e.input == i or e.output == o:
                raise EmberletError("STATE names {!r} or {!r} twice".format(row[0], row[1]))
        name = names[i] if names is not None and i < len(names) else i
        result = results[o] if results is not None and o < len(results) else o
        axis = row[3]
        if axis is not None and axis < 0:
            shape = model.INPUTS[i][2] if getattr(model, "INPUTS", None) is not None else None
            if shape is None:
                raise EmberletError("count the axis of state {!r} from the front".format(name))
            axis += len(shape)
        found.append(Entry(i, o, axis, name, result))
    return found


def _number(word, names, what):
    if isinstance(word, int):
        return word
    if names is None or word not in names:
        known = (
            "use its number, since the class has no names" if names is None else "there are {}".format(", ".join(names))
        )
        raise EmberletError("STATE names an unknown {} {!r}; {}".format(what, word, known))
    return names.index(word)


def first_value(model, entry, sizes, home):
    """The zeros that a state begins with, without positions along the axis in which it grows. sizes: of dimensions, by
    name. Raises EmberletError if its shape is not known."""
    if getattr(model, "INPUTS", None) is None or model.INPUTS[entry.input][2] is None:
        raise EmberletError(
            "INPUTS does not say the shape of state {!r}; give its first value: session(initial=...)".format(entry.name)
        )
    name, kind, shape = model.INPUTS[entry.input]
    out = []
    for k in range(len(shape)):
        d = shape[k]
        if k == entry.axis and not isinstance(d, int):
            d = 0
        elif d is None:
            d = 1
        elif not isinstance(d, int):
            if d not in sizes:
                says = "the size {!r} of state {!r} is not known: session(dims={{{!r}: ...}}) says it"
                raise EmberletError(says.format(d, name, d))
            d = sizes[d]
        out.append(d)
    from ..dtypes import dtype
    from ..functional.creation.fills import zeros

    return zeros(tuple(out), dtype=dtype(kind), device=home)
