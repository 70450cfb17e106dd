"""Runs plans on a device: one command encoder, one compute pass, one submission.

`run_once` computes values on demand; a `Program` keeps a plan's buffers, bind groups and pipelines for many calls. A
saved plan needs only this file and device.py, under CPython, Pyodide and MicroPython alike.
"""

from emberlet.errors import BackendError

from ..device import COPIED, COPY_DST, READABLE, UNIFORM, lock, must_await
from .buffers import FINALIZERS
from .pipelines import pipelines_async, pipelines_of, prepare

SIZES = "var<uniform> sizes:"  # in the text of kernels that read open sizes
_SPARE = 2  # staging buffers that a Program keeps, one for each overlapping call


class Block:
    """The uniform block of sizes that kernels read; `Device.bind` takes it like an Allocation."""

    def __init__(self, raw, nbytes):
        self.gpu = raw.create_buffer(size=nbytes, usage=UNIFORM | COPY_DST)
        self.nbytes = nbytes
        self.pages = [self]


def run_once(device, plan, externals, sizes=b""):
    """Run a plan once, with the Allocations of its externals. Returns the Allocations of its outputs. sizes: the
    words of the block that kernels with open sizes read, in fours."""
    allocations = {}
    for i in range(len(externals)):
        allocations[plan.externals[i]] = externals[i]
    for i in range(len(plan.buffers)):
        if i not in allocations:
            allocations[i] = device.allocate(plan.buffers[i].nbytes)
    device.enter()
    try:
        _submit(device, plan, allocations, sizes)
    except Exception as error:
        raise device.failure("running {}".format(named(plan)), error)
    finally:
        device.leave()
    if not FINALIZERS:
        # The queue runs later submissions after this one, so they may use the memory.
        for i in range(len(plan.buffers)):
            if plan.buffers[i].kind == "temporary":
                allocations[i].free()
    return [allocations[b] for b in plan.outputs]


def _submit(device, plan, allocations, sizes):
    """Record the plan's steps and submit them. allocations: buffer number -> Allocation."""
    pipelines = prepare(device, plan.kernels)
    for name, source in plan.kernels:
        # Compile kernels one by one if they are not prepared: Python that cannot be suspended cannot await a pipeline.
        if source not in pipelines:
            pipelines[source] = device.pipeline(name, source)
    device.pipelines.ran(pipelines)
    block = None
    if sizes:
        block = Block(device.raw, len(sizes))
        device.queue.write_buffer(block.gpu, 0, sizes)
    encoder = device.raw.create_command_encoder()
    run = encoder.begin_compute_pass()
    for step in plan.steps:
        source = plan.kernels[step.kernel][1]
        pipeline, layout = pipelines[source]
        bound, pages = [allocations[b] for b in step.buffers], step.pages
        if block is not None and SIZES in source:
            bound, pages = bound + [block], list(pages) + [1]
        run.set_pipeline(pipeline)
        run.set_bind_group(0, device.bind(layout, bound, pages))
        run.dispatch_workgroups(step.groups[0], step.groups[1], step.groups[2])
    run.end()
    device.queue.submit([encoder.finish()])


def named(plan):
    """The first kernels of a plan, for a message."""
    names = [name for name, _ in plan.kernels[:4]]
    more = len(plan.kernels) - len(names)
    return "kernels {}{}".format(", ".join(names), " and {} more".format(more) if more else "")


class Results:
    """Copies a Program's results, a list of (number of a buffer, nbytes), into one staging buffer to be read. room:
    bytes of that buffer, if more may be needed later; staging: staging buffers to reuse."""

    def __init__(self, program, results, room=0, staging=None):
        self.results = results
        self.copies = []
        self.staging = [] if staging is None else staging  # neither mapped nor in use
        at = 0
        for number, nbytes in results:
            left = nbytes
            for page in program.allocations[number].pages:
                size = min(left, page.nbytes)
                if size:
                    self.copies.append((page.gpu, at, size))
                at += size
                left -= size
        self.nbytes = max(4, at)
        self.room = max(room, self.nbytes)

    def take(self, device, taken):
        """A staging buffer, also put into the list `taken`."""
        while self.staging and not taken:
            taken.append(self.staging.pop())
            if taken[0].size < self.nbytes:  # too small: made for smaller sizes
                taken.pop().destroy()
        if not taken:
            usage = COPIED if must_await() else READABLE
            taken.append(device.raw.create_buffer(size=self.room, usage=usage))
        return taken[0]

    def split(self, whole):
        """The bytes of each result."""
        out = []
        at = 0
        for _, nbytes in self.results:
            out.append(whole[at : at + nbytes])
            at += nbytes
        return out

    def free(self):
        """Free the staging buffers."""
        while self.staging:
            self.staging.pop().destroy()


class Program:
    """A plan prepared on a device, for many calls.

    constants: {number of a constant buffer: Allocation}; owned: whether `release` frees them too. inputs, results:
    lists of (buffer number, nbytes) that `run` fills and reads. owner: an object that may need the same kernels again
    (Pipelines).
    """

    def __init__(self, device, plan, constants, inputs, results, owned=False, owner=None):
        self.device = device
        self.plan = plan
        self.owner = owner
        self.inputs = inputs
        self.results = results
        self.allocations = []
        self._own = []
        for i in range(len(plan.buffers)):
            found = constants.get(i)
            if found is None or owned:
                found = found or device.allocate(plan.buffers[i].nbytes)
                self._own.append(found)
            self.allocations.append(found)
        self.steps = None
        self._out = Results(self, results)
        self._given = [False] * len(inputs)
        self._held = []
        self._running = 0
        self._released = False
        self._lock = lock()

    def prepare(self):
        """Compile the kernels and bind the buffers. The first run does this unless it was called earlier."""
        if self.steps is None:
            self._bind(pipelines_of(self.device, self.plan.kernels))

    async def prepare_async(self):
        """`prepare`, awaited; the kernels compile in parallel."""
        if self.steps is None:
            self._bind(await pipelines_async(self.device, self.plan.kernels))

    def _bind(self, pipelines):
        steps = []
        for step in self.plan.steps:
            pipeline, layout = pipelines[step.kernel]
            group = self.device.bind(layout, [self.allocations[b] for b in step.buffers], step.pages)
            x, y, z = step.groups
            steps.append((pipeline, group, x, y, z))
        with self._lock:
            if self.steps is None:  # else another call came first
                for i in range(len(pipelines)):
                    source = self.plan.kernels[i][1]
                    self._held.append(source)
                    self.device.pipelines.hold(source, pipelines[i])
                self.steps = steps

    def _submit(self, data, taken, carried=None, sizes=None):
        """Upload and run; returns the Results. Their staging buffer is put into `taken`.

        The lock keeps other calls' uploads out. Submitted work runs in order, so calls may overlap from here on.
        """
        with self._lock:
            if sizes is not None:
                if carried:
                    carried.lend_buffers(self)
                self.fit(sizes)
            return self._submit_now(data, taken, carried)

    def _submit_now(self, data, taken, carried):
        device = self.device
        for i in range(len(self.inputs)):
            if data[i] is not None:
                self._given[i] = False
                device.write(self.allocations[self.inputs[i][0]], data[i])
                self._given[i] = True
            elif carried and i in carried.inputs:
                self._given[i] = False  # unset for other callers: it holds this caller's state
            elif not self._given[i]:
                raise BackendError(
                    "input {} was left unchanged, but the last call did not pass it or did not finish".format(i)
                )
        out = carried.out if carried else self._out
        staged = out and out.take(device, taken)
        encoder = device.raw.create_command_encoder()
        if carried:
            carried.restore(encoder)
        run = encoder.begin_compute_pass()
        bind, dispatch = run.set_bind_group, run.dispatch_workgroups
        current = None
        for pipeline, group, x, y, z in self.steps:
            if pipeline is not current:
                run.set_pipeline(pipeline)
                current = pipeline
            bind(0, group)
            dispatch(x, y, z)
        run.end()
        for gpu, at, size in out.copies if out else ():
            encoder.copy_buffer_to_buffer(gpu, 0, staged, at, size)
        if carried:
            carried.save(encoder)
        device.queue.submit([encoder.finish()])
        if carried:
            carried.submitted()
        return out

    def _begin(self):
        self.device.enter()
        with self._lock:
            self._running += 1

    def _end(self, taken):
        """End a call, however it ended. A staging buffer that it still holds may be mapped; submitting it again would
        end the process."""
        with self._lock:
            self._running -= 1
            while taken:
                taken.pop().destroy()
            if self._released and self._running <= 0:
                self._free()
        self.device.leave()

    def _put_back(self, taken, out):
        with self._lock:
            if len(out.staging) < _SPARE and not self._released:
                out.staging.append(taken.pop())

    def run(self, data, sizes=None, carried=None):
        """The bytes of the results, given those of the inputs (None leaves an input unchanged), in one submission.
        sizes: the values of an OpenProgram's symbols (open_program.py). carried: as for `run_async`.

        Calls of several threads may overlap, and any may be interrupted without affecting the others or later ones.
        Raises BackendError if the device fails, or if an input is None that was never given.
        """
        self._begin()
        taken = []
        try:
            self._usable()
            self.prepare()
            out = self._submit(data, taken, carried, sizes)
            staged = taken[0]
            staged.map_sync("READ", 0, out.nbytes)
            whole = staged.read_mapped(0, out.nbytes)
            staged.unmap()
            self._put_back(taken, out)
        except Exception as error:
            raise self.device.failure("running {}".format(named(self.plan)), error)
        finally:
            self._end(taken)
        return out.split(whole)

    def submit_only(self, data, carried, sizes=None):
        """Submit the inputs and the work, and read nothing. carried: as for `run_async`, with None for `out`; sizes: as
        for `run`. Raises BackendError if the device fails."""
        self._begin()
        try:
            self._usable()
            self.prepare()
            self._submit(data, [], carried, sizes)
        except Exception as error:
            raise self.device.failure("running {}".format(named(self.plan)), error)
        finally:
            self._end([])

    async def run_async(self, data, carried=None, sizes=None):
        """`run`, awaited. Calls may overlap; they run in the order in which they began. carried: the caller's Carried
        states, whose results are not returned."""
        self._begin()
        taken = []
        try:
            self._usable()
            await self.prepare_async()
            out = self._submit(data, taken, carried, sizes)
            staged = taken[0]
            if must_await():
                whole = await self.device.queue.read_buffer_async(staged, 0, out.nbytes)
            else:
                await staged.map_async("READ", 0, out.nbytes)
                whole = staged.read_mapped(0, out.nbytes)
                staged.unmap()
            self._put_back(taken, out)
        except Exception as error:
            raise self.device.failure("running {}".format(named(self.plan)), error)
        finally:
            self._end(taken)
        return out.split(whole)

    def _usable(self):
        if self._released:
            raise BackendError("this program was released; load or compile the model again")

    def release(self):
        """Free the memory once running calls have ended. Later calls raise BackendError."""
        with self._lock:
            self._released = True
            if self._running <= 0:
                self._free()

    def _free(self):
        for allocation in self._own:
            allocation.free()
        self._own = []
        self.allocations = []
        self.steps = None
        self._out.free()
        self._let_go()

    def _let_go(self):
        held = self._held
        self._held = []
        for source in held:
            self.device.pipelines.release(source, self.owner)

    def disown(self, owner):
        """Called when the owner is gone: its pipelines are no longer kept."""
        self.owner = None
        self.device.pipelines.forget(owner)

    def __del__(self):
        if hasattr(self, "_held"):
            self._let_go()
