"""A saved plan: a burnpack with WGSL and dispatches as metadata, and the weights as tensors.

A target only needs `load`, which runs under CPython, Pyodide and MicroPython with device.py, run/ and plan/data.py.
`save` traces a model on the host, without a GPU (plan/writer.py).

The metadata entry "emberlet.plan" is JSON: {"version": 2 to 4, "inputs" and "outputs": [[name, dtype, shape,
buffer]], "buffers": [[kind, bytes]], "constants": [[buffer, tensor] or [buffer, tensor, how, scales]], "kernels":
[[name, WGSL]], "steps": {CLASS: [[kernel, [x, y, z], [buffer, …]]]}, "indices": [[input, length]]}. A step writes the
last of its buffers; a step that binds a tensor as several pages of "page_bytes" has a fourth entry, the number of pages
of each buffer. Inputs under "indices" hold indices of an axis of that length; plan/computed_index.py says
what "computed_indices" are. CLASS is a class of device: "gpu",
"software" for software devices, or the optional "subgroups" for SwiftShader with WGSL's subgroup operations. A constant
with a third entry is stored in fewer bits (plan/stored.py), since version 3. Files of version 4 have open sizes
(plan/open_ports.py).
"""

import json
import sys

from emberlet.burnpack.parts import FileParts

from .device import must_await
from .plan.data import KEY, KEY_STEP, VERSION, VERSION_OPEN, VERSION_STORED
from .plan.filling import Filling
from .plan.ports import Ported
from .plan.reading import read


def save(path, model, *examples, **options):
    """Trace model(*examples) and write its plan to `path`; see plan/writer.py. A compiled training step is saved alike,
    save(path, step, *batch), with the weights and the optimizer's state of now."""
    from .plan.writer import save

    return save(path, model, *examples, **options)


def load(source, device=None, verify=None):
    """The `SavedPlan` in a file (a path) or in bytes; the `SavedStep` (saved_step.py) if it is a training step. device:
    a Device; None opens one.

    A file whose name ends in ".wasm", or bytes of one, is a WebAssembly module (wasm/file.py), which opens no GPU.
    Tensors are read into the GPU's memory one at a time, in parts. verify: whether to check them against the file's
    checksums, if it has any; by default only in a browser's tab, where files are downloaded. Raises FormatError if it
    is not a plan or is damaged. Under MicroPython open the device first: `await open_device_async()`.
    """
    if source.endswith(".wasm") if isinstance(source, str) else bytes(source[:4]) == b"\0asm":
        from .wasm.file import load, load_file

        return load_file(source) if isinstance(source, str) else load(bytes(source))
    from emberlet.burnpack import Burnpack

    if device is None:
        from .device import open_device

        device = open_device()
    if verify is None:
        verify = must_await() or sys.platform == "emscripten"
    if not isinstance(source, str):
        return _opened(Burnpack.from_bytes(source, "plan"), device, verify)
    file = FileParts(source)
    try:
        return _opened(Burnpack(file, source), device, verify)
    finally:
        file.close()


def _opened(pack, device, verify):
    if KEY_STEP not in pack.metadata:
        return SavedPlan(pack, device, verify)
    from .saved_step import SavedStep

    return SavedStep(pack, device, verify)


class SavedPlan(Ported):
    """A plan ready to run. inputs, outputs: lists of Port; plan: the Plan for this device's class.

    fill: whether to read the weights from `pack` now; otherwise the caller writes them, then calls `filling.finish()`.
    """

    key = None  # the metadata entry that files of a subclass have

    def __init__(self, pack, device, verify=False, fill=True):
        self.origin = pack.origin
        if KEY_STEP in pack.metadata and self.key != KEY_STEP:
            self._bad("is a training step, which emberlet.wgpu_backend.plan_file.load runs")
        content = self._json(pack, KEY)
        if content.get("version") not in (VERSION, VERSION_STORED, VERSION_OPEN):
            self._bad("has version {!r}; this release reads up to {}".format(content.get("version"), VERSION_OPEN))
        try:
            self.plan, self.inputs, self.outputs, constants = read(content, _steps(content, device))
        except ValueError as error:
            self._bad("has inconsistent contents: {}".format(error))
        self.counts = self.plan.counts
        self.computed = self.plan.computed
        self._read_own(pack)
        self.filling = Filling(pack, device, verify)
        for number, how, names in constants:
            try:
                self.filling.add(number, how, names, self.plan.buffers[number].nbytes)
            except ValueError as error:
                self._bad(error)
        allocations = {}
        try:
            for i in range(len(self.plan.buffers)):
                nbytes = self.plan.buffers[i].nbytes
                if type(nbytes) is not int:
                    from .run.open_program import room

                    nbytes = room(nbytes, self.plan)
                allocations[i] = device.allocate(nbytes, self.plan.page_bytes)
            # Buffers read before they are written, by mistake or intent, must not expose what others left there.
            device.clear([allocations[i] for i in allocations])
            self.filling.aim(allocations)
            if fill:
                self.filling.read()
                self.filling.finish()
            self._finish_loading(device, allocations)
        except BaseException:
            self.filling.free()
            for i in allocations:
                allocations[i].free()
            raise

    def _read_own(self, pack):
        """Read what files of a subclass hold besides. Raises FormatError."""

    def _finish_loading(self, device, allocations):
        """Make the program."""
        if self.counts is not None:
            from .run.open_program import saved_program

            self.program = saved_program(device, self, allocations)
            return
        from .run.runtime import Program

        self.program = Program(
            device,
            self.plan,
            allocations,
            [(p.buffer, p.given) for p in self.inputs],
            [(p.buffer, p.count * 4) for p in self.outputs] + [(c.buffer, c.nbytes) for c in self.computed],
            owned=True,
        )

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

    def release(self):
        """Free the plan's GPU memory once running calls have ended; later calls raise BackendError. Under MicroPython,
        where no garbage collector does so, call it explicitly."""
        self.program.release()
        self.program.device.trim()


def _steps(content, device):
    """The class in the file whose steps serve the device."""
    if device.device_class == "gpu":
        return "gpu"
    if device.device_class == "swiftshader" and device.subgroups and "subgroups" in (content.get("steps") or ()):
        return "subgroups"
    return "software"
