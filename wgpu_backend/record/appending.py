"""In-place append: concatenating a state and new elements becomes a write behind the state, in a buffer with room for
more. Readers of the state, old or new, read the first positions of that buffer."""

from emberlet.sizes.size import is_open

from .node import Node


def append_in_place(traced, states, room, most):
    """Rewrite a Trace so that states are appended to in place. Returns {argument: (number of the root, node of the
    whole buffer, node of the buffer after the append)} for those that the Trace appends to by one concatenation.

    states: tuples (argument, number of the root, axis); room: positions of the buffers, a number or a Size; most: the
    most bytes of a buffer.
    """
    found = {}
    taken = [k for _, k, _ in states]
    for argument, k, axis in states:
        past = [n for n in traced.inputs if n.arg == argument]
        whole = traced.roots[k]
        if not past or taken.count(k) > 1 or past[0] in traced.roots or not _appends(past[0], whole, axis):
            continue
        past = past[0]
        shape = past.shape[:axis] + (room,) + past.shape[axis + 1 :]
        buffer = Node("input", (), argument, past.dtype, shape, past.word)
        if not is_open(buffer.nbytes) and buffer.nbytes > most:
            continue
        places = []
        at = past.shape[axis]
        for s in whole.srcs[1:]:
            places.append(at)
            at = at + s.shape[axis]
        becomes = Node("append", (buffer,) + whole.srcs[1:], (axis, tuple(places)), past.dtype, shape, past.word)
        traced.inputs[traced.inputs.index(past)] = buffer
        _become_part(past, buffer)
        _become_part(whole, becomes)
        found[argument] = (k, buffer, becomes)
    return found


def _appends(past, whole, axis):
    """Whether `whole` is `past` with elements appended, and both are floats of the same storage type."""
    return (
        whole.op == "concat"
        and whole.arg == axis
        and whole.srcs[0] is past
        and past not in whole.srcs[1:]
        and past.dtype.is_float
        and past.word == whole.word
    )


def _become_part(node, of):
    """Make the node a view of the first positions of another."""
    node.op = "slice"
    node.srcs = (of,)
    node.arg = ((0,) * len(node.shape), (1,) * len(node.shape))
