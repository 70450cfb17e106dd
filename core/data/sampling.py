"""Order and chance: shuffled data sets, samples, splits, the order of an epoch."""

from array import array

from ..backend.on_host import host_backend
from ..errors import ArgumentError
from .transforms import IndexedDataset, PartialDataset, _Over

_WORD = 0xFFFFFFFFFFFFFFFF


def drawn_seed():
    """A seed by chance."""
    from ..functional.randomness.draws import _entropy

    return int.from_bytes(_entropy(), "little")


def mixed(seed, epoch):
    """The seed of an epoch (SplitMix64, https://doi.org/10.1145/2660193.2660195)."""
    x = (int(seed) + 0x9E3779B97F4A7C15 * (epoch + 1)) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def _numbers(x):
    return array("q", bytes(x.to_data().bytes))


def order(n, seed, epoch=0):
    """0 … n - 1 in the random order of a seed and an epoch, as an array: the same on every machine."""
    from ..functional.randomness.draws import permutation

    return _numbers(permutation(n, seed=mixed(seed, epoch), backend=host_backend()))


class ShuffledDataset(IndexedDataset):
    """The items in random order, always the same for a seed; without one, it is drawn now."""

    def __init__(self, dataset, seed=None):
        self.seed = drawn_seed() if seed is None else seed
        super().__init__(dataset, order(len(dataset), self.seed))

    @classmethod
    def with_seed(cls, dataset, seed):
        """Burn's name of this constructor."""
        return cls(dataset, seed)

    def over(self, dataset):
        return ShuffledDataset(dataset, self.seed)


class SamplerDataset(_Over):
    """`size` items drawn from a data set, which may have more or fewer.

    With replacement each draw is independent; without, no item is drawn again before all were. A DataLoader draws a new
    sample for every epoch; `at_epoch` gives them one by one. seed: the same samples for the same seed; drawn now
    without one. Raises ArgumentError.
    """

    def __init__(self, dataset, size, replacement=True, seed=None, epoch=0):
        if size < 0 or (size and not len(dataset)):
            raise ArgumentError("a sample of {} items of a data set of {}".format(size, len(dataset)))
        self.dataset = dataset
        self.size = size
        self.replacement = replacement
        self.seed = drawn_seed() if seed is None else seed
        self.epoch = epoch
        self._indices = None

    def over(self, dataset):
        return SamplerDataset(dataset, self.size, self.replacement, self.seed, self.epoch)

    def at_epoch(self, epoch):
        from .base import at_epoch

        inner = at_epoch(self.dataset, epoch)
        if epoch == self.epoch and inner is self.dataset:
            return self
        return SamplerDataset(inner, self.size, self.replacement, self.seed, epoch)

    def _drawn(self):
        from ..functional.randomness.draws import randint

        n, size = len(self.dataset), self.size
        if self.replacement:
            return _numbers(randint(n, shape=(size,), seed=mixed(self.seed, self.epoch), backend=host_backend()))
        found = array("q")
        while len(found) < size:
            found.extend(order(n, self.seed + len(found) // n, self.epoch)[: size - len(found)])
        return found

    def __len__(self):
        return self.size

    def item(self, i):
        if self._indices is None:
            self._indices = self._drawn() if self.size else array("q")
        return self.dataset[self._indices[i]]


def split(dataset, fractions, seed=None):
    """Parts of a data set by their fractions: `split(data, [0.8, 0.2], seed=1)`.

    seed: shuffle first; without it the parts follow each other. Fractions that add up to 1 use every item. Raises
    ArgumentError.
    """
    if not fractions or min(fractions) < 0 or sum(fractions) > 1 + 1e-9:
        raise ArgumentError("split takes fractions that add up to at most 1, found {}".format(list(fractions)))
    whole = dataset if seed is None else ShuffledDataset(dataset, seed)
    parts, total, start = [], 0.0, 0
    for f in fractions:
        total += f
        end = min(len(dataset), int(total * len(dataset) + 0.5))
        parts.append(PartialDataset(whole, start, end))
        start = end
    return parts
