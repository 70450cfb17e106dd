"""Runs plans on a device: one command encoder, one compute pass, one submission.

`run_once` serves values that are asked for; a `Program` keeps a plan's buffers, bind groups and pipelines ready for
many calls. This file and device.py are all that a saved plan needs, under CPython, Pyodide and MicroPython alike.
"""

from emberlet.errors import BackendError

from ..device import COPIED, READABLE, lock, must_await

_SPARE = 2  # staging buffers that a Program keeps: calls that overlap take one each


def run_once(device, plan, externals):
    """Run with the Allocations of the plan's externals; returns the Allocations of its outputs."""
    allocations = {}
    for i in range(len(externals)):
        allocations[plan.externals[i]] = externals[i]
    for i in range(len(plan.buffers)):
        if i not in allocations:
            allocations[i] = device.allocate(plan.buffers[i].nbytes)
    device.enter()
    try:
        device.prepare(plan.kernels)
        encoder = device.raw.create_command_encoder()
        run = encoder.begin_compute_pass()
        for step in plan.steps:
            # One by one where they are not prepared: Python that cannot be suspended waits for no pipeline.
            pipeline, layout = device.pipeline(plan.kernels[step.kernel][0], plan.kernels[step.kernel][1])
            run.set_pipeline(pipeline)
            run.set_bind_group(0, device.bind(layout, [allocations[b] for b in step.buffers], step.pages))
            run.dispatch_workgroups(step.groups[0], step.groups[1], step.groups[2])
        run.end()
        device.queue.submit([encoder.finish()])
    except Exception as error:
        raise device.failure("running {}".format(named(plan)), error)
    finally:
        device.leave()
    return [allocations[b] for b in plan.outputs]


def named(plan):
    """The kernels of a plan, as many as fit into a message."""
    names = [name for name, _ in plan.kernels[:4]]
    more = len(plan.kernels) - len(names)
    return "kernels {}{}".format(", ".join(names), " and {} more".format(more) if more else "")


class Results:
    """How results of a Program come back: those of the list (number of a buffer, nbytes), in one buffer. room: bytes of
    that, where more may be needed later; staging: such buffers that are there already."""

    def __init__(self, program, results, room=0, staging=None):
        self.results = results
        self.copies = []
        self.staging = [] if staging is None else staging  # none of them mapped, none in use
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
        """A buffer to copy them to, put into the list `taken`."""
        while self.staging and not taken:
            taken.append(self.staging.pop())
            if taken[0].size < self.nbytes:  # made when less was needed
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
        """Give the buffers back."""
        while self.staging:
            self.staging.pop().destroy()


class Program:
    """A plan made ready on a device.

    constants: per number of a constant buffer its Allocation; owned: whether `release` frees them too. inputs and
    results, lists of (buffer number, nbytes), say which buffers `run` fills and reads. owner: who may want the same
    kernels compiled again (Pipelines).
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
        """Compile the kernels and bind the buffers. Done by the first run; earlier where it is called."""
        if self.steps is None:
            self._bind(self.device.pipelines_of(self.plan.kernels))

    async def prepare_async(self):
        """`prepare`, awaited: the kernels compile side by side."""
        if self.steps is None:
            self._bind(await self.device.pipelines_async(self.plan.kernels))

    def _bind(self, pipelines):
        steps = []
        for step in self.plan.steps:
            pipeline, layout = pipelines[step.kernel]
            group = self.device.bind(layout, [self.allocations[b] for b in step.buffers], step.pages)
            x, y, z = step.groups
            steps.append((pipeline, group, x, y, z))
        with self._lock:
            if self.steps is None:  # else another call was first
                for i in range(len(pipelines)):
                    source = self.plan.kernels[i][1]
                    self._held.append(source)
                    self.device.pipelines.hold(source, pipelines[i])
                self.steps = steps

    def _submit(self, data, taken, carried=None, sizes=None):
        """Upload and run; returns the Results. `taken` is given the buffer that they come back through.

        No other call's upload comes between: what is submitted runs in order, so that calls may overlap from here on.
        """
        with self._lock:
            if sizes is not None:
                if carried:
                    carried.house(self)
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
                self._given[i] = False  # for others: it holds this caller's state
            elif not self._given[i]:
                raise BackendError(
                    "input {} was left as it is, but the last call did not give it or did not end".format(i)
                )
        out = carried.out if carried else self._out
        staged = out.take(device, taken)
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
        for gpu, at, size in out.copies:
            encoder.copy_buffer_to_buffer(gpu, 0, staged, at, size)
        if carried:
            carried.save(encoder)
        device.queue.submit([encoder.finish()])
        return out

    def _begin(self):
        self.device.enter()
        with self._lock:
            self._running += 1

    def _end(self, taken):
        """A call has ended, in whatever way. A staging buffer that it still has may be mapped, and would end the
        process if it were submitted again."""
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
        """Bytes of the results, given those of the inputs (None leaves an input as it is): one submission. sizes: the
        numbers of an OpenProgram's symbols (open_program.py). carried: as for `run_async`.

        Calls of several threads may overlap, and any may be interrupted: the others and later ones are not disturbed.
        Raises BackendError where the device refuses, or where an input that was never given is left as it is.
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

    async def run_async(self, data, carried=None, sizes=None):
        """`run`, awaited. Calls may overlap; they are run in the order in which they were begun. carried: the Carried
        states of the caller, whose results do not come back."""
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
        """Give the memory back, once the calls under way have ended; later ones raise BackendError."""
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
        """The owner goes, and wants nothing compiled again."""
        self.owner = None
        self.device.pipelines.forget(owner)

    def __del__(self):
        if hasattr(self, "_held"):
            self._let_go()
