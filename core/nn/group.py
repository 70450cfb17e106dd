"""Several modules under names, without a computation of their own."""

from ..module import Module


class Group(Module):
    """Modules and Params held under names: `Group(dense=Linear(2, 3)).dense`."""

    def __init__(*given, **held):  # so that one of them may be called self
        for name in held:
            setattr(given[0], name, held[name])
