"""Chooses the loop of a kernel that threads divide among them.

Each thread runs a range of the loop's steps, as it would run them alone. Sums are never split, so results are the same
bytes for any number of threads.
"""

# A loop with at least this many steps is divided well among threads.
ENOUGH = 16

# Kernels of less work run on one thread. A unit of work is an element read, or 8 products: 32768 units take about 10
# us, and two barriers about 2.
LEAST_WORK = 1 << 15

# Modules with less work in such kernels, 0.7 ms, run on one thread: waking a thread takes up to 50 us.
LEAST_OF_MODULE = 1 << 21


def chosen(steps):
    """The position of the loop to share in a list of their steps, outermost first: the first one with enough of them,
    or else the longest."""
    best = 0
    for i, many in enumerate(steps):
        if many >= ENOUGH:
            return i
        if many > steps[best]:
            best = i
    return best


def pays(functions):
    """Whether a module's kernels do enough work to be worth several threads."""
    return sum([f.work for f in functions if shares(f)]) >= LEAST_OF_MODULE


def shares(f):
    """Whether threads share a kernel's function."""
    return f.steps > 1 and f.work >= LEAST_WORK
