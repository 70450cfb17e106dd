"""Runs plans on a device: one command encoder, one compute pass, one submission.

`run_once` serves values that are asked for; a `Program` keeps a plan's buffers, bind groups and pipelines ready for
many calls. This file and device.py are all that a saved plan needs, under CPython, Pyodide and MicroPython alike.
"""

from ..device import COPIED, READABLE, lock, must_await


def run_once(device, plan, externals):
    """Run with the Allocations of the plan's externals; returns the Allocations of its outputs."""
    allocations = {}
    for i in range(len(externals)):
        allocations[plan.externals[i]] = externals[i]
    for i in range(len(plan.buffers)):
        if i not in allocations:
            allocations[i] = device.allocate(plan.buffers[i].nbytes)
    try:
        encoder = device.raw.create_command_encoder()
        run = encoder.begin_compute_pass()
        for step in plan.steps:
            # One by one: where Python cannot be suspended there is no waiting for a pipeline.
            pipeline, layout = device.pipeline(plan.kernels[step.kernel][0], plan.kernels[step.kernel][1])
            run.set_pipeline(pipeline)
            run.set_bind_group(0, device.bind(layout, [allocations[b] for b in step.buffers], step.pages))
            run.dispatch_workgroups(step.groups[0], step.groups[1], step.groups[2])
        run.end()
        device.queue.submit([encoder.finish()])
    except Exception as error:
        raise device.failure("running {}".format(named(plan)), error)
    return [allocations[b] for b in plan.outputs]


def named(plan):
    """The kernels of a plan, as many as fit into a message."""
    names = [name for name, _ in plan.kernels[:4]]
    more = len(plan.kernels) - len(names)
    return "kernels {}{}".format(", ".join(names), " and {} more".format(more) if more else "")


class Program:
    """A plan made ready on a device.

    constants: per number of a constant buffer its Allocation. inputs and results, lists of (buffer number, nbytes),
    say which buffers `run` fills and reads.
    """

    def __init__(self, device, plan, constants, inputs, results):
        self.device = device
        self.plan = plan
        self.inputs = inputs
        self.results = results
        self.allocations = []
        for i in range(len(plan.buffers)):
            found = constants.get(i)
            self.allocations.append(device.allocate(plan.buffers[i].nbytes) if found is None else found)
        self.steps = None
        self.copies = []
        at = 0
        for number, nbytes in results:
            left = nbytes
            for page in self.allocations[number].pages:
                size = min(left, page.nbytes)
                if size:
                    self.copies.append((page.gpu, at, size))
                at += size
                left -= size
        self._staged = device.raw.create_buffer(size=max(4, at), usage=COPIED if must_await() else READABLE)
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
        self.steps = steps

    def _submit(self, data):
        device = self.device
        for i in range(len(self.inputs)):
            if data[i] is not None:
                device.write(self.allocations[self.inputs[i][0]], data[i])
        encoder = device.raw.create_command_encoder()
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
        for gpu, at, size in self.copies:
            encoder.copy_buffer_to_buffer(gpu, 0, self._staged, at, size)
        device.queue.submit([encoder.finish()])

    def _split(self, whole):
        out = []
        at = 0
        for _, nbytes in self.results:
            out.append(whole[at : at + nbytes])
            at += nbytes
        return out

    def run(self, data):
        """Bytes of the results, given those of the inputs (None leaves an input as it is): one submission."""
        with self._lock:
            try:
                self.prepare()
                self._submit(data)
                staged = self._staged
                staged.map_sync("READ")
                whole = staged.read_mapped()
                staged.unmap()
            except Exception as error:
                raise self.device.failure("running {}".format(named(self.plan)), error)
        return self._split(whole)

    async def run_async(self, data):
        """`run`, awaited. One call at a time."""
        try:
            await self.prepare_async()
            self._submit(data)
            staged = self._staged
            if must_await():
                return self._split(await self.device.queue.read_buffer_async(staged))
            await staged.map_async("READ")
            whole = staged.read_mapped()
            staged.unmap()
            return self._split(whole)
        except Exception as error:
            raise self.device.failure("running {}".format(named(self.plan)), error)

    def release(self):
        """Give the memory back now; a Program is not to be run afterwards."""
        for i in range(len(self.allocations)):
            if self.plan.buffers[i].kind != "external":
                self.allocations[i].free()
        self.steps = None
        self._staged.destroy()
