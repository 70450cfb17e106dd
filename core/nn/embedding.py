"""A table of vectors looked up by index."""

from ..functional.indexing.picking import take
from ..module import Module
from .params import weight


class Embedding(Module):
    """x (…) of integers in [0, num_embeddings) -> (…, d_model), the rows of the table.

    weight: (num_embeddings, d_model), drawn from N(0, 1) unless an `initializer` is given.
    """

    SHOWN = "num_embeddings d_model"

    def __init__(self, num_embeddings, d_model, dtype=None, backend=None, initializer=None):
        self.num_embeddings = num_embeddings
        self.d_model = d_model
        fans = (num_embeddings, d_model)
        self.weight = weight(fans, fans, dtype, backend, initializer or _normal)

    def forward(self, x):
        """x (…) of integers -> (…, d_model), floats. python and numpy raise IndexingError for an index out of range."""
        return take(self.weight.val(), x, axis=0)


def _normal(shape, dtype, backend, fans):
    from .initializer import Normal

    return Normal(0.0, 1.0)(shape, dtype, backend, fans)
