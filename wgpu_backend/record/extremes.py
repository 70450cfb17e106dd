"""The range of a tensor, by one kernel: its lowest element is the highest of their negatives."""

from emberlet.sizes.size import is_open

PIECES = 8  # of the tensor, of which a lane loads an element each at once


def extremes(x):
    """(the lowest, the highest) of all elements of a recorded tensor of floats; NaN if there is one."""
    backend = x.backend
    pieces = 1
    while pieces < PIECES and not is_open(x.size) and x.size % (2 * pieces) == 0:
        pieces *= 2
    length = x.size // pieces
    flat = backend.reshape(x, (pieces, length))
    lines = [backend.slice(flat, (i, 0), (1, length), (1, 1)) for i in range(pieces)]
    ends = [_highest(lines), _highest([backend.unary("neg", line) for line in lines])]
    both = backend.reduce("max", backend.concat(ends, 0), (1,), False)
    high, low = [backend.reshape(backend.slice(both, (i,), (1,), (1,)), ()) for i in range(2)]
    return backend.unary("neg", low), high


def _highest(lines):
    """The highest of a power of two of tensors, element by element."""
    while len(lines) > 1:
        lines = [lines[0].backend.binary("maximum", lines[i], lines[i + 1]) for i in range(0, len(lines), 2)]
    return lines[0]
