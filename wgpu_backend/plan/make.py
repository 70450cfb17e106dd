"""Planning: turns recorded nodes into a Plan, which refers to no device and to no object of the graph.

It can therefore be cached, run with other inputs, and saved (plan_file.py).
"""

from emberlet.errors import UnsupportedError
from emberlet.sizes.questions import greater, known_equal
from emberlet.sizes.size import typical

from ..fuse.fusion import Fusion
from ..fuse.second_results import joined_to_others
from ..kernels.alike import Alike
from ..kernels.launch import zeroing
from ..lower.kernel_ir import Limits, pages
from ..record.node import is_leaf
from . import estimates
from .data import Buffer, Plan, Step


def make_plan(roots, options, packed=True, bind_numbers=False, sizes=None):
    """`plan_with`, fusing less until no kernel exceeds the device's number of bindings."""
    inputs = options.max_bindings - 2
    outside = None
    while True:
        try:
            return plan_with(roots, options, inputs, packed, bind_numbers, sizes, outside)
        except TooManyBindings as error:
            inputs -= 1
            outside = inputs
            if inputs < 2:
                raise UnsupportedError(str(error))


class TooManyBindings(Exception):
    """A kernel would bind more buffers than the device allows."""


def plan_with(roots, options, max_inputs, packed=True, bind_numbers=False, sizes=None, max_outside=None):
    """(Plan, external nodes): the plan that computes `roots`, and the nodes of its external buffers.

    options: kernels.Options, whose `build` makes kernels; max_inputs: the most tensors a kernel may read; packed:
    whether narrow results may be packed (fusion.py), in which case the `word` of each root says so; bind_numbers:
    whether numbers in the graph (fills, starts of slices, …) are passed to kernels at run time, as externals ("numbers"
    nodes), for graphs that recur with other numbers. A plan of one model is faster with them compiled in. sizes: the
    Scope of the open sizes (`counts_of` turns what depends on them into Counts). max_outside: the most nodes that a row
    region may read, None for any number: those that are not tensors are usually computed from the same few.
    """
    fusion = Fusion(roots, options, max_inputs, packed, max_outside)
    fusion.stored.bind_numbers = bind_numbers
    fusion.stored.limits = Limits(options.page_bytes, options.device_class == "swiftshader", sizes)
    buffers = _Buffers(fusion, roots)
    plan = buffers.plan
    # Numbers take a binding, and what recurs with other numbers is computed once: its second results are kernels.
    items = fusion.items if bind_numbers else joined_to_others(fusion, fusion.items)
    kernels = Alike(items, fusion.stored, options)
    for item in items:
        kernel = kernels.build(item)
        whole = item.region[0] if item.region else item.node
        target = buffers.of(whole)
        counts = _pages_of(kernel, [n.nbytes for n in kernel.inputs] + [whole.nbytes], options)
        if item.anchor is not None and item.anchor.op == "kernel" and not item.anchor.arg[3]:
            clear = zeroing(kernel, whole.nbytes, options.page_bytes)
            plan.steps.append(Step(buffers.kernel(clear), [target], clear.groups, counts[-1:]))
        bound = [buffers.of(n) for n in kernel.inputs] + [target]
        step = Step(buffers.kernel(kernel), bound, kernel.groups, counts)
        step.flops = estimates.flops(item)
        step.nbytes = estimates.nbytes(item, kernel)
        plan.steps.append(step)
    kernels.keep()
    plan.outputs = [buffers.of(r) for r in roots]
    _share_temporaries(plan)
    return plan, buffers.externals


class _Buffers:
    """The numbers that a plan gives to the buffers of nodes and to the sources of kernels."""

    def __init__(self, fusion, roots):
        self.plan = Plan()
        self.externals = []  # their nodes
        self._numbers = {}
        self._sources = {}
        self._aliases = {id(node): source for node, source in fusion.aliases}
        # Number externals before building kernels, so that plans for all classes of device number them alike.
        for node in fusion.order:
            if is_leaf(node) and not known_equal(node.count, 0):
                self.of(node)
        self._kept = {id(self._resolved(r)) for r in roots}

    def _resolved(self, node):
        while id(node) in self._aliases:
            node = self._aliases[id(node)]
        return node

    def of(self, node):
        """The number of a node's buffer."""
        node = self._resolved(node)
        key = id(node)
        if key not in self._numbers:
            self._numbers[key] = len(self.plan.buffers)
            kind = "external" if is_leaf(node) else "output" if key in self._kept else "temporary"
            self.plan.buffers.append(Buffer(kind, node.nbytes))
            if kind == "external":
                self.plan.externals.append(self._numbers[key])
                self.externals.append(node)
        return self._numbers[key]

    def kernel(self, kernel):
        """The number of a kernel; equal sources have one."""
        if kernel.source not in self._sources:
            self._sources[kernel.source] = len(self.plan.kernels)
            self.plan.kernels.append((kernel.name, kernel.source))
        return self._sources[kernel.source]


def _pages_of(kernel, tensors, options):
    """The number of bindings that each of the tensors takes, of which `tensors` has the bytes. Raises TooManyBindings
    if the device allows fewer than one each, UnsupportedError if their pages are too many."""
    if len(tensors) > options.max_bindings:
        raise TooManyBindings("kernel {} binds {} buffers".format(kernel.name, len(tensors)))
    counts = [pages(n, options.page_bytes) for n in tensors]
    if sum(counts) > options.max_bindings:
        raise UnsupportedError(
            "kernel {} needs {} bindings for tensors of {} bytes; this device allows {} of {} bytes each".format(
                kernel.name,
                sum(counts),
                max([typical(n) for n in tensors]),
                options.max_bindings,
                options.page_bytes,
            )
        )
    return counts


def places_of(externals, order):
    """For each external node of a plan its place in `order`, the nodes of the graph, or for "numbers" [(a node's place,
    which of its `numbers`)]."""
    place = {}
    for i in range(len(order)):
        place[id(order[i])] = i
    out = []
    for n in externals:
        out.append([(place[k], i) for k, i in n.arg] if n.op == "numbers" else place[id(n)])
    return out


def _lifetimes(plan):
    """(temporary -> the step that uses it first, -> the step that uses it last)."""
    first = {}
    last = {}
    for at in range(len(plan.steps)):
        for b in plan.steps[at].buffers:
            if plan.buffers[b].kind == "temporary":
                if b not in first:
                    first[b] = at
                last[b] = at
    return first, last


def _share_temporaries(plan):
    """Renumber temporaries so that those whose lifetimes do not overlap share one buffer (greedy, best fit)."""
    first, last = _lifetimes(plan)
    free = []
    new_buffers = []
    renumber = {}
    for b in range(len(plan.buffers)):
        if plan.buffers[b].kind != "temporary":
            renumber[b] = len(new_buffers)
            new_buffers.append(plan.buffers[b])
    for at in range(len(plan.steps)):
        bound = sorted(plan.steps[at].buffers)
        for b in bound:
            if b in first and first[b] == at and b not in renumber:
                renumber[b] = _take(free, new_buffers, plan.buffers[b].nbytes)
        # A buffer read here for the last time becomes free only after this step: a step never writes what it reads.
        done = []
        for b in bound:
            if b in last and last[b] == at and b not in done:
                done.append(b)
                free.append(renumber[b])
    plan.buffers = new_buffers
    for step in plan.steps:
        step.buffers = [renumber[b] for b in step.buffers]
    plan.externals = [renumber[b] for b in plan.externals]
    plan.outputs = [renumber[b] for b in plan.outputs]


def _take(free, buffers, nbytes):
    best = None
    wanted = typical(nbytes)
    for b in free:
        size = typical(buffers[b].nbytes)
        if best is None:
            best = b
        elif size >= wanted:
            if typical(buffers[best].nbytes) < wanted or size < typical(buffers[best].nbytes):
                best = b
        elif typical(buffers[best].nbytes) < wanted and size > typical(buffers[best].nbytes):
            best = b
    if best is None:
        buffers.append(Buffer("temporary", nbytes))
        return len(buffers) - 1
    free.remove(best)
    buffers[best].nbytes = greater(buffers[best].nbytes, nbytes)
    return best
