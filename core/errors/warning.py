"""Warnings that name the line of the user's code; on CPython."""


def warn(text, category=UserWarning):
    """Warn with the line outside of emberlet that led here."""
    import sys
    import warnings

    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "emberlet":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
