"""What a row region (fuse/rows.py) computes, for kernels that loop over its rows and over the elements of a row."""

from emberlet.shapes import size
from emberlet.sizes.questions import known_equal

from ..run import storage
from . import index as ix


def extents(region):
    """(the elements of a row, the number of rows)."""
    return size([region.full[a] for a in region.axes]), size(region.reductions[0].shape)


class Rows:
    """A region at a row and at an element of it, both flat Indices. row, full: their coordinates; bodies: the Value
    that each reduction folds; its result is the variable red0, red1, … from then on; per_row: whether a row has one
    result."""

    def __init__(self, low, region, row, within):
        self.region = region
        self.row = ix.unflatten(row, [1 if i in region.axes else region.full[i] for i in range(len(region.full))])
        self.full = self.at(within)
        self.bodies = []
        for k, reduction in enumerate(region.reductions):
            self.bodies.append(low.value(reduction.srcs[0], self.full))
            value = low.build.make("variable", storage.register(reduction.dtype), (), "red{}".format(k))
            if reduction.arg[0] in ("sum", "prod"):
                value = low.round(value, reduction.dtype)
            low.fix(reduction, value)
        self.per_row = not known_equal(region.exit.shape, region.full)

    def at(self, within):
        """The coordinates of an element of the row, a flat Index."""
        region, full = self.region, list(self.row)
        inner = ix.unflatten(within, [region.full[a] for a in region.axes])
        for i in range(len(inner)):
            full[region.axes[i]] = inner[i]
        return full
