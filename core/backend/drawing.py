"""Random draws while a model is traced: a plan would repeat them in every call, so the trace ends with an error."""

try:
    from _thread import get_ident
except ImportError:  # a port of MicroPython without threads

    def get_ident():
        return 0


_tracing = {}  # thread -> the class of error that ends its trace


class Undrawn:
    """A context in which a draw without a seed raises `error` in this thread, before it takes from the sequence."""

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


def check_draw():
    """Raise the error of the trace that runs in this thread, if one does."""
    error = _tracing.get(get_ident()) if _tracing else None
    if error is not None:
        raise error(
            "the model draws random numbers, which a plan would repeat in every call; draws with seed= are the same in "
            "every call anyway"
        )
