"""Named modules without a computation of their own."""

from ..module import Module


class Group(Module):
    """Named Modules and Params: `Group(dense=Linear(2, 3)).dense`."""

    def __init__(*given, **held):  # so that a child may be called self
        for name in held:
            setattr(given[0], name, held[name])
