"""Atomic file replacement: every writer saves through this, on devices too."""


def save(path, write):
    """Write a file with `write(file)` and move it to `path`; returns the result of `write`.

    If anything fails, an existing file at `path` is unchanged. A device writes `path.new` first, so both files must fit
    for a moment. Raises OSError, and whatever `write` raises.
    """
    try:
        from .host.files import atomic_write
    except ImportError:  # a device
        return _on_a_device(str(path), write)
    with atomic_write(path) as file:
        return write(file)


def _on_a_device(path, write):
    import os

    draft = path + ".new"
    try:
        with open(draft, "wb") as file:
            out = write(file)
        os.rename(draft, path)
    except BaseException:
        try:
            os.remove(draft)
        except OSError:
            pass
        raise
    return out
