"""Plans that the sessions of a model share: each session has programs of its own, whose memory holds its states."""

from ..device import lock


class SharedPlans:
    """alone: {key of shapes: a Planned without open sizes}; open: those with open sizes, none of which has a program;
    fixed: the positions of inputs whose values decide which operations run."""

    def __init__(self):
        self.fixed = ()
        self.alone = {}
        self.open = []
        self._lock = lock()  # sessions of several threads add

    def add(self, planned, key=None, most=8):
        """Keep a plan, without its program, and the `most` latest of its kind. key: of the shapes of one without open
        sizes."""
        found = planned.copied()
        with self._lock:
            if key is None:
                self.open.append(found)
                del self.open[:-most]
                return
            while len(self.alone) >= most:
                del self.alone[next(iter(self.alone))]
            self.alone[key] = found

    def find(self, key, owner):
        """A Planned for these shapes alone, with a program of its own; None where there is none."""
        found = self.alone.get(key)
        return found and found.copied(owner)

    def find_open(self, shapes, kinds, rooms, owner):
        """(a Planned with open sizes and a program of its own, their values) for shapes and dtypes; None where there
        is none."""
        for planned in list(self.open):
            sizes = planned.sizes(shapes, kinds, rooms)
            if sizes is not None:
                return planned.copied(owner), sizes
        return None
