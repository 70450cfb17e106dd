"""Warnings that name the line of the user's code; on CPython."""


def warn(text, category=None):
    """Warn with the line outside of emberlet that led here; print the text where there are no warnings."""
    try:
        import warnings
        from sys import _getframe
    except ImportError:  # MicroPython
        print("emberlet: " + text)
        return
    level, frame = 2, _getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "emberlet":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category or UserWarning, stacklevel=level)


def warn_uncompiled(model, where, why):
    """Warn that a compiled model has no plan. where: such as " on NumPy"; why: the error that says so."""
    name = getattr(model, "__name__", type(model).__name__)
    warn("{} has no plan{} and runs operation by operation: {}".format(name, where, why))
