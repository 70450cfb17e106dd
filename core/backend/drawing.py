"""Random draws while a model is traced: a plan would repeat them in every call, so the trace ends with an error, or
takes what it draws from an input of the plan."""

try:
    from _thread import get_ident
except ImportError:  # a port of MicroPython without threads

    def get_ident():
        return 0


_tracing = {}  # thread -> the class of error that ends its trace, or an object that has the draws


class Undrawn:
    """A context in which a draw without a seed raises `error` in this thread, before it takes from the sequence. error:
    a class; or an object, whose method words(shape, counter) then gives the random bits, and whose `state`, a key and a
    counter, is that of its own sequence of draws."""

    def __init__(self, error):
        self._error = error
        self._before = None

    def __enter__(self):
        self._before = _tracing.get(get_ident())
        _tracing[get_ident()] = self._error

    def __exit__(self, *_):
        if self._before is None:
            _tracing.pop(get_ident(), None)
        else:
            _tracing[get_ident()] = self._before


def source():
    """The object that has the draws of the trace that runs in this thread, or None."""
    found = _tracing.get(get_ident()) if _tracing else None
    return found if hasattr(found, "words") else None


def check_draw():
    """Raise the error of the trace that runs in this thread, if one does."""
    error = _tracing.get(get_ident()) if _tracing else None
    if error is not None and not hasattr(error, "words"):
        raise error(
            "the model draws random numbers, which a plan would repeat in every call; draws with seed= are the same in "
            "every call anyway"
        )
