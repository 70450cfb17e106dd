"""Caches of bounded size, with least-recently-used eviction."""


class LRUCache:
    """An LRU cache, key -> value, of up to `limit` bytes by the sizes passed to `put`. A larger value is kept alone."""

    def __init__(self, limit):
        self.limit = limit
        self._entries = {}  # key -> [value, bytes, time of the last use]
        self._nbytes = 0
        self._clock = 0

    def __len__(self):
        return len(self._entries)

    def get(self, key):
        """The value, or None."""
        found = self._entries.get(key)
        if found is None:
            return None
        self._clock += 1
        found[2] = self._clock
        return found[0]

    def put(self, key, value, nbytes):
        self._clock += 1
        old = self._entries.get(key)
        self._entries[key] = [value, nbytes, self._clock]
        self._nbytes += nbytes - (old[1] if old else 0)
        if self._nbytes > self.limit:
            self._trim(key)

    def pop(self, key):
        """Remove and return the value, or None."""
        found = self._entries.pop(key, None)
        if found is None:
            return None
        self._nbytes -= found[1]
        return found[0]

    def items(self):
        return [(key, entry[0]) for key, entry in list(self._entries.items())]

    def clear(self):
        self._entries = {}
        self._nbytes = 0

    def _trim(self, newest):
        # Recount, so that a sum spoiled by an interrupt or another thread is soon right again. Trim to three quarters,
        # so as not to sort at every `put`.
        entries = list(self._entries.items())
        total = sum([entry[1] for _, entry in entries])
        entries.sort(key=lambda item: item[1][2])
        for key, entry in entries:
            if total <= self.limit * 3 // 4 or key == newest:
                break
            self._entries.pop(key, None)
            total -= entry[1]
        self._nbytes = total


# The memory of a compiled kernel besides its source, counted as bytes of source. Measured on lavapipe: 0.8 MB for 1.3
# KB of WGSL, 1.4 MB for 3.3 KB.
FIXED = 1600


class Pipelines:
    """A device's compiled kernels by their WGSL: (pipeline, layout of its bind group).

    Kernels of living Programs are kept. Others are cached, up to `limit` bytes of WGSL and FIXED for each, until their
    owner, if any, is gone. A plan whose kernels exceed the limit keeps them until another such plan runs; it would
    compile some of them again at each run otherwise.
    """

    def __init__(self, limit):
        self._loose = LRUCache(limit)  # source -> (found, owner)
        self._held = {}  # source -> [found, number of Programs]
        self._large = {}  # source -> found, of the last plan too large for the cache

    def __len__(self):
        return len(self._loose) + len(self._held)

    def get(self, source):
        """The pipeline of a source, or None."""
        found = self._held.get(source) or self._loose.get(source)
        return self._large.get(source) if found is None else found[0]

    def ran(self, kernels):
        """Called with the {source: pipeline} of a plan that runs without a Program."""
        if sum([len(source) + FIXED for source in kernels]) > self._loose.limit * 3 // 4:  # what trimming leaves
            self._large = kernels

    def put(self, source, found, owner=None):
        """Cache a pipeline under its source."""
        if source not in self._held:
            self._loose.put(source, (found, owner), len(source) + FIXED)

    def hold(self, source, found):
        """Keep a pipeline until `release`."""
        held = self._held.get(source)
        if held is None:
            self._held[source] = [found, 1]
            self._loose.pop(source)
        else:
            held[1] += 1

    def release(self, source, owner):
        """Called when a Program that holds a pipeline is released. The last one's pipeline is kept for the owner, if
        there is one."""
        held = self._held.get(source)
        if held is not None:
            held[1] -= 1
            if not held[1]:
                self._held.pop(source, None)
                if owner is not None:
                    self.put(source, held[0], owner)

    def forget(self, owner):
        """Drop the pipelines kept for an owner that is gone."""
        for source, value in self._loose.items():
            if value[1] is owner:
                self._loose.pop(source)

    def clear(self):
        """Forget all pipelines."""
        self._large = {}
        self._loose.clear()
