"""Parses a saved plan's JSON into a Plan. Files are not trusted: malformed or inconsistent content raises ValueError
before anything is allocated for it."""

from .checks import dtype_of, integer, list_of, part, shape_of, text_of
from .data import Buffer, Plan, Step
from .port import MAX_BYTES, Port

PAGE_BYTES = 1 << 27  # the limit of WebGPU's baseline, for which plans are made


def read(content, device_class):
    """(Plan, inputs, outputs, [(buffer, how, tensors)]) for the steps of a class of device. how: see stored.py; None
    for a tensor stored unchanged."""
    plan = Plan()
    if content.get("sizes") is not None:
        from .open_ports import read_counts

        plan.counts = read_counts(content["sizes"])
    for found in list_of(part(content, "buffers"), "buffers"):
        kind, nbytes = list_of(found, "a buffer", 2)
        plan.buffers.append(
            Buffer(text_of(kind, "a buffer's kind"), _number(nbytes, plan, "a buffer's size", MAX_BYTES))
        )
    kernels = []
    for found in list_of(part(content, "kernels"), "kernels"):
        name, source = list_of(found, "a kernel", 2)
        kernels.append((text_of(name, "a kernel's name"), text_of(source, "a kernel")))
    _read_steps(plan, kernels, part(part(content, "steps"), device_class), _page_bytes(content))
    inputs = [_port(p, plan, True) for p in list_of(part(content, "inputs"), "inputs")]
    for found in list_of(content.get("indices", []), "indices"):
        number, length = list_of(found, "an index", 2)
        port = inputs[integer(number, "the input of an index", len(inputs) - 1)]
        if not port.dtype.is_integer:
            raise ValueError("{} is not of integers, so it cannot hold indices".format(port))
        port.length = _number(length, plan, "the length of an axis", MAX_BYTES)
    outputs = [_port(p, plan, False) for p in list_of(part(content, "outputs"), "outputs")]
    constants = []
    for found in list_of(part(content, "constants"), "constants"):
        constants.append(_constant(found, plan))
    for found in list_of(content.get("computed_indices", []), "computed indices"):
        from .computed_index import ComputedIndex, part_of

        number = part_of(found, len(plan.buffers) - 1)
        index = ComputedIndex(found, number, _number(found[2], plan, "the length of an axis", MAX_BYTES))
        if type(plan.buffers[number].nbytes) is not int or plan.buffers[number].nbytes < index.nbytes:
            raise ValueError("{} does not fit its buffer".format(index))
        plan.computed.append(index)
    _check_written(plan, inputs, outputs + plan.computed, constants)
    return plan, inputs, outputs, constants


def _constant(found, plan):
    if not isinstance(found, list) or len(found) not in (2, 4):
        raise ValueError("a constant is not a list of 2 or 4 items")
    number = _buffer(found[0], plan, "a constant")
    if type(plan.buffers[number].nbytes) is not int:
        raise ValueError("a constant has a buffer of an open size")
    names = [text_of(found[1], "a constant's name")]
    if len(found) == 2:
        return number, None, names
    if found[3] is not None:
        names.append(text_of(found[3], "a constant's scales"))
    how = text_of(found[2], "a constant's encoding")
    from .stored import PARTS

    if PARTS.get(how) != len(names):
        raise ValueError("a constant is stored as {!r} in {} parts".format(how, len(names)))
    if plan.buffers[number].nbytes > plan.page_bytes:
        raise ValueError("a constant that is stored as {!r} is larger than a page".format(how))
    return number, how, names


def _page_bytes(content):
    size = integer(content.get("page_bytes", PAGE_BYTES), "page_bytes", MAX_BYTES)
    if size < 256 or size & (size - 1):
        raise ValueError("page_bytes is {}, not a power of two of at least 256".format(size))
    return size


def _read_steps(plan, kernels, steps, page_bytes):
    plan.page_bytes = page_bytes
    used = {}
    for found in list_of(steps, "steps"):
        what = "dispatch {}".format(len(plan.steps))
        if not isinstance(found, list) or len(found) not in (3, 4):
            raise ValueError("{} is not a list of 3 or 4 items".format(what))
        kernel = integer(found[0], what + "'s kernel", len(kernels) - 1)
        groups = [_number(n, plan, what + "'s workgroups", (1 << 32) - 1) for n in list_of(found[1], what, 3)]
        bound = [_buffer(b, plan, what) for b in list_of(found[2], what)]
        if not bound:
            raise ValueError("{} binds nothing".format(what))
        pages = [1] * len(bound)
        if len(found) == 4:
            pages = [integer(n, what + "'s pages", 16) for n in list_of(found[3], what, len(bound))]
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
    name, dtype, shape, buffer = list_of(found, "an input or output", 4)
    dtype = dtype_of(dtype)
    shape = shape_of(shape)
    shape = tuple([_number(d, plan, "a dimension", MAX_BYTES) for d in shape])
    name, buffer = text_of(name, "a name"), _buffer(buffer, plan, "an input or output")
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


def _number(value, plan, what, most):
    """A whole number, or a Polynomial in a plan with open sizes."""
    if plan.counts is not None and isinstance(value, list):
        from .open_ports import read_number

        return read_number(value, plan.counts)
    return integer(value, what, most)


def _buffer(value, plan, what):
    return integer(value, "the buffer of " + what, len(plan.buffers) - 1)
