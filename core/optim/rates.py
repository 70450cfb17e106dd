"""What a learning rate may be."""

from ..errors import ArgumentError


def finite(name, value):
    """`value`, a number of at least 0. Raises ArgumentError, which names it `name`, for others: a rate that is negative
    or not a number would spoil the weights without an error."""
    try:
        good = bool(0 <= value < float("inf"))
    except (TypeError, ValueError):  # of an array of several numbers
        good = False
    if not good:
        raise ArgumentError("{} is a finite number of at least 0, found {!r}".format(name, value))
    return value
