"""What a module computes from its Params and keeps as long as their data is the same."""


class _Kept:
    """A value, and the data of the Params that it was computed from."""

    FOLLOWS_FROM_PARAMS = True  # so it is no state of the module's own

    def __init__(self, sources=(), value=None):
        self.sources = sources
        self.value = value

    def __reduce__(self):
        return _Kept, ()  # copies of the module compute their own


def kept(module, name, sources, make):
    """make(), which the module keeps in the attribute `name` until the data of a Param changes, by loading, setting,
    moving or assigning: sources are these data. (Assigning copies the data first, because the value shares it.)"""
    held = getattr(module, name, None)
    if held is None or len(held.sources) != len(sources) or [1 for a, b in zip(held.sources, sources) if a is not b]:
        held = _Kept(sources, make())
        setattr(module, name, held)
    return held.value
