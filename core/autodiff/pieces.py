"""Gradients of parts of a tensor, put together when all are there: a loop over the steps of a sequence then takes one
concatenation instead of a padded tensor for each step."""

from .arithmetic import add


class Pieces:
    """A gradient of `shape` that is the sum of `rest`, a tensor or None, and of parts that begin at their starts."""

    __slots__ = ("parts", "rest", "shape")

    def __init__(self, part, starts, shape):
        self.parts = [(starts, part)]
        self.rest = None
        self.shape = shape

    def plus(self, other):
        """The sum with Pieces or a tensor; changes this object."""
        if isinstance(other, Pieces):
            self.parts += other.parts
            other = other.rest
        if other is not None:
            self.rest = other if self.rest is None else add(self.rest, other)
        return self

    def joined(self):
        """The gradient as a tensor."""
        out, parts = self.rest, self.parts
        axis = self._axis()
        if axis is None or len(parts) == 1:
            for starts, part in parts:
                out = _sum(out, self._padded(part, starts))
            return out
        parts = sorted(parts, key=lambda p: p[0][axis])
        while parts:  # each turn takes parts that do not overlap
            row, left, end = [], [], 0
            for starts, part in parts:
                if starts[axis] < end:
                    left.append((starts, part))
                    continue
                self._gap(row, axis, starts[axis] - end, part)
                row.append(part)
                end = starts[axis] + part.shape[axis]
            self._gap(row, axis, self.shape[axis] - end, parts[0][1])
            out = _sum(out, row[0].backend.concat(row, axis) if len(row) > 1 else row[0])
            parts = left
        return out

    def _axis(self):
        """The one axis along which the parts are shorter than the whole, or None."""
        found = None
        for _, part in self.parts:
            for i in range(len(self.shape)):
                if part.shape[i] != self.shape[i]:
                    if found is not None and found != i:
                        return None
                    found = i
        return found

    def _gap(self, row, axis, length, like):
        if length:
            shape = tuple([length if i == axis else self.shape[i] for i in range(len(self.shape))])
            row.append(like.backend.full(shape, 0, like.dtype))

    def _padded(self, part, starts):
        margins = [(s, n - s - m) for s, n, m in zip(starts, self.shape, part.shape)]
        return part if part.shape == self.shape else part.backend.pad(part, tuple(margins), 0)


def _sum(a, b):
    return b if a is None else add(a, b)
