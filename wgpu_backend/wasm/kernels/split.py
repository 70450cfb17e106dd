"""Chooses the loop of a kernel that threads divide among them.

Each thread runs a range of the loop's steps, as it would run them alone. Sums are never split, so results are the same
bytes for any number of threads.
"""

from emberlet.sizes.size import typical

# A loop with at least this many steps is divided well among threads.
ENOUGH = 16

# Kernels of less work run on one thread. Work is in elements that are read, or 8 products: with vectors of four, 16384
# take about 10 us, wider ones half as long, and waiting for the other threads takes about 1.
LEAST_WORK = 1 << 15
MEETING = 1 << 12

# Modules in which a second thread saves less than 20 us run on one: waking a thread takes up to 40, after a pause.
LEAST_SAVED = 1 << 16


def chosen(steps):
    """The position of the loop to share in a list of their steps, outermost first: the first one with enough of them,
    or else the longest."""
    best = 0
    steps = [typical(n) for n in steps]
    for i, many in enumerate(steps):
        if many >= ENOUGH:
            return i
        if many > steps[best]:
            best = i
    return best


def pays(groups):
    """Whether threads are worth their while for the kernels of a module's groups of steps (step_groups.py)."""
    shared = [sum([f.work for f in group]) for group in groups if shares(group[0])]
    return sum([work // 2 - 2 * MEETING for work in shared]) >= LEAST_SAVED


def fine(f):
    """Whether a thread may take several ranges of a shared kernel: its loop is long, and no part of it is repeated."""
    return not f.repeats and typical(f.steps) >= ENOUGH


def shares(f):
    """Whether threads share a kernel's function."""
    return typical(f.steps) > 1 and f.work >= (LEAST_WORK // 2 if f.lanes == 4 else LEAST_WORK)
