"""WebGPU for MicroPython's Wasm build in a browser: the part of wgpu-py's API that emberlet uses, on navigator.gpu.

    from emberlet.wgpu_backend.micropython.device import gpu

    adapter = await gpu.request_adapter_async()
    device = await adapter.request_device_async()
    buffer = device.create_buffer_with_data(data=data, usage=BufferUsage.STORAGE | BufferUsage.COPY_SRC)
    ...
    result = await device.queue.read_buffer_async(buffer)  # memoryview

Names, arguments and semantics are wgpu-py's (https://wgpu-py.readthedocs.io), for buffers and compute. MicroPython
cannot be suspended here, so methods that wait exist only as `_async`; such a call starts at once and is awaited later,
several in parallel. Errors that WebGPU reports late, such as those of a faulty shader, are raised by the next wait, as
BackendError. `destroy` frees buffers; the garbage collector does not.
"""

from ...errors import BackendError
from .bridge import bridge, port


class BufferUsage:
    """Flags for the uses of a buffer."""

    MAP_READ = 0x0001
    MAP_WRITE = 0x0002
    COPY_SRC = 0x0004
    COPY_DST = 0x0008
    UNIFORM = 0x0040
    STORAGE = 0x0080
    INDIRECT = 0x0100
    QUERY_RESOLVE = 0x0200


class Promise:
    """A pending result; `await` returns it or raises BackendError. Await it once."""

    def __init__(self, js_promise, handler):
        self._promise = js_promise
        self._handler = handler

    def __iter__(self):
        value, error = yield from self._promise
        if error is not None:
            raise BackendError(error)
        return self._handler(value)

    __await__ = __iter__


class GPU:
    """The entry point; `gpu` is its only instance."""

    def request_adapter_async(self, power_preference=None, force_fallback_adapter=False):
        """A Promise of an Adapter.

        Raises:
            BackendError: The page or the browser has no WebGPU, or (awaited) no adapter.
        """
        if not bridge.available():
            why = "this browser has none"
            if not bridge.secure():
                why = "the page is no secure context; serve it over https or from http://localhost"
            raise BackendError("no WebGPU: " + why)
        return Promise(bridge.requestAdapter(power_preference, force_fallback_adapter), self._adapter)

    def _adapter(self, found):
        if found is None:
            raise BackendError("this browser has WebGPU but gave no adapter: its GPU may be blocked or lack a driver")
        return Adapter(found)


gpu = GPU()


class Adapter:
    """One GPU. `info` (dict of str), `features` (set of str), `limits` (dict of int, at most 2**31 - 1)."""

    def __init__(self, adapter):
        self._internal = adapter
        vendor, architecture, device, description, fallback = bridge.info(adapter)
        self.info = {
            "vendor": vendor,
            "architecture": architecture,
            "device": device,
            "description": description,
            "adapter_type": "CPU" if fallback else "unknown",
            "backend_type": "WebGPU",
        }
        self.features = _features(adapter)
        self.limits = _limits(adapter)

    @property
    def summary(self):
        """Its name in one line, as far as the browser discloses it."""
        info = self.info
        name = info["device"] or info["description"] or (info["vendor"] + " " + info["architecture"]).strip()
        return "{} ({}) via {}".format(name or "unnamed", info["adapter_type"], info["backend_type"])

    def request_device_async(self, required_features=(), required_limits=None):
        """A Promise of a Device, with the adapter's own limits unless `required_limits` names others. An adapter makes
        only one device."""
        import json

        limits = {_camel(name): value for name, value in (required_limits or {}).items()}
        promise = bridge.requestDevice(self._internal, json.dumps(list(required_features)), json.dumps(limits))
        return Promise(promise, lambda device: Device(device, self))


class Device:
    """A device with its `queue`; `features`, `limits`, `adapter` and `adapter_info` as wgpu-py's."""

    def __init__(self, device, adapter):
        self._internal = device
        self._state = bridge.watch(device)
        self.adapter = adapter
        self.adapter_info = adapter.info
        self.features = _features(device)
        self.wgsl_language_features = set(bridge.languageFeatures())
        self.limits = _limits(device)
        self.queue = Queue(bridge.queue(device), self)

    def trim(self):
        """Free the buffers that results were read through."""
        bridge.dropSpare(self._state)

    def create_buffer(self, size, usage, label=""):
        """A Buffer of `size` bytes (a multiple of 4), zeroed."""
        return Buffer(_made(bridge.createBuffer(self._internal, label, size, usage)), size, usage)

    def create_buffer_with_data(self, data, usage, label=""):
        """A Buffer with a copy of `data` (any buffer), its size rounded up to a multiple of 4."""
        size = (_nbytes(data) + 3) // 4 * 4
        buffer = Buffer(_made(bridge.createMapped(self._internal, label, size, usage)), size, usage)
        port.write(data)
        bridge.unmap(buffer._internal)
        return buffer

    def create_shader_module(self, code, label=""):
        """A ShaderModule of WGSL source; its errors are raised by the next wait."""
        return ShaderModule(_made(bridge.createShaderModule(self._internal, label, code)))

    def create_compute_pipeline(self, compute, layout="auto", label=""):
        """A ComputePipeline; compute: {"module": …, "entry_point": …}. Only layout="auto"."""
        stage = _stage(layout, compute)
        return ComputePipeline(_made(bridge.createPipeline(self._internal, label, stage[0], stage[1])))

    def create_compute_pipeline_async(self, compute, layout="auto", label=""):
        """A Promise of a ComputePipeline: several compile in parallel."""
        stage = _stage(layout, compute)
        return Promise(bridge.createPipelineAsync(self._internal, label, stage[0], stage[1]), ComputePipeline)

    def create_bind_group(self, layout, entries, label=""):
        """A bind group of buffers; each entry's resource is a Buffer or {"buffer": …, "offset": …, "size": …}."""
        flat = []
        for entry in entries:
            resource = entry["resource"]
            if isinstance(resource, Buffer):
                resource = {"buffer": resource}
            buffer = resource["buffer"]._internal
            flat += (entry["binding"], buffer, resource.get("offset", 0), resource.get("size"))
        return _made(bridge.createBindGroup(self._internal, label, layout, *flat))

    def create_command_encoder(self, label=""):
        """A CommandEncoder."""
        return CommandEncoder(_made(bridge.createEncoder(self._internal, label)))

    def destroy(self):
        """Free the device and all its memory; later waits raise BackendError."""
        bridge.destroy(self._internal)


class Buffer:
    """GPU memory: `size` in bytes, `usage` as flags."""

    def __init__(self, buffer, size, usage):
        self._internal = buffer
        self.size = size
        self.usage = usage

    def destroy(self):
        """Free its memory."""
        bridge.destroy(self._internal)


class ShaderModule:
    """Compiled WGSL."""

    def __init__(self, module):
        self._internal = module

    async def get_compilation_messages_async(self):
        """The compiler's messages, as a list of (type, line, column, message); lines and columns count from 1."""
        return [tuple(message) for message in await bridge.messages(self._internal)]


class ComputePipeline:
    """A shader's entry point, ready to run."""

    def __init__(self, pipeline):
        self._internal = pipeline

    def get_bind_group_layout(self, index):
        """The layout of its bind group `index`."""
        return _made(bridge.layoutOf(self._internal, index))


class CommandEncoder:
    """Records commands."""

    def __init__(self, encoder):
        self._internal = encoder

    def begin_compute_pass(self, label=""):
        """A ComputePass; `end` it before anything else is recorded."""
        return ComputePass(_made(bridge.beginPass(self._internal, label)))

    def copy_buffer_to_buffer(self, source, source_offset, destination, destination_offset, size=None):
        """Copy `size` bytes (default: to the source's end); offsets and size are multiples of 4."""
        size = source.size - source_offset if size is None else size
        bridge.copy(self._internal, source._internal, source_offset, destination._internal, destination_offset, size)

    def clear_buffer(self, buffer, offset=0, size=None):
        """Set bytes to zero."""
        bridge.clear(self._internal, buffer._internal, offset, buffer.size - offset if size is None else size)

    def finish(self, label=""):
        """The commands, to be submitted once."""
        return _made(bridge.finish(self._internal, label))


class ComputePass:
    """Records dispatches."""

    def __init__(self, compute_pass):
        self._internal = compute_pass

    def set_pipeline(self, pipeline):
        """Run this pipeline from here on."""
        bridge.setPipeline(self._internal, pipeline._internal)

    def set_bind_group(self, index, bind_group):
        """Bind these buffers from here on."""
        bridge.setBindGroup(self._internal, index, bind_group)

    def dispatch_workgroups(self, x, y=1, z=1):
        """Run x*y*z workgroups."""
        bridge.dispatch(self._internal, x, y, z)

    def end(self):
        """End the pass."""
        bridge.end(self._internal)


class Queue:
    """Submitted work runs in order."""

    def __init__(self, queue, device):
        self._internal = queue
        self._device = device

    def write_buffer(self, buffer, buffer_offset, data, data_offset=0, size=None):
        """Copy `data` (any buffer) into a GPU buffer, at a multiple of 4; `data_offset` and `size` are for bytes only.

        Raises:
            BackendError: The range is misaligned or outside the buffer.
        """
        if data_offset or size:
            data = memoryview(data)[data_offset : data_offset + size if size else len(data)]
        size = _nbytes(data)
        if buffer_offset % 4 or size % 4 or buffer_offset + size > buffer.size:
            raise BackendError(
                "cannot write {} bytes at byte {} of a buffer of {}: both must be multiples of 4 and fit".format(
                    size, buffer_offset, buffer.size
                )
            )
        bridge.aimAt(self._internal, buffer._internal, buffer_offset)
        port.write(data)

    def read_buffer_async(self, buffer, buffer_offset=0, size=None):
        """A Promise of the buffer's bytes (a new memoryview) once all submitted work is done."""
        size = buffer.size - buffer_offset if size is None else size
        if buffer_offset % 4 or size % 4 or buffer_offset + size > buffer.size:
            raise BackendError(
                "cannot read {} bytes at byte {} of a buffer of {}: both must be multiples of 4 and fit".format(
                    size, buffer_offset, buffer.size
                )
            )

        def download(staging):
            data = bytearray(size)
            bridge.readFrom(staging, size)
            port.readinto(data)
            bridge.doneReading(state, staging)
            return memoryview(data)

        state = self._device._state
        return Promise(bridge.read(state, buffer._internal, buffer_offset, size), download)

    def submit(self, command_buffers):
        """Run recorded commands."""
        bridge.submit(self._internal, *command_buffers)

    def on_submitted_work_done_async(self):
        """A Promise of None, resolved when all submitted work is done."""
        return Promise(bridge.workDone(self._device._state), lambda _: None)


def _made(js_object):
    """The object that JavaScript made. Raises BackendError with the error that it threw instead."""
    if js_object is None:
        raise BackendError(bridge.take(None))
    return js_object


def _stage(layout, compute):
    if layout != "auto":
        raise BackendError("only layout='auto' is supported here, not {!r}".format(layout))
    return compute["module"]._internal, compute.get("entry_point")


def _nbytes(data):
    if isinstance(data, (bytes, bytearray)):
        return len(data)
    bridge.aimNowhere()  # MicroPython does not tell the size of a view's elements, so the writer must know it
    return port.write(data)


def _features(owner):
    return set(bridge.features(owner))


def _limits(owner):
    return {_kebab(name): value for name, value in bridge.limits(owner)}


def _kebab(name):
    """maxTextureDimension2D -> max-texture-dimension-2d"""
    parts = []
    for i in range(len(name)):
        letter = name[i]
        if letter.isdigit():
            parts.append("-" + letter)
        elif letter.isupper() and not (i and name[i - 1].isdigit()):
            parts.append("-" + letter.lower())
        else:
            parts.append(letter.lower())
    return "".join(parts)


def _camel(name):
    first, *rest = name.replace("_", "-").split("-")
    return first + "".join([part[0].upper() + part[1:] if part[0].isalpha() else part.upper() for part in rest])
