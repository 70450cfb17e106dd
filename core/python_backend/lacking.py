"""What a kernel of lists says of an operation that it does not have; loaded only then."""

from ..errors import refuse


def no_kernel(name):
    """Raise UnsupportedError."""
    refuse("no kernel", name, "the python")


def reduction(op):
    """Raise UnsupportedError."""
    no_kernel("reduce " + op)
