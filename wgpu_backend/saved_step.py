"""A training step from a file (plan/step_writer.py), which runs under CPython, Pyodide and MicroPython.

As in a compiled step, parameters and states have two buffers each: a call reads one and computes the new value into the
other, in one submission, and the next call does the reverse.
"""

from emberlet.errors import ArgumentError, EmberletError

from .plan.checks import integer, list_of, part, text_of
from .plan.data import KEY_STEP
from .run import storage
from .run.carried import Call, copy_pages
from .run.runtime import Program, Results
from .run.step_numbers import check, value_of
from .saved_plan import SavedPlan

VERSION = 1
MOST = 1 << 53  # of a count


class SavedStep(SavedPlan):
    """A training step ready to run; `plan_file.load` makes one.

    names: of its parameters, the first of each. One task at a time trains with it; calls that overlap run in the order
    in which they began. An error or an interrupt leaves all parameters and states as before the call, or as after it.
    """

    key = KEY_STEP

    def _read_own(self, pack):
        """What the file says about the step. Raises FormatError."""
        entry = self._json(pack, KEY_STEP)
        if entry.get("version") != VERSION:
            self._bad("is a step of version {!r}; this release reads {}".format(entry.get("version"), VERSION))
        try:
            self._read_entry(entry)
            for name in self.names:
                if name not in pack.tensors:
                    raise ValueError("the parameter {!r} has no tensor".format(name))
        except ValueError as error:
            self._bad("has inconsistent contents of a step: {}".format(error))
        self._ids = {}
        for name in self.names:
            self._ids[name] = pack.tensors[name].param_id

    def _read_entry(self, entry):
        """Inputs are the numbers, random words, parameters, states and the batch, in this order."""
        self._draws = integer(part(entry, "draws"), "the number of draws", len(self.inputs))
        self._first = 1 + self._draws
        self._read_values(entry)
        self._read_carried(entry)
        self._read_numbers(entry)
        for port in self.inputs[1 : self._first]:
            if port.dtype.name != "uint32":
                raise ValueError("{} does not hold random words".format(port))

    def _read_values(self, entry):
        """The parameters and states, and the inputs that hold them."""
        inputs = self.inputs
        self._parameters = []
        for found in list_of(part(entry, "parameters"), "parameters"):
            self._parameters.append([text_of(name, "a parameter's name") for name in list_of(found, "names")])
            if not found:
                raise ValueError("a parameter has no name")
        self.names = [names[0] for names in self._parameters]
        self._states = [text_of(name, "a state's name") for name in list_of(part(entry, "states"), "states")]
        self._values = inputs[self._first : self._first + len(self.names) + len(self._states)]
        if len(self._values) != len(self.names) + len(self._states):
            raise ValueError("it has {} inputs, too few for its parameters and states".format(len(inputs)))
        for port in self._values:
            if hasattr(port, "lengths"):
                raise ValueError("{} has an open size".format(port))

    def _read_carried(self, entry):
        """Which output is the next value of which parameter or state, and what remains for the caller."""
        outputs = self.outputs
        self._pairs = []
        carried = {}
        for found in list_of(part(entry, "carried"), "carried"):
            i, k = list_of(found, "a carried value", 2)
            i = integer(i, "a carried value", len(self._values) - 1)
            k = integer(k, "a carried output", len(outputs) - 1)
            port, source = self._values[i], outputs[k]
            if port.dtype is not source.dtype or port.shape != source.shape:
                raise ValueError("{} cannot become {}".format(port, source))
            if port.given != source.count * 4:
                raise ValueError("{} cannot change: it is of less than 16 bits".format(port))
            self._pairs.append((port.buffer, source.buffer))
            carried[k] = True
        readers = {}  # buffer -> number of inputs
        for p in self.inputs:
            readers[p.buffer] = readers.get(p.buffer, 0) + 1
        for p in self._values:
            if readers[p.buffer] > 1:
                raise ValueError("two inputs share a buffer")
        if len(dict(self._pairs)) != len(self._pairs):
            raise ValueError("a value becomes two")
        self._wanted = [k for k in range(len(outputs)) if k not in carried]
        self.result = part(entry, "result")
        if self.result not in ("tensor", "tuple", "dict") or not self._wanted:
            raise ValueError("it returns {!r}".format(self.result))

    def _read_numbers(self, entry):
        """The counts, and the numbers that the host computes from them and the rate in each call."""
        names = {"lr": True}
        self._counts = []
        counts = {}
        for found in list_of(part(entry, "counts"), "counts"):
            name, value, following, known = list_of(found, "a count", 4)
            names[text_of(name, "a count's name")] = True
            counts[name] = integer(value, "a count", MOST)
            self._counts.append((name, following, [text_of(n, "a name") for n in list_of(known, "names of a count")]))
        for _, following, _ in self._counts:
            if following is not None:
                check(following, names)
        self._numbers = list_of(part(entry, "numbers"), "numbers")
        for found in self._numbers:
            check(found, names)
        port = self.inputs[0]
        if port.dtype.name != "float32" or hasattr(port, "lengths") or port.count < len(self._numbers):
            raise ValueError("{} does not hold {} numbers".format(port, len(self._numbers)))
        self._now = (0, counts)  # which program holds the current values, and the counts

    def _finish_loading(self, device, allocations):
        SavedPlan._finish_loading(self, device, allocations)
        used = {}  # buffer -> number of results
        for p in self.outputs + self.computed:
            used[p.buffer] = used.get(p.buffer, 0) + 1
        buffers = self.plan.buffers
        other = dict(allocations)
        self._copied = []
        own = []
        for a, b in self._pairs:
            fits = buffers[a].nbytes == buffers[b].nbytes and buffers[b].kind == "output"
            if fits and used.get(b) == 1:
                other[a], other[b] = allocations[b], allocations[a]
            else:
                own.append(device.allocate(buffers[a].nbytes, self.plan.page_bytes))
                other[a] = own[-1]
                self._copied.append((a, b))
        if self.plan.counts is not None:
            from .run.open_program import saved_program

            second = saved_program(device, self, other)
        else:
            second = Program(device, self.plan, other, self.program.inputs, self.program.results, owned=True)
        self._programs = (self.program, second)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, lr, *batch):
        """Train on a batch with the learning rate `lr`; returns what the loss function returned, as TensorData: one, or
        a tuple or a dict of them. batch: Tensors, or row-major bytes or arrays of their dtypes.

        Raises, before anything changes, FormatError if the batch is not of the step's dtypes and shapes, and
        ArgumentError for a rate that is negative or not finite.
        """
        call = self._call(lr, batch)
        return call.results(call.program.run(call.data, call.sizes, call))

    async def run_async(self, lr, *batch):
        """The awaitable form of `run`, the only one under MicroPython."""
        await self._prepare_async()
        call = self._call(lr, batch)  # nothing else runs between here and the submission
        return call.results(await call.program.run_async(call.data, call, call.sizes))

    def submit(self, lr, *batch):
        """`run` without results, which need not be waited for. Look at those of every few steps, so that the GPU does
        not fall behind."""
        call = self._call(lr, batch, False)
        call.program.submit_only(call.data, call, call.sizes)

    async def submit_async(self, lr, *batch):
        """The awaitable form of `submit`."""
        await self._prepare_async()
        self.submit(lr, *batch)

    async def _prepare_async(self):
        for program in self._programs:
            await program.prepare_async()

    def _call(self, lr, batch, read=True):
        first = self._first + len(self._values)
        if len(batch) != len(self.inputs) - first:
            wanted = ", ".join([repr(p) for p in self.inputs[first:]])
            raise ArgumentError("a step takes the learning rate and {}, but got {} inputs".format(wanted, len(batch)))
        given = [None] * first + list(batch)
        sizes = None
        if self.counts is not None:
            from .plan.open_ports import sizes_of

            try:
                sizes = sizes_of(self.counts, self.inputs, given)
            except ValueError as error:
                self._bad(error)
        side, counts = self._now
        env = {name: float(counts[name]) for name in counts}
        env["lr"] = float(lr)
        if not 0 <= env["lr"] < float("inf"):
            raise ArgumentError("the learning rate is a finite number of at least 0, found {!r}".format(lr))
        numbers = [value_of(n, env) for n in self._numbers]
        after = dict(counts)
        for name, following, _ in self._counts:
            if following is not None:
                value = value_of(following, env)
                if not 0 <= value <= MOST:
                    raise EmberletError("the count {!r} of this step becomes {}".format(name, value))
                after[name] = int(value)
        port = self.inputs[0]
        given[0] = storage.from_list(numbers + [0.0] * (port.count - len(numbers)), port.dtype)
        ports = self.ports(sizes, self.inputs)
        words = self.words(given, sizes)
        if self._draws:
            from emberlet.functional.randomness.draws import random_bits

            for i in range(1, self._first):
                x = random_bits(ports[i].shape)
                words[i] = x.backend.to_bytes(x)
        return _Call(self, side, after, words, sizes, read)

    # -- parameters and states ----------------------------------------------------------------------------------------

    def to_record(self):
        """A Record of the parameters now, by their names in the model: for `model.load_record`, or to be saved."""
        from .run.step_records import parameters

        return parameters(self, self._read(0, len(self.names)))

    async def to_record_async(self):
        """The awaitable form of `to_record`."""
        from .run.step_records import parameters

        return parameters(self, await self._read_async(0, len(self.names)))

    def optimizer_record(self):
        """A Record of the optimizer's state now, for `optimizer.load_record`, or to be saved."""
        from .run.step_records import optimizer

        return optimizer(self, self._read(len(self.names), len(self._values)), self._now[1])

    async def optimizer_record_async(self):
        """The awaitable form of `optimizer_record`."""
        from .run.step_records import optimizer

        counts = self._now[1]
        return optimizer(self, await self._read_async(len(self.names), len(self._values)), counts)

    def _current(self):
        """The program that reads the values of now."""
        program = self._programs[self._now[0]]
        program._usable()
        return program

    def _read(self, begin, end):
        program = self._current()
        tensors = []
        for port in self._values[begin:end]:
            tensors.append(_tensor(port, program.device.read(program.allocations[port.buffer], port.given)))
        return tensors

    async def _read_async(self, begin, end):
        program = self._current()
        started = []
        for port in self._values[begin:end]:
            # All copies are submitted before anything is awaited, after which a step may overwrite them.
            started.append(_Copy(program, port))
        tensors = []
        for copy in started:
            tensors.append(_tensor(copy.port, await program.device.read_async(copy.allocation, copy.port.given)))
            copy.allocation.free()
        return tensors

    def load_record(self, record):
        """Take the parameters, or the optimizer's state, of a Record, a dict of name -> Tensor, or an open burnpack.

        Raises LoadError, before anything changes, for a name that the step does not have, or another dtype or shape.
        """
        from .run.step_records import load

        load(self, record, MOST)

    def release(self):
        """See `SavedPlan.release`."""
        for program in self._programs:
            program.release()
        self.program.device.trim()


class _Copy:
    """A copy of a value in the GPU's memory."""

    def __init__(self, program, port):
        device = program.device
        self.port = port
        self.allocation = device.allocate(port.given, program.plan.page_bytes)
        device.enter()
        try:
            encoder = device.raw.create_command_encoder()
            copy_pages(encoder, program.allocations[port.buffer], self.allocation)
            device.queue.submit([encoder.finish()])
        finally:
            device.leave()


class _Call(Call):
    """One submission, with what `Program` expects of `carried`."""

    def __init__(self, step, side, counts, data, sizes, read):
        self.step = step
        self.side = side
        self.counts = counts
        self.data = data
        self.sizes = sizes
        self.program = step._programs[side]
        self.inputs = range(step._first, step._first + len(step._values))
        self.read = read
        self._out = None

    @property
    def out(self):
        """The Results: what the loss function returned, and the computed indices; None if they are not read."""
        if self._out is None and self.read:
            step = self.step
            results = getattr(self.program, "open_results", None) or self.program.results
            wanted = step._wanted + list(range(len(step.outputs), len(results)))
            held = self.program._out
            chosen = [results[i] for i in wanted]
            if self.sizes is not None:
                from emberlet.sizes.polynomial import at

                values = step.plan.counts.values(self.sizes)
                chosen = [(number, at(n, values)) for number, n in chosen]
            self._out = Results(self.program, chosen, held.room, held.staging)
        return self._out

    def save(self, encoder):
        """Record the copies of new values that are not computed where they are kept."""
        other = self.step._programs[1 - self.side]
        for a, b in self.step._copied:
            copy_pages(encoder, self.program.allocations[b], other.allocations[a])

    def submitted(self):
        """From now on the values are those of the other side."""
        self.step._now = (1 - self.side, self.counts)

    def results(self, data):
        """What `run` returns."""
        step = self.step
        ports = [step.outputs[i] for i in step._wanted]
        found = step.finished(data, self.sizes, step.ports(self.sizes, ports))
        if step.result == "tensor":
            return found[0]
        return tuple(found) if step.result == "tuple" else {p.name: x for p, x in zip(ports, found)}


def _tensor(port, words):
    """A Tensor of a value, on the default backend."""
    from emberlet.tensor_data import TensorData

    data = storage.narrow(words, port.dtype, port.count, storage.packed(port.dtype))
    return TensorData(bytes(data)[: port.dtype.nbytes(port.count)], port.shape, port.dtype).to_tensor()
