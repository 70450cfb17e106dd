"""Runs a plan with open sizes. Each call computes the sizes, and all that depends on them, on the host; nothing is
compiled anew.

Buffers have room for the capacity, a value of each size. A call that exceeds it doubles it; memory never shrinks.
"""

from emberlet.errors import BackendError
from emberlet.sizes.polynomial import at

from .runtime import SIZES, Block, Program, Results

_KNOWN = 7  # sets of lent buffers whose bind groups are cached


class OpenProgram(Program):
    """A Program of a plan with `counts`. capacity: for each symbol, its expected maximum. lent: numbers of the buffers
    that callers lend (`use_buffers`), at first those in `constants`. The rest as for a Program, with Polynomials in
    inputs and results."""

    def __init__(self, device, plan, constants, inputs, results, capacity, owned=False, owner=None, lent=()):
        self.counts = plan.counts
        self.open_results = results
        self._sizes = None
        self._capacity = tuple(capacity)
        values = self.counts.values(self._capacity)
        # Buffers of open size take one page: a plan's guards ensure that.
        self._most = min(plan.page_bytes or device.page_bytes, device.page_bytes)
        self._words = max(1, len(self.counts.block))
        self._block = None
        self._pipelines = None
        self._lent = list(lent)
        self._known = []  # [(lent Allocations, the steps' bind groups with them)], the latest first
        fixed = [(number, at(n, values)) for number, n in results]
        given = dict(constants)
        for i in range(len(plan.buffers)):
            n = plan.buffers[i].nbytes
            if i not in given and type(n) is not int:
                given[i] = device.allocate(min(max(4, n.at(values)), self._most))
        Program.__init__(self, device, plan, given, inputs, fixed, owned, owner)
        if not owned:
            self._own.extend([given[i] for i in given if i not in constants])

    def _bind(self, pipelines):
        with self._lock:
            if self._block is None:
                self._block = Block(self.device.raw, (self._words + 3) // 4 * 16)
            first = self._pipelines is None
            self._pipelines = pipelines
            groups = []
            for step in self.plan.steps:
                groups.append(self._group(step, pipelines))
            self._groups = groups
            self._known = []
            if first:
                for i in range(len(pipelines)):
                    source = self.plan.kernels[i][1]
                    self._held.append(source)
                    self.device.pipelines.hold(source, pipelines[i])
            self._sizes = None
            self.steps = []

    def _group(self, step, pipelines):
        pipeline, layout = pipelines[step.kernel]
        bound = [self.allocations[b] for b in step.buffers]
        pages = step.pages
        if SIZES in self.plan.kernels[step.kernel][1]:
            bound = bound + [self._block]
            pages = list(pages) + [1]
        return pipeline, self.device.bind(layout, bound, pages)

    def use_buffers(self, given):
        """Use these lent buffers from now on. given: {number: Allocation} for all of `lent`."""
        numbers = self._lent
        if all(self.allocations[n] is given[n] for n in numbers):
            return
        self._known.insert(0, ([self.allocations[n] for n in numbers], self._groups))
        del self._known[_KNOWN:]
        for n in numbers:
            self.allocations[n] = given[n]
        self._sizes = None
        for i in range(len(self._known)):
            if all(self._known[i][0][k] is given[numbers[k]] for k in range(len(numbers))):
                self._groups = self._known.pop(i)[1]
                return
        groups = list(self._groups)
        for i in range(len(groups)):
            step = self.plan.steps[i]
            if [n for n in numbers if n in step.buffers]:
                groups[i] = self._group(step, self._pipelines)
        self._groups = groups

    def fit(self, sizes):
        """Prepare for calls with these sizes. Raises BackendError if the plan does not serve them."""
        if sizes == self._sizes:
            return
        counts = self.counts
        values = counts.served(sizes)
        self._sizes = None
        self._grow(sizes, values)
        for number, n in self.open_results:
            if not 0 <= at(n, values) <= self.allocations[number].nbytes:
                raise BackendError("a result does not fit its buffer; the plan is damaged")
        self.device.queue.write_buffer(self._block.gpu, 0, counts.words(values))
        steps = []
        self.dispatched = []  # their indices in the plan
        for i in range(len(self._groups)):
            x, y, z = [at(n, values) for n in self.plan.steps[i].groups]
            if min(x, y, z) < 0 or max(x, y, z) > 0xFFFFFFFF:
                raise BackendError("a step has no number of workgroups; the plan is damaged")
            if x and y and z:
                steps.append(self._groups[i] + (x, y, z))
                self.dispatched.append(i)
        self.steps = steps
        results = [(number, at(n, values)) for number, n in self.open_results]
        self._out = Results(self, results, self._out.room, self._out.staging)
        self._sizes = sizes

    def _grow(self, sizes, values):
        """Replace buffers that are too small for these sizes."""
        buffers = self.plan.buffers
        for i in range(len(buffers)):
            if (
                i not in self._lent
                and type(buffers[i].nbytes) is not int
                and at(buffers[i].nbytes, values) > self.allocations[i].nbytes
            ):
                break
        else:
            return
        self._capacity = self.counts.grown(self._capacity, sizes)
        roomy = self.counts.values(self._capacity)
        for i in range(len(buffers)):
            n = buffers[i].nbytes
            if type(n) is int or i in self._lent:
                continue
            nbytes = max(n.at(values), min(n.at(roomy), self._most), 4)
            if nbytes > self._most:
                raise BackendError("a buffer of {} bytes is larger than this device can bind".format(nbytes))
            old = self.allocations[i]
            if nbytes > old.nbytes:
                self.allocations[i] = self.device.allocate(nbytes)
                self._own = [a for a in self._own if a is not old] + [self.allocations[i]]
                old.free()
        # Inputs in the replaced buffers are lost, so they must be given again.
        self._given = [False] * len(self._given)
        self._out.room = sum([at(n, roomy) for _, n in self.open_results])
        self._bind(self._pipelines)

    def _free(self):
        Program._free(self)
        self._groups = []
        self._known = []
        if self._block is not None:
            self._block.gpu.destroy()
            self._block = None


def room(nbytes, plan):
    """Bytes of a saved plan's buffer at the largest sizes, at most a page."""
    return min(max(4, nbytes.at(plan.counts.largest())), plan.page_bytes)


def saved_program(device, saved, allocations):
    """The OpenProgram of a SavedPlan."""
    plan = saved.plan
    capacity = [high for _, _, high in plan.counts.symbols]
    inputs = [(p.buffer, 0) for p in saved.inputs]
    results = [(p.buffer, p.words() if hasattr(p, "words") else p.count * 4) for p in saved.outputs]
    results += [(c.buffer, c.nbytes) for c in saved.computed]
    return OpenProgram(device, plan, allocations, inputs, results, capacity, owned=True)
