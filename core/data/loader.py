"""DataLoader: batches of a data set, in order or shuffled, made ahead by workers."""

from ..errors import ArgumentError
from .base import at_epoch, read
from .errors import DataError, error_line


class Progress:
    """How many of an epoch's items were handed out."""

    def __init__(self, items_processed, items_total):
        self.items_processed = items_processed
        self.items_total = items_total

    def __repr__(self):
        return "Progress({} of {})".format(self.items_processed, self.items_total)


class DataLoader:
    """The batches of a data set; every iteration is one epoch.

    dataset: anything with `len` and `[i]`. batcher: an object with `batch(items)`, or a callable of the list of items;
    StackBatcher by default. shuffle: a seed; each epoch then has an order of its own, which depends on the seed and the
    number of the epoch only. workers: threads that make batches ahead, or with `processes` processes, which `context`
    ("fork", "spawn", "forkserver"; by default Python's) starts; 0: batches are made when they are asked for. prefetch:
    how many batches ahead each worker may be. backend: to which the tensors of a batch are moved, with workers one
    batch ahead. drop_last: leave out a last, smaller batch. Workers need CPython.

    Raises ArgumentError; iterating raises DataError, which names the item.
    """

    def __init__(
        self,
        dataset,
        batcher=None,
        batch_size=1,
        shuffle=None,
        workers=0,
        processes=False,
        context=None,
        prefetch=2,
        backend=None,
        drop_last=False,
    ):
        for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("prefetch", prefetch, 1)):
            if not _is_integer(value) or value < least:
                raise ArgumentError("{} is an integer of at least {}, found {!r}".format(name, least, value))
        if shuffle is True or shuffle is False or not (shuffle is None or _is_integer(shuffle)):
            raise ArgumentError("shuffle is a seed, such as shuffle=42, or None, found {!r}".format(shuffle))
        try:
            len(dataset)
        except TypeError:
            raise ArgumentError(
                "a data set has len(data) and data[i], found {}; put what can only be iterated into a list or a "
                "SqliteDataset".format(type(dataset).__name__)
            )
        if batcher is not None and not callable(batcher) and not hasattr(batcher, "batch"):
            raise ArgumentError("a batcher is a function or has batch(items), found {!r}".format(batcher))
        self.dataset = dataset
        self.batcher = batcher
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.workers = workers
        self.processes = processes
        self.context = context
        self.prefetch = prefetch
        self.backend = backend
        self.drop_last = drop_last
        self.epoch = 0

    def __len__(self):
        """The number of batches of an epoch."""
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def num_items(self):
        """The number of items of an epoch."""
        return min(len(self.dataset), len(self) * self.batch_size)

    def set_epoch(self, epoch):
        """The next iteration is this epoch, counted from 0."""
        self.epoch = epoch

    def __iter__(self):
        """The batches of the next epoch."""
        return self.iter()

    def iter(self, epoch=None, start=0):
        """The batches of an epoch, by default the next, from batch `start` on: those before it are not read. Raises
        ArgumentError for a negative start."""
        if start < 0:
            raise ArgumentError("start is the number of a batch, from 0 on, found {}".format(start))
        if epoch is None:
            epoch = self.epoch
        self.epoch = epoch + 1
        batches = Batches(at_epoch(self.dataset, epoch), self.batcher, self.batch_size, self.shuffle, epoch)
        return LoaderIterator(self, batches, len(self), start)


class Batches:
    """The batches of one epoch by their numbers; workers get a copy."""

    def __init__(self, dataset, batcher, batch_size, seed, epoch):
        if batcher is None:
            from .batcher import StackBatcher

            batcher = StackBatcher()
        self.dataset = dataset
        self.batcher = batcher
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = epoch
        self._order = None

    def ready(self):
        """Compute the order, before threads ask for it."""
        if self.seed is not None and self._order is None:
            from .sampling import order

            self._order = order(len(self.dataset), self.seed, self.epoch)

    def __reduce__(self):  # without the order, which another process computes itself
        return (Batches, (self.dataset, self.batcher, self.batch_size, self.seed, self.epoch))

    def indices(self, k):
        """The items of batch k."""
        start = k * self.batch_size
        stop = min(len(self.dataset), start + self.batch_size)
        self.ready()
        return list(range(start, stop)) if self._order is None else list(self._order[start:stop])

    def make(self, k):
        """Batch k. Raises DataError."""
        indices = self.indices(k)
        gathered = getattr(self.batcher, "gathered", None)
        try:
            batch = None if gathered is None else gathered(self.dataset, indices)
            if batch is not None:
                return batch
        except Exception:  # which item it was shows when they are read one by one
            pass
        items = read(self.dataset, indices)
        try:
            return self.batcher.batch(items) if hasattr(self.batcher, "batch") else self.batcher(items)
        except Exception as error:
            raise DataError("batch {} (items {}): {}".format(k, _some(indices), error_line(error)), None, error)


def _some(indices):
    shown = ", ".join([str(i) for i in indices[:8]])
    return shown if len(indices) <= 8 else "{}, … {} in all".format(shown, len(indices))


class LoaderIterator:
    """The batches of an epoch; `close()` ends its workers, as its end, an error, and dropping it do."""

    def __init__(self, loader, batches, count, start):
        self._source = None
        self._batches = batches
        self._size = loader.batch_size
        self._total = loader.num_items()
        self._count = count
        self._at = start
        self._ahead = []
        self._backend = loader.backend
        if loader.workers and start < count:
            if loader.processes:
                from ..host.data.processes import Processes

                make = Processes
            else:
                from ..host.data.threads import Threads

                make = Threads
            self._source = make(batches, range(start, count), loader.workers, loader.prefetch, loader.context)

    def __iter__(self):
        return self

    def __len__(self):
        """How many batches are left."""
        return max(0, self._count - self._at)

    def progress(self):
        """The items of the batches so far, and of the epoch."""
        return Progress(min(self._total, self._at * self._size), self._total)

    def __next__(self):
        if self._at >= self._count:
            self.close()
            raise StopIteration
        try:
            batch, error = self._ahead.pop() if self._ahead else (self._taken(self._at), None)
            if error is not None:
                raise error
            self._at += 1
            # What the next batch needs is on its way to the device while this one is computed with.
            if self._backend is not None and self._source is not None and self._at < self._count:
                if self._source.is_ready():
                    try:
                        self._ahead.append((self._taken(self._at), None))
                    except Exception as failed:  # this batch is a good one; the error is the next one's
                        self._ahead.append((None, failed))
        except BaseException:
            self.close()
            raise
        if self._at >= self._count:
            self.close()
        return batch

    def _taken(self, k):
        batch = self._batches.make(k) if self._source is None else self._source.get()
        if self._backend is None:
            return batch
        from .moving import moved

        return moved(batch, self._backend)

    def close(self):
        """End the workers; nothing more comes."""
        self._count = 0
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def __del__(self):
        self.close()


def _is_integer(x):
    return isinstance(x, int) or hasattr(x, "__index__")
