"""Parses a saved plan's JSON into a Plan. Files are not trusted: malformed or inconsistent content raises ValueError
before anything is allocated for it."""

from emberlet import dtypes

from ..run import storage
from .data import Buffer, Plan, Step
from .port import MAX_BYTES, Port

PAGE_BYTES = 1 << 27  # the limit of WebGPU's baseline, for which plans are made
MAX_COUNT = 100000  # buffers, kernels, steps, inputs
MAX_RANK = 64


def read(content, device_class):
    """(Plan, inputs, outputs, [(buffer, how, tensors)]) for the steps of a class of device. how: see stored.py; None
    for a tensor stored unchanged."""
    plan = Plan()
    if content.get("sizes") is not None:
        from .open_ports import read_counts

        plan.counts = read_counts(content["sizes"])
    for found in _list(_of(content, "buffers"), "buffers"):
        kind, nbytes = _list(found, "a buffer", 2)
        plan.buffers.append(Buffer(_text(kind, "a buffer's kind"), _number(nbytes, plan, "a buffer's size", MAX_BYTES)))
    kernels = []
    for found in _list(_of(content, "kernels"), "kernels"):
        name, source = _list(found, "a kernel", 2)
        kernels.append((_text(name, "a kernel's name"), _text(source, "a kernel")))
    _read_steps(plan, kernels, _of(_of(content, "steps"), device_class), _page_bytes(content))
    inputs = [_port(p, plan, True) for p in _list(_of(content, "inputs"), "inputs")]
    for found in _list(content.get("indices", []), "indices"):
        number, length = _list(found, "an index", 2)
        port = inputs[_whole(number, "the input of an index", len(inputs) - 1)]
        if not port.dtype.is_integer:
            raise ValueError("{} is not of integers, so it cannot hold indices".format(port))
        port.length = _number(length, plan, "the length of an axis", MAX_BYTES)
    outputs = [_port(p, plan, False) for p in _list(_of(content, "outputs"), "outputs")]
    constants = []
    for found in _list(_of(content, "constants"), "constants"):
        constants.append(_constant(found, plan))
    _check_written(plan, inputs, outputs, constants)
    return plan, inputs, outputs, constants


def _constant(found, plan):
    if not isinstance(found, list) or len(found) not in (2, 4):
        raise ValueError("a constant is not a list of 2 or 4 items")
    number = _buffer(found[0], plan, "a constant")
    if type(plan.buffers[number].nbytes) is not int:
        raise ValueError("a constant has a buffer of an open size")
    names = [_text(found[1], "a constant's name")]
    if len(found) == 2:
        return number, None, names
    if found[3] is not None:
        names.append(_text(found[3], "a constant's scales"))
    how = _text(found[2], "a constant's encoding")
    from .stored import PARTS

    if PARTS.get(how) != len(names):
        raise ValueError("a constant is stored as {!r} in {} parts".format(how, len(names)))
    if plan.buffers[number].nbytes > plan.page_bytes:
        raise ValueError("a constant that is stored as {!r} is larger than a page".format(how))
    return number, how, names


def _page_bytes(content):
    size = _whole(content.get("page_bytes", PAGE_BYTES), "page_bytes", MAX_BYTES)
    if size < 256 or size & (size - 1):
        raise ValueError("page_bytes is {}, not a power of two of at least 256".format(size))
    return size


def _read_steps(plan, kernels, steps, page_bytes):
    plan.page_bytes = page_bytes
    used = {}
    for found in _list(steps, "steps"):
        what = "dispatch {}".format(len(plan.steps))
        if not isinstance(found, list) or len(found) not in (3, 4):
            raise ValueError("{} is not a list of 3 or 4 items".format(what))
        kernel = _whole(found[0], what + "'s kernel", len(kernels) - 1)
        groups = [_number(n, plan, what + "'s workgroups", (1 << 32) - 1) for n in _list(found[1], what, 3)]
        bound = [_buffer(b, plan, what) for b in _list(found[2], what)]
        if not bound:
            raise ValueError("{} binds nothing".format(what))
        pages = [1] * len(bound)
        if len(found) == 4:
            pages = [_whole(n, what + "'s pages", 16) for n in _list(found[3], what, len(bound))]
        for i in range(len(bound)):
            nbytes = plan.buffers[bound[i]].nbytes
            most = 1 if type(nbytes) is not int else (nbytes + page_bytes - 1) // page_bytes
            if not 1 <= pages[i] <= most:
                raise ValueError("{} binds {} pages of a buffer of {}".format(what, pages[i], most))
        if kernel not in used:
            used[kernel] = len(plan.kernels)
            plan.kernels.append(kernels[kernel])
        plan.steps.append(Step(used[kernel], bound, tuple(groups), pages))


def _port(found, plan, is_input):
    name, dtype, shape, buffer = _list(found, "an input or output", 4)
    dtype = dtypes.BY_NAME.get(_text(dtype, "a dtype"))
    if dtype is None or storage.word(dtype) is None:
        raise ValueError("{!r} is not a dtype that a plan supports".format(found[1]))
    shape = _list(shape, "a shape")
    if len(shape) > MAX_RANK:
        raise ValueError("a shape has {} dimensions; at most {} are supported".format(len(shape), MAX_RANK))
    shape = tuple([_number(d, plan, "a dimension", MAX_BYTES) for d in shape])
    name, buffer = _text(name, "a name"), _buffer(buffer, plan, "an input or output")
    if [d for d in shape if type(d) is not int]:
        from .open_ports import OpenPort

        return OpenPort(name, dtype, shape, buffer, plan.counts)
    port = Port(name, dtype, shape, buffer)
    if type(plan.buffers[buffer].nbytes) is not int:
        raise ValueError("{} has a buffer of an open size".format(port))
    if (port.given if is_input else port.count * 4) > plan.buffers[port.buffer].nbytes:
        raise ValueError("{} does not fit its buffer".format(port))
    return port


def _check_written(plan, inputs, outputs, constants):
    """Refuse a plan that leaves an output unwritten: it would return stale memory."""
    written = {}
    for port in inputs:
        written[port.buffer] = True
    for number, _, _ in constants:
        written[number] = True
    for step in plan.steps:
        written[step.buffers[-1]] = True
    for port in outputs:
        if getattr(port, "count", 1) and port.buffer not in written:
            raise ValueError("nothing writes the output {}".format(port))


def _of(content, key):
    if not isinstance(content, dict) or key not in content:
        raise ValueError("{!r} is missing".format(key))
    return content[key]


def _list(value, what, length=None):
    if not isinstance(value, list):
        raise ValueError("{} is {}, not a list".format(what, _short(value)))
    if len(value) > MAX_COUNT or (length is not None and len(value) != length):
        most = "at most {}".format(MAX_COUNT) if length is None else str(length)
        raise ValueError("{} is a list of {}, expected {}".format(what, len(value), most))
    return value


def _text(value, what):
    if not isinstance(value, str):
        raise ValueError("{} is {}, not a string".format(what, _short(value)))
    return value


def _whole(value, what, most):
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("{} is {}, not a whole number from 0 to {}".format(what, _short(value), most))
    return value


def _number(value, plan, what, most):
    """A whole number, or a Count in a plan with open sizes."""
    if plan.counts is not None and isinstance(value, list):
        from .open_ports import read_number

        return read_number(value, plan.counts)
    return _whole(value, what, most)


def _buffer(value, plan, what):
    return _whole(value, "the buffer of " + what, len(plan.buffers) - 1)


def _short(value):
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."
