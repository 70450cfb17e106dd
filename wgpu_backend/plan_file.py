"""A saved plan: a burnpack with the WGSL and the dispatches as metadata and the weights as tensors.

`load` is what a target needs: with device.py, run/ and plan/data.py it runs under CPython, Pyodide and MicroPython.
`save` traces a model on the host, without a GPU (plan/writer.py).

The metadata entry "emberlet.plan" is JSON: {"version": 2, "inputs" and "outputs": [[name, dtype, shape, buffer]],
"buffers": [[kind, bytes]], "constants": [[buffer, tensor]], "kernels": [[name, WGSL]], "steps": {CLASS: [[kernel,
[x, y, z], [buffer, …]]]}}, where CLASS is a class of device: "gpu", "software" for one that computes in software, or
(it may be left out) "subgroups" for SwiftShader with WGSL's subgroup operations.
"""

import json

from emberlet import dtypes
from emberlet.errors import FormatError

from .plan.data import KEY, VERSION, Buffer, Plan, Step
from .run import storage

_MAX_BYTES = 1 << 31


def save(path, model, *examples, **options):
    """Trace model(*examples) and write its plan to `path`; see plan/writer.py."""
    from .plan.writer import save

    return save(path, model, *examples, **options)


def load(source, device=None):
    """The `SavedPlan` in a file (a path) or in bytes. device: a Device; opened where it is None.

    Raises FormatError where it is no plan. Under MicroPython open the device first: `await open_device_async()`.
    """
    from emberlet.burnpack import Burnpack

    pack = Burnpack.from_file(source) if isinstance(source, str) else Burnpack.from_bytes(source, "plan")
    if device is None:
        from .device import open_device

        device = open_device()
    return SavedPlan(pack, device)


class Port:
    """An input or output: name, dtype, shape, number of its buffer."""

    def __init__(self, name, dtype, shape, buffer):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.buffer = buffer
        self.count = 1
        for d in shape:
            self.count *= d

    @property
    def given(self):
        """Bytes of an input: narrow elements stay packed, four to a word."""
        return storage.nbytes(storage.packed(self.dtype), self.count)

    def __repr__(self):
        return "{}: {} {}".format(self.name, self.dtype, self.shape)


class SavedPlan:
    """A plan ready to run. inputs, outputs: lists of Port; plan: the Plan for this device's class."""

    def __init__(self, pack, device):
        from .run.runtime import Program

        self.origin = pack.origin
        content = self._json(pack, KEY)
        if content.get("version") != VERSION:
            self._bad("is of version {!r}; this release reads {}".format(content.get("version"), VERSION))
        try:
            self.plan = _plan(content, _steps(content, device))
            self.inputs = [_port(p, self.plan, True) for p in content["inputs"]]
            self.outputs = [_port(p, self.plan, False) for p in content["outputs"]]
            constants = [(int(number), str(name)) for number, name in content["constants"]]
        except (KeyError, ValueError, TypeError, IndexError) as error:
            self._bad("does not hold together: {!r}".format(error))
        allocations = {}
        for number, name in constants:
            data = pack.raw(name)
            if not 0 <= number < len(self.plan.buffers) or len(data) > self.plan.buffers[number].nbytes:
                self._bad("its tensor {!r} does not fit buffer {}".format(name, number))
            allocations[number] = device.allocate(self.plan.buffers[number].nbytes)
            device.write(allocations[number], data)
        self.program = Program(
            device,
            self.plan,
            allocations,
            [(p.buffer, p.given) for p in self.inputs],
            [(p.buffer, p.count * 4) for p in self.outputs],
            owned=True,
        )

    def _bad(self, message):
        raise FormatError("{}: as a plan it {}".format(self.origin, message))

    def _json(self, pack, key):
        text = pack.metadata.get(key)
        if text is None:
            self._bad("has no metadata {!r}; it may be a plain burnpack".format(key))
        try:
            found = json.loads(text)
        except (ValueError, RuntimeError) as error:  # nested too deep
            self._bad("has metadata {!r} that is not JSON: {}".format(key, error))
        if not isinstance(found, dict):
            self._bad("has metadata {!r} that is not an object".format(key))
        return found

    def _words(self, inputs):
        if len(inputs) != len(self.inputs):
            self._bad("takes {} inputs, {} were given".format(len(self.inputs), len(inputs)))
        out = []
        for i in range(len(inputs)):
            port = self.inputs[i]
            data = inputs[i]
            if data is None:
                out.append(None)
                continue
            self._check_type(data, port)
            if hasattr(data, "backend"):
                data = data.backend.to_bytes(data)
            elif hasattr(data, "tobytes") and not isinstance(data, memoryview):
                data = data.tobytes()
            if len(memoryview(data)) != port.dtype.nbytes(port.count):
                self._bad("takes {} bytes for {}".format(port.dtype.nbytes(port.count), port))
            words = storage.widen(data, port.dtype, port.count, storage.packed(port.dtype))
            if words is None:
                self._bad("takes no integers beyond 32 bits for {}".format(port))
            out.append(words)
        return out

    def _check_type(self, data, port):
        """Refuse an array of the right length in another dtype or shape, whose bytes would be taken for the input's.
        Unsigned integers may be bits of anything, and one axis may hold any shape, row by row.
        """
        name = getattr(getattr(data, "dtype", None), "name", port.dtype.name)
        if name != port.dtype.name and name in dtypes.BY_NAME and dtypes.BY_NAME[name].kind != "uint":
            self._bad("takes {}, and was given {} {}".format(port, name, tuple(data.shape)))
        shape = tuple(getattr(data, "shape", None) or port.shape)
        if shape != port.shape and len(shape) != 1:
            self._bad("takes {}, and was given {} {}".format(port, name, shape))

    def _results(self, data):
        from emberlet.data import TensorData

        out = []
        for i in range(len(data)):
            port = self.outputs[i]
            out.append(TensorData(storage.narrow(data[i], port.dtype, port.count), port.shape, port.dtype))
        return out

    def run(self, *inputs):
        """TensorData of every output. inputs, in order: Tensors, or row-major bytes (or arrays) of their dtypes; None
        for one that is the same as in the call before, which then needs no upload."""
        return self._results(self.program.run(self._words(inputs)))

    async def run_async(self, *inputs):
        """`run`, awaited: the only way under MicroPython. Calls may overlap, and run in order."""
        return self._results(await self.program.run_async(self._words(inputs)))

    def release(self):
        """Give the plan's memory on the GPU back, once the calls under way have ended; later ones raise BackendError.
        Where there is no garbage collector for it, under MicroPython, nothing else does."""
        self.program.release()


def _steps(content, device):
    """The class whose steps serve the device."""
    if device.device_class == "gpu":
        return "gpu"
    if device.device_class == "swiftshader" and device.subgroups and "subgroups" in content["steps"]:
        return "subgroups"
    return "software"


def _plan(content, device_class):
    plan = Plan()
    for kind, nbytes in content["buffers"]:
        if not 0 <= nbytes <= _MAX_BYTES:
            raise ValueError("a buffer of {} bytes".format(nbytes))
        plan.buffers.append(Buffer(str(kind), int(nbytes)))
    kernels = [(str(name), str(source)) for name, source in content["kernels"]]
    used = {}
    for kernel, groups, buffers in content["steps"][device_class]:
        x, y, z = [int(n) for n in groups]
        bound = [int(b) for b in buffers]
        if not 0 <= kernel < len(kernels) or min(bound) < 0 or max(bound) >= len(plan.buffers):
            raise ValueError("dispatch {} names what is not there".format(len(plan.steps)))
        if not 0 <= min(x, y, z) <= max(x, y, z) < 1 << 32:
            raise ValueError("dispatch {} is of {} workgroups".format(len(plan.steps), groups))
        if kernel not in used:
            used[kernel] = len(plan.kernels)
            plan.kernels.append(kernels[kernel])
        plan.steps.append(Step(used[kernel], bound, (x, y, z)))
    return plan


def _port(found, plan, is_input):
    name, dtype, shape, buffer = found
    port = Port(str(name), dtypes.BY_NAME[dtype], tuple([int(d) for d in shape]), int(buffer))
    if [d for d in port.shape if d < 0]:
        raise ValueError("{} has an axis of negative length".format(port))
    if (
        not 0 <= port.buffer < len(plan.buffers)
        or (port.given if is_input else port.count * 4) > plan.buffers[port.buffer].nbytes
    ):
        raise ValueError("{} does not fit its buffer".format(port))
    return port
