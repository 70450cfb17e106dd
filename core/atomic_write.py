"""Files that take another's place only when they are whole: what every writer saves through, on devices too."""


def save(path, write):
    """Write a file with `write(file)` and put it at `path`; gives what `write` gave.

    Where anything fails the file that was at `path` is still there as it was. A device writes `path.new` beside it, so
    both must fit for a moment. Raises OSError, and what `write` raises.
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
