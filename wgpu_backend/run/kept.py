"""What is worth keeping as long as there is room: of what was not used for longest the oldest goes first."""


class Kept:
    """key -> value, up to `limit` bytes by what `put` is told of each. A value larger than that is kept alone."""

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
        """The value, which is kept no longer, or None."""
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
        # Counted anew, so that no interrupt and no other thread makes the sum wrong for long. Down to three quarters:
        # sorting for each that comes would be dear.
        entries = list(self._entries.items())
        total = sum([entry[1] for _, entry in entries])
        entries.sort(key=lambda item: item[1][2])
        for key, entry in entries:
            if total <= self.limit * 3 // 4 or key == newest:
                break
            self._entries.pop(key, None)
            total -= entry[1]
        self._nbytes = total


class Pipelines:
    """A device's compiled kernels by their WGSL: (pipeline, layout of its bind group).

    Those of living Programs are kept; others, up to `limit` bytes of WGSL, as long as the owner they were made for,
    who may be nobody.
    """

    def __init__(self, limit):
        self._loose = Kept(limit)  # source -> (found, owner)
        self._held = {}  # source -> [found, number of Programs]

    def __len__(self):
        return len(self._loose) + len(self._held)

    def get(self, source):
        """The pipeline of a source, or None."""
        found = self._held.get(source) or self._loose.get(source)
        return None if found is None else found[0]

    def put(self, source, found, owner=None):
        """Keeps a pipeline under its source."""
        if source not in self._held:
            self._loose.put(source, (found, owner), len(source))

    def hold(self, source, found):
        """Keep it until `release`."""
        held = self._held.get(source)
        if held is None:
            self._held[source] = [found, 1]
            self._loose.pop(source)
        else:
            held[1] += 1

    def release(self, source, owner):
        """A Program that holds it is gone; where it was the last, keep it for the owner, if there is one."""
        held = self._held.get(source)
        if held is not None:
            held[1] -= 1
            if not held[1]:
                self._held.pop(source, None)
                if owner is not None:
                    self.put(source, held[0], owner)

    def forget(self, owner):
        """The owner is gone."""
        for source, value in self._loose.items():
            if value[1] is owner:
                self._loose.pop(source)

    def clear(self):
        """Forgets all pipelines."""
        self._loose.clear()
