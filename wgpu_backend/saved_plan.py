"""A plan from a file (plan_file.py), ready to run."""

import json

from .plan.data import KEY, KEY_STEP, VERSION, VERSION_OPEN, VERSION_STORED
from .plan.filling import Filling
from .plan.ports import Ported
from .plan.reading import read


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
    """The class in the file whose steps serve the device: the best one, else what every device runs."""
    found = content.get("steps")
    if not isinstance(found, dict):
        found = {}  # reading the file refuses it
    if device.device_class == "gpu":
        return "software" if "software" in found and "gpu" not in found else "gpu"
    if device.device_class == "swiftshader" and device.subgroups and "subgroups" in found:
        return "subgroups"
    return "gpu" if "gpu" in found and "software" not in found else "software"
