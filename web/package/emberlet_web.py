"""The Python that emberlet.mjs calls: plans by number, each loaded from the head of its file while the rest arrives.

JavaScript hands over small things as JSON and bytes in files; `emberlet_page` are the functions of it that are called
from here.
"""

import json
import sys

import emberlet_page
from emberlet.burnpack import MAX_FILE, Burnpack
from emberlet.burnpack.parts import FileParts
from emberlet.errors import BackendError
from emberlet.wgpu_backend.device import open_device_async
from emberlet.wgpu_backend.saved_plan import SavedPlan

plans = {}
sessions = {}


class _Head(FileParts):
    """The header of a burnpack, whose tensors are still to come."""

    def __len__(self):
        return MAX_FILE


async def open_plan(key, path, name):
    """Allocate the plan of the file at `path`, which holds only the header; returns the facts that JavaScript needs."""
    device = await open_device_async()
    head = _Head(path)
    try:
        plan = SavedPlan(Burnpack(head, name), device, True, False)
    finally:
        head.close()
    plans[key] = plan
    uploads = []
    for target, start, end, expected, tensor in plan.filling.uploads:
        pages = []
        for page in target.pages:
            emberlet_page.target(page.gpu._internal)
            pages.append(page.nbytes)
        uploads.append([start, end, expected, tensor, pages])
    emberlet_page.queue(device.queue._internal)
    return json.dumps(
        {
            "adapter": device.raw.adapter.summary,
            "runtime": "MicroPython " + ".".join([str(part) for part in sys.implementation.version[:3]]),
            "inputs": _told(plan, plan.inputs),
            "outputs": _told(plan, plan.outputs),
            "sizes": plan.counts.symbols if plan.counts else [],
            "uploads": uploads,
            "dispatches": len(plan.plan.steps),
            "kernels": len(plan.plan.kernels),
        }
    )


def _told(plan, ports):
    """Inputs or outputs for JSON; "bytes" is the largest number for one of open size."""
    highest = tuple([high for _, _, high in plan.counts.symbols]) if plan.counts else None
    out = []
    for p in plan.ports(highest, ports):
        out.append({"name": p.name, "dtype": p.dtype.name, "bytes": p.dtype.nbytes(p.count)})
        out[-1]["shape"] = ports[len(out) - 1].shape
    return out


async def compile_plan(key):
    """Compile the kernels, side by side."""
    await plans[key].program.prepare_async()


def fill_plan(key):
    """To be called once all weights are on the GPU."""
    plans[key].filling.finish()


async def run_plan(key, given, session=None):
    """Run with the inputs from files named by position; given: JSON of [position, bytes, shape or null] for each.

    The results go to files alike; JavaScript reads their shapes as `answer`.
    """
    plan = plans[key]
    inputs = [None] * len(plan.inputs)
    for position, nbytes, shape in json.loads(given):
        inputs[position] = _read(position, nbytes)
        if shape is not None:
            inputs[position] = _Shaped(inputs[position], shape)
    if session is None:
        outputs = await plan.run_async(*inputs)
    else:
        outputs = await sessions[session].run_async(inputs)
    for i in range(len(outputs)):
        with open(f"/out{i}", "wb") as file:
            file.write(outputs[i].bytes)
    return json.dumps([one.shape for one in outputs])


class _Shaped:
    """Bytes with the shape that JavaScript gave."""

    def __init__(self, data, shape):
        self.data = data
        self.shape = tuple(shape)

    def tobytes(self):
        return self.data


async def profile_plan(key, runs):
    """The time of each dispatch; JavaScript reads it as `answer`."""
    from emberlet.wgpu_backend.run.stepwise import measure

    if plans[key].counts and not plans[key].program.steps:
        raise BackendError("a model with open sizes is profiled with the sizes of its last run; run it first")
    return json.dumps(await measure(plans[key].program, emberlet_page.now, runs))


def _read(position, nbytes):
    """The bytes of an input's file. MicroPython's `read()` grows its result by 256 bytes at a time."""
    data = bytearray(nbytes)
    with open(f"/in{position}", "rb") as file:
        file.readinto(data)
    return data


def release_plan(key):
    """Free the plan's memory."""
    if key in plans:
        plans.pop(key).release()


class Session:
    """A plan whose states stay on the GPU; see wgpu_backend/run/carried.py."""

    def __init__(self, plan, pairs):
        from emberlet.wgpu_backend.run.carried import Carried

        self.plan = plan
        self.carried = Carried(plan, pairs)

    async def run_async(self, inputs):
        """`SavedPlan.run_async`, for the results that are not states."""
        program = self.plan.program
        found = await program.run_async(self.plan.words(inputs), self.carried)
        return self.plan.finished(found, None, [self.plan.outputs[i] for i in self.carried.wanted])


def open_session(key, number, pairs):
    """A session of a plan; pairs: lists of [position of an input, position of a result]."""
    if plans[key].counts:
        size = plans[key].counts.symbols[0][0]
        raise BackendError(f"sessions take no model with open sizes; compile it with fixed sizes, as --dim {size}=1")
    sessions[number] = Session(plans[key], pairs)


def set_state(number, position):
    """Set a session's state to the bytes in the file named by its position."""
    session = sessions[number]
    inputs = [None] * len(session.plan.inputs)
    port = session.plan.inputs[position]
    inputs[position] = _read(position, port.dtype.nbytes(port.count))
    words = session.plan.words(inputs)[position]
    session.plan.program.device.write(session.carried.inputs[position], words)


async def read_state(number, position):
    """Write a session's state to the file named by its position."""
    session = sessions[number]
    port = session.plan.inputs[position]
    device = session.plan.program.device
    words = await device.read_async(session.carried.inputs[position], port.count * 4)
    with open(f"/out{position}", "wb") as file:
        file.write(session.plan.narrowed([words], [port])[0].bytes)


def reset_session(number):
    """Set a session's states to zero."""
    sessions[number].carried.reset()


def release_session(number):
    """Free a session's memory."""
    if number in sessions:
        sessions.pop(number).carried.free()
