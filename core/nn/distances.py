"""Layers that compare two tensors row by row."""

from ..functional.elementwise.arithmetic import subtract
from ..functional.reductions.over_axes import vector_norm
from ..module import Module


class CosineSimilarity(Module):
    """The cosines of the angles between vectors along `axis`; epsilon: the least product of their lengths."""

    SHOWN = "axis epsilon"

    def __init__(self, axis=1, epsilon=1e-8):
        self.axis = axis
        self.epsilon = epsilon

    def forward(self, x1, x2):
        """Two tensors that broadcast -> their shape without `axis`."""
        from ..linalg.norms import cosine_similarity

        return cosine_similarity(x1, x2, self.axis, epsilon=self.epsilon)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + epsilon along the last axis."""

    SHOWN = "p epsilon keepdims"

    def __init__(self, p=2.0, epsilon=1e-6, keepdims=False):
        self.p = p
        self.epsilon = epsilon
        self.keepdims = keepdims

    def forward(self, x1, x2):
        """Two tensors (…, d) that broadcast -> (…)."""
        return vector_norm(subtract(x1, x2) + self.epsilon, axis=-1, keepdims=self.keepdims, ord=self.p)
