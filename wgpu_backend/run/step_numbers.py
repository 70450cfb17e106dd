"""The numbers that the host computes in each call of a saved training step, such as a rate with a bias corrected.

A number is a float, the name of a count or "lr", or [operation, number, number]. Runs under MicroPython too.
"""

from emberlet.errors import EmberletError

DEPTH = 32  # of a number's expression
_OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    ">": lambda a, b: float(a > b),
    "<": lambda a, b: float(a < b),
}


def check(found, names, depth=0):
    """Raise ValueError unless this is a number of these names."""
    if isinstance(found, str):
        if found not in names:
            raise ValueError("a number depends on {!r}, which the step does not count".format(found))
    elif isinstance(found, list):
        if len(found) != 3 or not isinstance(found[0], str) or found[0] not in _OPERATIONS or depth > DEPTH:
            raise ValueError("a number is not an operation of two numbers")
        check(found[1], names, depth + 1)
        check(found[2], names, depth + 1)
    elif isinstance(found, bool) or not isinstance(found, (int, float)) or not -1e300 < found < 1e300:
        raise ValueError("{!r} is not a number".format(found))


def value_of(found, env):
    """The float that it is, where `env` has those of the names. Raises EmberletError if there is none."""
    if isinstance(found, str):
        return env[found]
    if not isinstance(found, list):
        return float(found)
    try:
        value = _OPERATIONS[found[0]](value_of(found[1], env), value_of(found[2], env))
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise EmberletError("a number of this step cannot be computed: {}".format(error))
    if not isinstance(value, float):
        raise EmberletError("a number of this step is complex")
    return value
