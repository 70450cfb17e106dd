"""What a caller gives a session: inputs, by name or in order, and numbers."""

from ..errors import EmberletError


def by_name(model, states, args, kwargs):
    """The inputs other than states, Entries, by name. Raises EmberletError if any is missing or unknown."""
    names = _free(model, states)
    if len(args) > len(names):
        raise EmberletError("a step takes {}; found {} inputs".format(", ".join(names) or "no inputs", len(args)))
    found = {}
    for k in range(len(args)):
        found[names[k]] = args[k]
    parameters = parameters_of(model) if kwargs else None
    for word in kwargs:
        name = word
        if word not in names and parameters is not None and word in parameters:
            name = model.INPUTS[parameters.index(word)][0]
        if name in found:
            raise EmberletError("{!r} is given twice".format(name))
        if any(name == e.name for e in states):
            raise EmberletError("{!r} is a state, which the session keeps; initial= sets it".format(name))
        if name not in names:
            raise EmberletError("a step takes {}; there is no input {!r}".format(", ".join(names), word))
        found[name] = kwargs[word]
    for name in names:
        if name not in found:
            raise EmberletError("a step takes {}; {!r} is missing".format(", ".join(names), name))
    return found


def _free(model, states):
    """The names of the inputs other than states, in order."""
    names = input_names(model)
    taken = [e.input for e in states]
    return [names[k] for k in range(len(names)) if k not in taken]


def arguments_of(model, states, args, kwargs, given):
    """The arguments of `forward`, in order."""
    if getattr(model, "INPUTS", None) is not None:
        found = by_name(model, states, args, kwargs)
        for i in range(len(given)):
            found[states[i].name] = given[i]
        try:
            from ..host.models.inputs import bind
        except ImportError:  # a device takes tensors as they are
            return [found[e[0]] for e in model.INPUTS]
        return bind(model, (), found)
    if kwargs:
        raise EmberletError("inputs can be given by name only if the model's class has INPUTS")
    free = list(args)
    out = []
    for e in sorted(states, key=lambda e: e.input):
        while len(out) < e.input:
            if not free:
                raise EmberletError("a step got {} inputs, too few for the states after them".format(len(args)))
            out.append(free.pop(0))
        out.append(given[states.index(e)])
    check_count(model, len(args), len(out) + len(free))
    return out + free


def input_names(model):
    """The inputs' names in INPUTS, else in the signature of `forward` (None on a device)."""
    given = getattr(model, "INPUTS", None)
    return parameters_of(model) if given is None else [e[0] for e in given]


def parameters_of(model):
    """The parameters of `forward`, or None on a device."""
    try:
        from ..host.models.inputs import parameters_of as found
    except ImportError:
        return None
    return found(model)


def check_count(model, taken, total):
    """Raise EmberletError if `forward` does not take this many arguments; on a device the call itself fails."""
    try:
        from ..host.models.inputs import takes
    except ImportError:
        return
    error = takes(model, total)
    if error:
        raise EmberletError(
            "a step of {} got {} inputs besides its states: {}".format(type(model).__name__, taken, error)
        )


def int_or_none(n):
    """n as an int, NumPy's integers included; None if it is not a whole number."""
    if isinstance(n, bool):
        return None
    if isinstance(n, int):
        return n
    index = getattr(n, "__index__", None)
    try:
        return None if index is None else index()
    except TypeError:  # arrays have the method too, for a single integer
        return None


def note_sizes(sizes, declared, found):
    """Add to `sizes` those of the named dimensions that the inputs show. declared: INPUTS; found: values by name."""
    for name, _, shape in declared:
        seen = shape_of(found.get(name))
        if shape is None or seen is None or len(seen) != len(shape):
            continue
        for k in range(len(shape)):
            if isinstance(shape[k], str):
                sizes.setdefault(shape[k], seen[k])


def shape_of(x):
    """The shape of a Tensor, an array or nested lists; None if unknown."""
    if x is None or hasattr(x, "shape"):
        return None if x is None else tuple(x.shape)
    shape = []
    while isinstance(x, (list, tuple)):
        shape.append(len(x))
        if not x:
            break
        x = x[0]
    return tuple(shape)
