"""Data sets over other data sets: mapped, a part, several as one, windows. Nothing is read before an item is."""

from ..errors import ArgumentError
from .base import Dataset, at_epoch, read


class _Over(Dataset):
    """A data set over `dataset`."""

    def over(self, dataset):
        """The same over another data set."""
        raise NotImplementedError

    def at_epoch(self, epoch):
        inner = at_epoch(self.dataset, epoch)
        return self if inner is self.dataset else self.over(inner)


class MapperDataset(_Over):
    """The items of a data set after a function, which is called when an item is read. mapper: a callable, or an object
    with `map(item)`."""

    def __init__(self, dataset, mapper):
        self.dataset = dataset
        self.mapper = mapper
        self._map = mapper.map if hasattr(mapper, "map") else mapper

    def over(self, dataset):
        return MapperDataset(dataset, self.mapper)

    def __len__(self):
        return len(self.dataset)

    def item(self, i):
        return self._map(self.dataset[i])


class IndexedDataset(_Over):
    """The items of a data set at `indices`, a sequence."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def over(self, dataset):
        return IndexedDataset(dataset, self.indices)

    def __len__(self):
        return len(self.indices)

    def item(self, i):
        return self.dataset[self.indices[i]]


class PartialDataset(IndexedDataset):
    """The items from `start` to `end`, exclusive. Raises ArgumentError if these lie outside the data set."""

    def __init__(self, dataset, start, end):
        if not 0 <= start <= end <= len(dataset):
            raise ArgumentError("items {} to {} of a data set of {}".format(start, end, len(dataset)))
        super().__init__(dataset, range(start, end))

    def over(self, dataset):
        return PartialDataset(dataset, self.indices.start, self.indices.stop)


class ComposedDataset(Dataset):
    """Several data sets, one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        self._ends = []
        end = 0
        for d in self.datasets:
            end += len(d)
            self._ends.append(end)

    def at_epoch(self, epoch):
        inner = [at_epoch(d, epoch) for d in self.datasets]
        changed = [k for k in range(len(inner)) if inner[k] is not self.datasets[k]]
        return ComposedDataset(inner) if changed else self

    def __len__(self):
        return self._ends[-1] if self._ends else 0

    def item(self, i):
        low, high = 0, len(self._ends) - 1
        while low < high:
            middle = (low + high) // 2
            if self._ends[middle] <= i:
                low = middle + 1
            else:
                high = middle
        return self.datasets[low][i - (self._ends[low - 1] if low else 0)]


class WindowsDataset(_Over):
    """Lists of `size` items that follow each other; each begins `stride` items after the one before. Raises
    ArgumentError."""

    def __init__(self, dataset, size, stride=1):
        if size < 1 or stride < 1:
            raise ArgumentError("windows have a size and a stride of at least 1, found {} and {}".format(size, stride))
        self.dataset = dataset
        self.size = size
        self.stride = stride

    def over(self, dataset):
        return WindowsDataset(dataset, self.size, self.stride)

    def __len__(self):
        return max(0, (len(self.dataset) - self.size) // self.stride + 1)

    def item(self, i):
        first = i * self.stride
        return read(self.dataset, list(range(first, first + self.size)))
