"""The value of a parameter that lies in the memory of a compiled step."""

from ..autodiff.params import leaf
from ..tensor import Tensor


class Held(Tensor):
    """A tensor whose elements are copied from a step when they are asked for. `Param.val` puts the copy in its place
    (autodiff/params.py), and the step then takes it back, in case that it was assigned to."""

    def __new__(cls, data, dtype, shape, backend):
        return Tensor(data, dtype, shape, backend)  # what is made like this one

    @property
    def data(self):
        """The elements now."""
        return self.copied(True).data

    def copied(self, required):
        """A tensor of the elements now, a leaf that requires a gradient or not."""
        return leaf(self.backend.from_inner(self.step.value(self.index)), required)


def held(step, index, like):
    """The Held of a parameter of a CompiledStep. like: a tensor of its dtype, shape and backend."""
    x = object.__new__(Held)
    x.__dict__.update(dtype=like.dtype, shape=like.shape, backend=like.backend, step=step, index=index)
    return x
