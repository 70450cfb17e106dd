"""Data sets in memory: any items, or arrays whose rows are items."""

from ..errors import ShapeError
from .base import Dataset


class InMemDataset(Dataset):
    """Items in memory. items: a list, or any data set."""

    def __init__(self, items):
        self.items = items

    @classmethod
    def from_dataset(cls, dataset):
        """All items of a data set, read now."""
        return cls([dataset[i] for i in range(len(dataset))])

    @classmethod
    def from_csv(cls, path, delimiter=",", types=None, header=True, encoding="utf-8"):
        """The rows of a CSV file as dicts.

        A column holds ints if all its cells are, else floats, else str; empty cells are None. types: name -> int, float
        or str, for columns where that does not fit. header: whether the first line has the names, otherwise they are
        "0", "1", … Raises FormatError, which names the line; OSError. Needs CPython.
        """
        from ..host.data.text_rows import csv_columns

        return cls(csv_columns(path, delimiter, types, header, encoding))

    @classmethod
    def from_json_rows(cls, path):
        """The lines of a file, each a JSON value, as Python's dicts, lists, str and numbers. Raises FormatError, which
        names the line; OSError. Needs CPython."""
        from ..host.data.text_rows import json_rows

        return cls(json_rows(path))

    def __len__(self):
        return len(self.items)

    def item(self, i):
        return self.items[i]


class ArrayDataset(Dataset):
    """The rows of arrays or tensors of the same length: item i is the tuple of their rows i, or with names
    (`ArrayDataset(image=x, label=y)`) the dict. Raises ShapeError if the lengths differ."""

    def __init__(self, *arrays, **named):
        self.names = tuple(named)
        self.arrays = arrays + tuple(named.values())
        if bool(arrays) == bool(named):
            raise ShapeError("ArrayDataset takes arrays, or arrays with names")
        lengths = [len(a) for a in self.arrays]
        if min(lengths) != max(lengths):
            raise ShapeError("ArrayDataset takes arrays of one length, found {}".format(lengths))

    def __len__(self):
        return len(self.arrays[0])

    def _row(self, values):
        return dict(zip(self.names, values)) if self.names else tuple(values)

    def item(self, i):
        return self._row([a[i] for a in self.arrays])

    def stacked(self, indices):
        """The items at these indices as one tuple or dict of arrays: what stacking them would give, at once."""
        return self._row([rows(a, indices) for a in self.arrays])


def rows(array, indices):
    """The rows of an array or a tensor at a list of indices."""
    if hasattr(array, "backend"):
        from ..functional.arrays import asarray

        return array.take(asarray(indices, dtype="int64", backend=array.backend), axis=0)
    return array[indices] if hasattr(array, "__array_interface__") else [array[i] for i in indices]
