"""Chooses the tile of a contraction: by what was measured (tuning.py), else by a small cost model per class of device.

"cpu" and "swiftshader": software devices, where a load costs as much as many arithmetic operations and few invocations
suffice; "gpu": many invocations must be in flight, and registers are few.
"""

from emberlet.backend.sizes import divides, typical


class Class:
    """lanes: invocations that run at once; load, vector: cost of a scalar and of a vec4 load in multiply-adds; cells:
    the most results an invocation may hold; unroll: inner steps to write out; workgroup: invocations in one."""

    def __init__(self, lanes, load, vector, cells, unroll, workgroup):
        self.lanes = lanes
        self.load = load
        self.vector = vector
        self.cells = cells
        self.unroll = unroll
        self.workgroup = workgroup


CLASSES = {
    "cpu": Class(32, 8.0, 20.0, 256, 1, 16),
    "swiftshader": Class(32, 8.0, 20.0, 256, 4, 16),
    "gpu": Class(8192, 4.0, 6.0, 32, 4, 64),
}
ROWS = (1, 2, 4, 8, 16)
COLUMNS = (1, 2, 4, 7, 8, 14, 16)
BLOCKS = (1, 2)  # vectors per lane with which the workgroup-memory kernel is measured
# Multiply-adds written out for one round of the innermost loop: the length of a shader, and so its compile time.
MOST_TAPS = 384
MOST_UNROLLED = 1024


class Tile:
    """rows × columns of results an invocation holds; unroll: inner steps written out; workgroup: invocations; blocks:
    if not 0, the workgroup-memory kernel is meant instead, with that many vectors per lane."""

    def __init__(self, rows, columns, unroll, workgroup, blocks=0):
        self.rows = rows
        self.columns = columns
        self.unroll = unroll
        self.workgroup = workgroup
        self.blocks = blocks

    def numbers(self):
        """[rows, columns, unroll, workgroup, blocks]."""
        return [self.rows, self.columns, self.unroll, self.workgroup, self.blocks]

    def __repr__(self):
        if self.blocks:
            return "blocks of {}".format(64 * self.blocks)
        return "{}x{}u{}w{}".format(self.rows, self.columns, self.unroll, self.workgroup)


def problem_key(node):
    """The key of a measurement: the operation, its shapes and parameters."""
    shapes = ["x".join([str(d) for d in s.shape]) for s in node.srcs]
    return "{} {} {} {}".format(node.op, node.dtype.name, " ".join(shapes), node.arg or "").strip()


def cost(problem, rows, columns, kind):
    """Estimated time of a tile, in multiply-adds of one lane."""
    outer = 1
    for e in problem.before:
        outer *= typical(e)
    for e in problem.after:
        outer *= typical(e)
    row_tiles = (typical(problem.rows) + rows - 1) // rows
    column_tiles = (typical(problem.columns) + columns - 1) // columns
    threads = outer * row_tiles * column_tiles
    waves = (threads + kind.lanes - 1) // kind.lanes
    taps = problem.inner[-1] if problem.unrolled else 1
    steps = typical(problem.depth()) // max(1, taps)
    if problem.step:
        shared = (columns - 1) * problem.step + taps
        loads = rows * taps * kind.load + min(shared, columns * taps) * (kind.load + 2)
    elif columns % 4 == 0 and divides(4, problem.columns):
        loads = rows * kind.load + columns // 4 * kind.vector
    else:
        loads = (rows + columns) * kind.load
    inner = loads + rows * columns * taps * (1.0 if rows * columns <= 64 else 1.3)
    return waves * (steps * inner + rows * columns * kind.load + 50)


def candidates(problem, device_class, count=6):
    """The best Tiles by the cost model, best first."""
    kind = CLASSES[device_class]
    taps = problem.inner[-1] if problem.unrolled else 1
    work = typical(problem.cells() * problem.depth())
    # Long shaders take long to compile: only large problems get large tiles.
    most = min(kind.cells, 64 if work < 1 << 22 else 128 if work < 1 << 24 else 256)
    taps_most = MOST_TAPS if work < 1 << 26 else 2 * MOST_TAPS
    found = []
    for rows in ROWS:
        if rows > 1 and rows >= 2 * typical(problem.rows):
            continue
        for columns in COLUMNS:
            if columns > 1 and columns >= 2 * typical(problem.columns):
                continue
            if rows * columns <= most and (rows * columns * taps <= taps_most or rows * columns == 1):
                found.append((cost(problem, rows, columns, kind), rows, columns))
    found.sort()
    looped = problem.inner[len(problem.inner) - problem.unrolled - 1]
    out = []
    for _, rows, columns in found[:count]:
        # Worth the longer shader if both operands are then read as vectors.
        vectors = divides(4, looped) and columns % 4 == 0 and divides(4, problem.columns)
        unroll = kind.unroll if taps == 1 and vectors and rows * columns * kind.unroll <= MOST_UNROLLED else 1
        out.append(Tile(rows, columns, unroll, kind.workgroup))
    return out


def choose(problem, device_class):
    """The Tile that the cost model prefers."""
    return candidates(problem, device_class, 1)[0]
