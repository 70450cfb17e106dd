"""What a saved training step (saved_step.py) gives and takes as Records: its parameters, and the optimizer's state."""

from emberlet.errors import LoadError

from . import storage


def parameters(step, tensors):
    """A Record of these values of the parameters, by each of their names."""
    found = {}
    ids = {}
    for names, x in zip(step._parameters, tensors):
        for name in names:
            found[name] = x
            if step._ids[names[0]] is not None:
                ids[name] = step._ids[names[0]]
    return _record(found, ids)


def optimizer(step, tensors, counts):
    """A Record of these states and counts."""
    from emberlet import dtypes
    from emberlet.backend import get_backend

    found = dict(zip(step._states, tensors))
    for name, _, known in step._counts:
        for one in known:
            found[one] = get_backend().full((), counts[name], dtypes.int64)
    return _record(found, {})


def load(step, record, most):
    """See `SavedStep.load_record`. most: of a count."""
    burnpack = hasattr(record, "raw")
    places = {}
    for i in range(len(step._values)):
        for name in step._parameters[i] if i < len(step.names) else [step._states[i - len(step.names)]]:
            places[name] = step._values[i]
    counted = {}
    for name, _, known in step._counts:
        for one in known:
            counted[one] = name
    side, counts = step._now
    counts = dict(counts)
    taken = {}
    writes = []
    for name in record.tensors if burnpack else record:
        x = record.tensor(name) if burnpack else record[name]
        if name in counted:
            if x.size != 1 or not x.dtype.is_integer:
                raise LoadError(
                    "{}: the count {!r} is one integer, found {} {}".format(step.origin, name, x.dtype, x.shape)
                )
            value = int(x.item())
            if taken.setdefault(counted[name], value) != value or not 0 <= value <= most:
                raise LoadError("{}: the count {!r} cannot become {}".format(step.origin, name, value))
            counts[counted[name]] = value
            continue
        port = places.get(name)
        if port is None or x.shape != port.shape or x.dtype is not port.dtype:
            raise LoadError(
                "{}: the step has no {!r} of {} {}{}".format(
                    step.origin, name, x.dtype, x.shape, "; it has {}".format(port) if port else ""
                )
            )
        word = storage.packed(x.dtype)
        writes.append((port, storage.widen(x.backend.to_bytes(x), x.dtype, x.size, word)))
    program = step._current()
    for port, words in writes:
        program.device.write(program.allocations[port.buffer], words)
    step._now = (side, counts)


def _record(tensors, ids):
    """A Record; ids: identities of parameters as ints."""
    # By name, because modules are built on what this package is built on.
    identity = __import__("emberlet.param.identity", None, None, ("*",)).ParamId
    record = __import__("emberlet.module.record", None, None, ("*",)).Record
    return record(tensors, {name: identity(ids[name]) for name in ids})
