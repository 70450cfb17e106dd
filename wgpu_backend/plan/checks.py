"""Parts of a saved model's JSON, refused with a ValueError unless they are of the kind expected."""

from emberlet import dtypes

from ..run import storage

MAX_COUNT = 100000  # buffers, kernels, steps, inputs
MAX_RANK = 64


def part(content, key):
    """The value of a key that an object must have."""
    if not isinstance(content, dict) or key not in content:
        raise ValueError("{!r} is missing".format(key))
    return content[key]


def list_of(value, what, length=None):
    """A list, of this length or of at most MAX_COUNT items."""
    if not isinstance(value, list):
        raise ValueError("{} is {}, not a list".format(what, _short(value)))
    if len(value) > MAX_COUNT or (length is not None and len(value) != length):
        most = "at most {}".format(MAX_COUNT) if length is None else str(length)
        raise ValueError("{} is a list of {}, expected {}".format(what, len(value), most))
    return value


def text_of(value, what):
    """A string."""
    if not isinstance(value, str):
        raise ValueError("{} is {}, not a string".format(what, _short(value)))
    return value


def integer(value, what, most):
    """An integer from 0 to `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("{} is {}, not a whole number from 0 to {}".format(what, _short(value), most))
    return value


def shape_of(value):
    """The list of dimensions of a shape, which are not checked."""
    if len(list_of(value, "a shape")) > MAX_RANK:
        raise ValueError("a shape has {} dimensions; at most {} are supported".format(len(value), MAX_RANK))
    return value


def dtype_of(value):
    """The dtype of this name, if plans support it."""
    dtype = dtypes.BY_NAME.get(text_of(value, "a dtype"))
    if dtype is None or storage.word(dtype) is None:
        raise ValueError("{!r} is not a dtype that a plan supports".format(value))
    return dtype


def _short(value):
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) < 40 else text[:37] + "..."
