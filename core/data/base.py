"""Dataset, the base of the data sets here, and how items are read from any data set."""

from ..errors import IndexingError
from .errors import DataError, error_line


class Dataset:
    """Items that are reached by their index: the base of the data sets here, which nothing else needs to have.

    A class has `__len__` and `item(i)`, for i from 0 to its length less one.
    """

    def __len__(self):
        raise NotImplementedError(type(self).__name__ + ".__len__")

    def item(self, i):
        """The item at 0 <= i < len."""
        raise NotImplementedError(type(self).__name__ + ".item")

    def __getitem__(self, i):
        """An item; a negative index counts from the end. Raises IndexingError."""
        n = len(self)
        if not -n <= i < n:
            raise IndexingError("item {} of a data set of {}".format(i, n))
        return self.item(i + n if i < 0 else i)

    def __iter__(self):
        for i in range(len(self)):
            yield self.item(i)

    def get(self, i):
        """The item, or None if there is none at that index."""
        return self.item(i) if 0 <= i < len(self) else None

    def at_epoch(self, epoch):
        """The data set of an epoch: this one, unless its items are drawn anew for each (SamplerDataset)."""
        return self


def at_epoch(dataset, epoch):
    """`dataset.at_epoch(epoch)`, of any data set."""
    return dataset.at_epoch(epoch) if hasattr(dataset, "at_epoch") else dataset


def read(dataset, indices):
    """The items at these indices, in one call where the data set has `__getitems__`, as PyTorch's and Hugging Face's
    may. Raises DataError, which names the index."""
    many = getattr(dataset, "__getitems__", None)
    if many is not None:
        try:
            items = many(indices)
        except Exception:  # which item it was shows when they are read one by one
            items = None
        if items is not None:
            if len(items) != len(indices):
                raise DataError("__getitems__ gave {} items for {} indices".format(len(items), len(indices)))
            return items
    found = []
    for i in indices:
        try:
            found.append(dataset[i])
        except Exception as error:
            raise DataError("item {} of the data set: {}".format(i, error_line(error)), i, error)
    return found
