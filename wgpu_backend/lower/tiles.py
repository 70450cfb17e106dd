"""Chooses the tile of a contraction: the one measured as fastest (tuning.py), else by a small cost model per class of
device.

"cpu" and "swiftshader": software devices, where a load costs as much as many arithmetic operations and few invocations
suffice; "gpu": many invocations must be in flight, and registers are few.
"""

from emberlet.shapes import size
from emberlet.sizes.questions import divides
from emberlet.sizes.size import typical

ROWS = (1, 2, 4, 8, 16)
COLUMNS = (1, 2, 4, 7, 8, 14, 16)
SPLITS = (1, 2, 4, 8, 16)


class Class:
    """lanes: invocations that run at once; load, vector: cost of a scalar and of a vec4 load in multiply-adds; start:
    of an invocation; turn: of waiting for the loads of a turn of the innermost loop; cells: the most results an
    invocation may hold; unroll: inner steps to write out; workgroup: invocations in one; splits: into how many parts
    the inner steps of a tile may be split."""

    def __init__(self, lanes, load, vector, start, turn, cells, unroll, workgroup, splits):
        self.lanes = lanes
        self.load = load
        self.vector = vector
        self.start = start
        self.turn = turn
        self.cells = cells
        self.unroll = unroll
        self.workgroup = workgroup
        self.splits = splits


# The costs of a "gpu" are fitted to the times of 4,700 kernels on an H100, for 69 products and convolutions:
# SqueezeNet's, ResNet-50's, an encoder's, square products and products of one row. The tiles chosen take 1.13 times as
# long as the fastest ones (geometric mean).
CLASSES = {
    "cpu": Class(32, 8.0, 20.0, 50.0, 0.0, 256, 1, 16, (1,)),
    "swiftshader": Class(32, 8.0, 20.0, 50.0, 0.0, 256, 4, 16, (1,)),
    "gpu": Class(49152, 1.0, 6.0, 200.0, 16.0, 32, 4, 64, SPLITS),
}
BLOCKS = (1, 2)  # vectors per lane with which the workgroup-memory kernel is measured
# Multiply-adds written out for one round of the innermost loop: the length of a shader, and so its compile time.
MOST_TAPS = 384
MOST_UNROLLED = 1024


class Tile:
    """rows × columns of results an invocation holds; unroll: inner steps written out; workgroup: invocations; blocks:
    if not 0, the workgroup-memory kernel is meant instead, with that many vectors per lane; split: invocations that
    share the inner steps of a tile."""

    def __init__(self, rows, columns, unroll, workgroup, blocks=0, split=1):
        self.split = split
        self.rows = rows
        self.columns = columns
        self.unroll = unroll
        self.workgroup = workgroup
        self.blocks = blocks

    def numbers(self):
        """[rows, columns, unroll, workgroup, blocks, split]."""
        return [self.rows, self.columns, self.unroll, self.workgroup, self.blocks, self.split]

    def __repr__(self):
        if self.blocks:
            return "blocks of {}".format(64 * self.blocks)
        return "{}x{}u{}w{}s{}".format(self.rows, self.columns, self.unroll, self.workgroup, self.split)


def problem_key(node):
    """The key of a measurement: the operation, its shapes and parameters."""
    shapes = ["x".join([str(d) for d in s.shape]) for s in node.srcs]
    return "{} {} {} {}".format(node.op, node.dtype.name, " ".join(shapes), node.arg or "").strip()


def cost(problem, rows, columns, unroll, split, kind):
    """Estimated time of a tile, in multiply-adds of one lane."""
    threads = split
    for e in tuple(problem.before) + tuple(problem.after):
        threads *= typical(e)
    threads *= (typical(problem.rows) + rows - 1) // rows
    threads *= (typical(problem.columns) + columns - 1) // columns
    waves = (threads + kind.lanes - 1) // kind.lanes
    if kind.turn:
        # Many waves overlap: the last one need not be full.
        waves = max(1.0, threads / kind.lanes)
    taps = problem.inner[-1] if problem.unrolled else 1
    steps = typical(problem.depth()) // max(1, taps) / split
    if problem.step:
        shared = (columns - 1) * problem.step + taps
        loads = rows * taps * kind.load + min(shared, columns * taps) * (kind.load + 2)
    elif columns % 4 == 0 and divides(4, problem.columns):
        # On a GPU a vector of the left operand's steps costs half as much as its elements.
        loads = rows * kind.load * (0.5 if kind.turn and unroll > 1 else 1) + columns // 4 * kind.vector
    else:
        loads = (rows + columns) * kind.load
    inner = loads + rows * columns * taps * (1.0 if rows * columns <= 64 else 1.3)
    joined = split if split > 1 else 0
    return waves * (steps * inner + rows * columns * (kind.load + joined) + kind.start) + steps / unroll * kind.turn


def candidates(problem, device_class, count=6, fours=None):
    """The best Tiles by the cost model, best first. fours: "rows" or "columns" if an invocation has those by four."""
    kind = CLASSES[device_class]
    taps = problem.inner[-1] if problem.unrolled else 1
    work = typical(problem.cells() * problem.depth())
    # Long shaders take long to compile: only large problems get large tiles.
    most = min(kind.cells, 64 if work < 1 << 22 else 128 if work < 1 << 24 else 256)
    taps_most = MOST_TAPS if work < 1 << 26 else 2 * MOST_TAPS
    looped = problem.inner[len(problem.inner) - problem.unrolled - 1]
    axis = split_axis(problem)
    found = []
    for rows in ROWS:
        if (rows > 1 and rows >= 2 * typical(problem.rows)) or (fours == "rows" and rows % 4):
            continue
        for columns in COLUMNS:
            if (columns > 1 and columns >= 2 * typical(problem.columns)) or (fours == "columns" and columns % 4):
                continue
            if rows * columns > most or (rows * columns * taps > taps_most and rows * columns > 1):
                continue
            # The longer shader is worth it if both operands are then read as vectors.
            vectors = divides(4, looped) and columns % 4 == 0 and divides(4, problem.columns)
            unroll = kind.unroll if taps == 1 and vectors and rows * columns * kind.unroll <= MOST_UNROLLED else 1
            turns = typical(problem.inner[axis]) // unroll
            for split in kind.splits:
                if split == 1 or turns >= 2 * split:
                    found.append((cost(problem, rows, columns, unroll, split, kind), rows, columns, unroll, split))
    found.sort()
    return [Tile(rows, columns, unroll, kind.workgroup, 0, split) for _, rows, columns, unroll, split in found[:count]]


def split_axis(problem):
    """The inner axis over whose steps a split divides a tile's work: the longest one that is looped over."""
    best = 0
    for i in range(1, len(problem.inner) - problem.unrolled):
        if typical(problem.inner[i]) > typical(problem.inner[best]):
            best = i
    return best


def choose(problem, device_class, fours=None):
    """The Tile that the cost model prefers."""
    return candidates(problem, device_class, 1, fours)[0]


def workgroups(problem, tile):
    """How many workgroups compute a Problem by a Tile."""
    tiles = size(problem.before) * size(problem.after)
    tiles = tiles * (-(-typical(problem.rows) // tile.rows)) * (-(-typical(problem.columns) // tile.columns))
    return -(-typical(tiles) * tile.split // tile.workgroup)
