"""Plans with open sizes for what is computed at once: from the second shape on, graphs of one structure share kernels.

Two graphs of the same operations whose shapes differ tell which lengths are open, and how others follow from these. A
later graph is served if each of its lengths is what follows. Axes of length 1 broadcast, so they are part of the
structure: an open length is never 1. A shape that recurs gets a plan of its own.
"""

from emberlet.errors import EmberletError
from emberlet.sizes.polynomial import at
from emberlet.sizes.scope import HIGHEST, Scope

from .plan.counts import count, counts_of
from .plan.data import Buffer, Plan, Step
from .plan.make import make_plan, places_of
from .record.node import ELEMENTWISE, LEAVES, Node, structure

SERVED = ELEMENTWISE + ("reshape", "permute", "expand", "full", "reduce", "matmul")
MOST = 3  # attempts at plans for one structure
LARGE, LARGE_PRODUCT = 1 << 20, 1 << 28  # elements, and multiplications of a product, for which a plan of its own pays
SMALL_PRODUCT = 1 << 20  # multiplications that are quick by any kernel
GROWTH = 64  # how many times the multiplications that a plan's kernels were chosen for it serves
OFTEN = 16  # computations of one shape before it gets a plan of its own
STRUCTURES = 256  # structures of which a backend keeps plans
_FACTORS = 64  # largest factor by which a length follows from another


class EagerSizes:
    """The plans with open sizes of a backend. options: its kernels' Options (kernels/table.py)."""

    def __init__(self, options):
        self._options = options
        # structure -> [plans, the shapes that none served last, {shapes: how often they occurred}, attempts left]
        self._known = {}

    def find(self, order, roots):
        """(plan for these sizes, its externals' places, words of the roots, what kernels read of sizes) for a graph;
        None if it is to have a plan of its own. order: the nodes that `roots` depend on, sources first."""
        key = _structure(order, roots)
        if key is None or any(_is_large(node) for node in order):
            return None
        numbers = [d for node in order for d in node.shape]
        found = self._known.pop(key, None)
        if found is None:
            if 0 not in numbers:
                self._known[key] = [[], numbers, {}, MOST]
                if len(self._known) > STRUCTURES:
                    del self._known[next(iter(self._known))]
            return None
        self._known[key] = found  # the latest is last
        plans, last, often, left = found
        shapes = tuple(numbers)
        often[shapes] = often.get(shapes, 0) + 1
        if len(often) > STRUCTURES:
            del often[next(iter(often))]
        if 0 in numbers or often[shapes] > OFTEN:
            return None
        work = _work(order)
        for open_plan in plans:
            served = open_plan.serve(numbers) if work <= open_plan.most_work else None
            if served:
                return served
        if last == numbers or not left:
            return None
        found[1], found[3] = numbers, left - 1
        try:
            made = _OpenPlan(order, roots, last, self._options)
        except EmberletError:  # a length decides how it is computed
            return None
        served = made.serve(numbers)
        if served:
            plans.append(made)
        return served


def _is_large(node):
    return node.count > LARGE or (node.op == "matmul" and node.count * node.srcs[0].shape[-1] > LARGE_PRODUCT)


def _work(order):
    """The multiplications of a graph's matrix products."""
    return sum([node.count * node.srcs[0].shape[-1] for node in order if node.op == "matmul"])


def _structure(order, roots):
    """What two graphs that a plan may serve have in common; None for others."""
    places = {}
    out = []
    for i in range(len(order)):
        node = order[i]
        places[id(node)] = i
        if node.op not in SERVED and (node.op not in LEAVES or node.op == "host"):
            return None
        own = None if node.op in LEAVES else (structure(node), tuple([places[id(s)] for s in node.srcs]))
        ones = tuple([n == 1 for n in node.shape])
        out.append((node.op in LEAVES or node.op, node.dtype.name, node.word, ones, own))
    out.append(tuple([places[id(r)] for r in roots]))
    return tuple(out)


class _OpenPlan:
    """A plan for graphs like `order`, of which one had the lengths `before`. most_work: the most multiplications for
    which its kernels are good ones."""

    def __init__(self, order, roots, before, options):
        numbers = [d for node in order for d in node.shape]
        self.most_work = max(SMALL_PRODUCT, GROWTH * _work(order))
        scope = Scope()
        sizes, self._firsts = _open_sizes(scope, before, numbers)
        copies = {}
        nodes = []
        k = 0
        for i in range(len(order)):
            node = order[i]
            shape = tuple(sizes[k : k + len(node.shape)])
            k += len(node.shape)
            if node.op in LEAVES:
                copy = Node("input", (), i, node.dtype, shape, node.word)
            else:
                copy = Node(node.op, tuple([copies[id(s)] for s in node.srcs]), node.arg, node.dtype, shape, node.word)
            copies[id(node)] = copy
            nodes.append(copy)
        made = [copies[id(r)] for r in roots]
        self._plan, externals = make_plan(made, options, bind_numbers=True, sizes=scope)
        counts_of(self._plan, scope)
        self._given = places_of(externals, nodes)
        self._words = [r.word for r in made]
        self._lengths = [count(n) for n in sizes]

    def serve(self, numbers):
        """What `EagerSizes.find` returns for a graph of these lengths; None if the plan does not serve it."""
        plan = self._plan
        sizes = tuple([numbers[i] for i in self._firsts])
        values = plan.counts.values(sizes)
        if plan.counts.refusal(sizes, values):
            return None
        for n, length in zip(numbers, self._lengths):
            if n != at(length, values):
                return None
        closed = Plan()
        closed.kernels, closed.externals, closed.outputs = plan.kernels, plan.externals, plan.outputs
        closed.buffers = [Buffer(b.kind, at(b.nbytes, values)) for b in plan.buffers]
        closed.steps = [
            Step(s.kernel, s.buffers, tuple([at(n, values) for n in s.groups]), s.pages) for s in plan.steps
        ]
        return closed, self._given, self._words, plan.counts.words(values)


def _open_sizes(scope, before, numbers):
    """(lengths of a graph as Sizes, where they have a symbol first): lengths that differ from `before`, where they do
    not follow from earlier ones, are symbols."""
    known = []  # (value before, value, Size)
    firsts = []
    out = []
    for i in range(len(numbers)):
        pair = (before[i], numbers[i])
        if pair[0] == pair[1]:
            out.append(pair[1])
            continue
        size = _following(pair, known)
        if size is None:
            size = scope.symbol("length {}".format(len(firsts)), 2, HIGHEST, pair[1])
            firsts.append(i)
            known.append((pair[0], pair[1], size))
        out.append(size)
    return out, firsts


def _following(pair, known):
    """The Size that has these two values, as a function of known ones; None if none is simple."""
    for p, q, size in known:
        if (p, q) == pair:
            return size
    for p, q, size in known:
        if pair[0] % p == 0 and pair[1] == pair[0] // p * q and pair[0] // p <= _FACTORS:
            return pair[0] // p * size
    for p, q, size in known:
        for r, s, other in known:
            if pair[0] % (p * r) == 0 and pair[1] == pair[0] // (p * r) * q * s:
                return pair[0] // (p * r) * size * other
    return None
