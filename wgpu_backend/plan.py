"""A Plan: everything that has to happen on the device, as plain data; and how one is made from recorded nodes.

A plan knows no device and no Python object of the graph, so it can be cached, run with other inputs, and saved
(plan_file.py).
"""

from . import kernels
from .fusion import Fusion
from .node import is_leaf


class Buffer:
    """kind: "external" (given by the caller: inputs and weights), "output" or "temporary"; nbytes: its size."""

    def __init__(self, kind, nbytes):
        self.kind = kind
        self.nbytes = max(4, nbytes)


class Step:
    """One dispatch: number of the kernel, numbers of the buffers bound (inputs, then the output), workgroups."""

    def __init__(self, kernel, buffers, groups):
        self.kernel = kernel
        self.buffers = buffers
        self.groups = groups


class Plan:
    """kernels: list of (name, WGSL source), each distinct source once; buffers: list of Buffer; steps: list of Step.

    externals: buffer numbers the caller provides; outputs: per root the buffer number that holds it (an external one
    where the root is just another shape of it).
    """

    def __init__(self):
        self.kernels = []
        self.buffers = []
        self.steps = []
        self.externals = []
        self.outputs = []

    def summary(self):
        """Dispatches, distinct kernels, bytes of temporaries."""
        temporary = 0
        for b in self.buffers:
            if b.kind == "temporary":
                temporary += b.nbytes
        return {"dispatches": len(self.steps), "kernels": len(self.kernels), "temporary_bytes": temporary}


def make_plan(roots, options):
    """(Plan, external nodes): the plan that computes `roots`, and the nodes whose buffers its externals are.

    options: kernels.Options (limits, features and tile sizes the kernels are made for).
    """
    fusion = Fusion(roots)
    plan = Plan()
    number = {}
    externals = []

    def external(node):
        key = id(node)
        if key not in number:
            number[key] = len(plan.buffers)
            plan.buffers.append(Buffer("external", node.count * 4))
            plan.externals.append(number[key])
            externals.append(node)
        return number[key]

    alias = {}
    for node, source in fusion.aliases:
        alias[id(node)] = source

    def resolve(node):
        while id(node) in alias:
            node = alias[id(node)]
        return node

    kept = {}
    for r in roots:
        kept[id(resolve(r))] = True

    def buffer_of(node):
        node = resolve(node)
        if is_leaf(node):
            return external(node)
        key = id(node)
        if key not in number:
            number[key] = len(plan.buffers)
            plan.buffers.append(Buffer("output" if key in kept else "temporary", node.count * 4))
        return number[key]

    sources = {}
    for item in fusion.items:
        kernel = kernels.build(item, fusion.stored, options)
        target = item.region[0] if item.region else item.node
        if kernel.source not in sources:
            sources[kernel.source] = len(plan.kernels)
            plan.kernels.append((kernel.name, kernel.source))
        bound = [buffer_of(n) for n in kernel.inputs] + [buffer_of(target)]
        plan.steps.append(Step(sources[kernel.source], bound, kernel.groups))
    plan.outputs = [buffer_of(r) for r in roots]
    _share_temporaries(plan)
    return plan, externals


def _share_temporaries(plan):
    """Renumber temporaries so that those whose lifetimes do not overlap share one buffer (greedy, best fit)."""
    first = {}
    last = {}
    for at in range(len(plan.steps)):
        for b in plan.steps[at].buffers:
            if plan.buffers[b].kind == "temporary":
                if b not in first:
                    first[b] = at
                last[b] = at
    free = []
    new_buffers = []
    renumber = {}
    for b in range(len(plan.buffers)):
        if plan.buffers[b].kind != "temporary":
            renumber[b] = len(new_buffers)
            new_buffers.append(plan.buffers[b])
    for at in range(len(plan.steps)):
        bound = plan.steps[at].buffers
        for b in bound:
            if b in first and first[b] == at and b not in renumber:
                renumber[b] = _take(free, new_buffers, plan.buffers[b].nbytes)
        # What this step reads for the last time is free only afterwards: a step never writes what it reads.
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
    for b in free:
        size = buffers[b].nbytes
        if best is None:
            best = b
        elif size >= nbytes:
            if buffers[best].nbytes < nbytes or size < buffers[best].nbytes:
                best = b
        elif buffers[best].nbytes < nbytes and size > buffers[best].nbytes:
            best = b
    if best is None:
        buffers.append(Buffer("temporary", nbytes))
        return len(buffers) - 1
    free.remove(best)
    if buffers[best].nbytes < nbytes:
        buffers[best].nbytes = nbytes
    return best
