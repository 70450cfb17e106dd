"""The GPU device: the library that drives it, its buffers and pipelines.

All other code uses a `Device`, which drives the GPU through this subset of the WebGPU API, with wgpu-py's names (a
browser's device object offers the same, see wgpu_backend/browser):

    device.create_buffer(size=, usage=)                device.create_shader_module(label=, code=)
    device.create_compute_pipeline(label=, layout="auto", compute={"module": m, "entry_point": "main"})
    pipeline.get_bind_group_layout(0)                  device.create_bind_group(layout=, entries=[…])
    device.create_command_encoder()                    encoder.begin_compute_pass(), encoder.finish()
    encoder.copy_buffer_to_buffer(source, offset, target, offset, size)
    pass.set_pipeline(p), pass.set_bind_group(0, g), pass.dispatch_workgroups(x, y, z), pass.end()
    device.queue.write_buffer(buffer, offset, data), device.queue.submit([commands])
    device.queue.read_buffer(buffer, offset, size)     device.limits, device.features, device.adapter_info
    device.wgsl_language_features (a browser's device only)
"""

import sys

from emberlet.errors import BackendError

from .run.buffers import Allocation, page_size, size_class
from .run.caches import Pipelines

try:
    from . import native
except (ImportError, AttributeError):  # MicroPython
    native = None

UNIFORM = 0x0040
STORAGE = 0x0080
COPY_SRC = 0x0004
COPY_DST = 0x0008
MAP_READ = 0x0001
READABLE = MAP_READ | COPY_DST  # usage of a buffer that is read back to the host
COPIED = COPY_SRC | COPY_DST

_POOL_BYTES = 256 << 20
# Bytes of WGSL, plus run/caches.py's FIXED for each kernel. Compiled, they take 300 times as much (measured on
# lavapipe).
_PIPELINE_TEXT = 640 << 10


def device_class(info):
    """The class for which kernels are chosen, from the adapter's info: "gpu", or "swiftshader" or "cpu" for
    software."""
    names = (str(info["device"]) + str(info["description"]) + str(info["architecture"])).lower()
    if "swiftshader" in names:
        return "swiftshader"
    for name in ("llvmpipe", "lavapipe", "basic render"):
        if name in names:
            return "cpu"
    return "cpu" if info["adapter_type"] == "CPU" else "gpu"


DOTS = "packed_4x8_integer_dot_product"
DOT = "    return dot4I8Packed(a, b);"  # in shaders/math.wgsl
SHIFTED_DOT = """    let p = vec4<i32>(vec4<u32>(a) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
    let q = vec4<i32>(vec4<u32>(b) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
    return dot(p, q);"""


class Device:
    """A GPU device with a pool of buffers and a cache of pipelines. raw: the wgpu-py (or browser) device."""

    def __init__(self, raw):
        self.raw = raw
        self.queue = raw.queue
        self.device_class = device_class(raw.adapter_info)
        self.subgroups = "subgroups" in raw.features
        # wgpu-native compiles all of WGSL; browsers list what they know beyond its first version.
        self.knows_dots = DOTS in getattr(raw, "wgsl_language_features", (DOTS,))
        self.page_bytes = page_size(raw.limits)
        self.workgroup_bytes = raw.limits["max-compute-workgroup-storage-size"]
        self.max_bindings = min(16, raw.limits["max-storage-buffers-per-shader-stage"])
        self.free = {}
        self.lent = {}
        self.free_bytes = 0
        self.live_bytes = 0
        self.pipelines = Pipelines(_PIPELINE_TEXT)
        self.created_buffers = 0
        self.failures = 0
        self.lost = False
        self._lock = lock()
        self._calls = 0
        self._ending = False
        self.forked = None  # in a forked process: the parent's device, never to be used
        if native:
            native.every.add(self)

    # -- its end --------------------------------------------------------------------------------------------------

    def enter(self):
        """Begin a call that submits work; `leave` must follow. Raises BackendError if the device is lost.

        wgpu ends the process if work is submitted to a destroyed device. So every submission is between `enter` and
        `leave`, and `destroy` waits for these calls.
        """
        if self.forked:
            raise BackendError(native.FORKED)
        with self._lock:
            if self.lost:
                raise BackendError(
                    "the GPU device was lost or destroyed, with all tensors on it. Load the model again: the next "
                    "operation opens a new device"
                )
            self._calls += 1

    def leave(self):
        """End a call begun by `enter`."""
        with self._lock:
            self._calls -= 1
            self._end()

    def destroy(self):
        """Free the device and all its memory once running calls have ended. Later calls raise BackendError.
        `raw.destroy()` does not wait, and ends the process if another thread is submitting."""
        with self._lock:
            if not self.lost:
                self.lost = True
                self._ending = True
            self._end()

    def _end(self):
        if self._ending and self._calls <= 0:
            self._ending = False
            self.free = {}
            self.free_bytes = 0
            self.pipelines.clear()
            self.raw.destroy()

    def measured_tiles(self):
        """The tiles that tuning.py measured for this device; none on ports without that file."""
        try:
            from .tuning import load
        except ImportError:
            return {}
        return load(self)

    def failure(self, what, error):
        """The BackendError for a failed operation of the device. Marks the device as lost if the error says so."""
        # A browser reports a failed allocation late, so no earlier buffer is reused.
        self.failures += 1
        self.trim()
        text = str(error)
        if "is lost" in text or "was lost" in text or "Device lost" in text:
            self.lost = True
            return BackendError(
                "the GPU device was lost while {}, with all tensors on it. Load the model again: the next "
                "operation opens a new device ({})".format(what, text.strip().replace("\n", " "))
            )
        if isinstance(error, (BackendError, MemoryError)):
            return error
        return BackendError("{} failed: {}".format(what, text))

    # -- buffers --------------------------------------------------------------------------------------------------

    def allocate(self, nbytes, page_bytes=None):
        """An Allocation of at least nbytes, in pages if that exceeds `page_bytes` or the device's limit of a binding.
        Raises BackendError if the device is out of memory."""
        page_bytes = min(page_bytes or self.page_bytes, self.page_bytes)
        if nbytes > page_bytes:
            parts = []
            for at in range(0, nbytes, page_bytes):
                parts.append(self.allocate(min(page_bytes, nbytes - at)))
            return Allocation(self, None, nbytes, parts)
        size = min(size_class(nbytes), self.page_bytes)
        gpu = None
        try:
            gpu = self.free[size].pop()
            self.free_bytes -= size
        except (KeyError, IndexError):
            try:
                gpu = self.raw.create_buffer(size=size, usage=STORAGE | COPY_SRC | COPY_DST)
            except Exception as error:
                raise self.failure("allocating {} bytes on the GPU".format(size), error)
            self.created_buffers += 1
        return Allocation(self, gpu, size)

    def recycle(self, gpu, nbytes, sound=True):
        """Return a buffer to the pool."""
        if self.forked:
            return  # it stays in `lent`: freeing it would call a driver that this process does not have
        self.live_bytes -= nbytes
        self.lent.pop(gpu, None)
        if self.lost:
            return  # its memory went with the device
        if sound and self.free_bytes + nbytes <= _POOL_BYTES:
            self.free.setdefault(nbytes, []).append(gpu)
            self.free_bytes += nbytes
        else:
            gpu.destroy()

    def trim(self):
        """Free the pooled memory."""
        free = self.free
        self.free = {}
        self.free_bytes = 0
        for pooled in list(free.values()):
            while pooled:  # pop first, so that no other thread gets a destroyed buffer
                pooled.pop().destroy()
        if must_await() and hasattr(self.raw, "trim"):  # MicroPython's binding keeps buffers too
            self.raw.trim()

    def write(self, allocation, data, at=0):
        """Upload row-major words into an allocation, from byte `at` on."""
        if not len(data):
            return  # wgpu-py refuses an empty buffer
        try:
            if allocation.gpu is not None:
                self.queue.write_buffer(allocation.gpu, at, data)
                return
            data = memoryview(data)
            for page in allocation.pages:
                size = min(page.nbytes - at, len(data))
                if size > 0:
                    self.queue.write_buffer(page.gpu, at, data[:size])
                    data = data[size:]
                    at = 0
                else:
                    at -= page.nbytes
        except Exception as error:
            raise self.failure("uploading", error)

    def clear(self, allocations):
        """Set all bytes of the allocations to zero."""
        self.enter()
        try:
            encoder = self.raw.create_command_encoder()
            for allocation in allocations:
                for page in allocation.pages:
                    encoder.clear_buffer(page.gpu)
            self.queue.submit([encoder.finish()])
        except Exception as error:
            raise self.failure("clearing buffers", error)
        finally:
            self.leave()

    def read(self, allocation, nbytes):
        """The first nbytes of an allocation, a multiple of 4."""
        self.enter()
        try:
            if allocation.gpu is not None:
                return self.queue.read_buffer(allocation.gpu, 0, nbytes)
            parts = []
            for page in allocation.pages:
                size = min(page.nbytes, nbytes)
                nbytes -= size
                if size:
                    parts.append(bytes(self.queue.read_buffer(page.gpu, 0, size)))
            return b"".join(parts)
        except Exception as error:
            raise self.failure("reading back", error)
        finally:
            self.leave()

    async def read_async(self, allocation, nbytes):
        """`read`, awaited."""
        if can_wait():
            return self.read(allocation, nbytes)
        parts = []
        for page in allocation.pages:
            size = min(page.nbytes, nbytes)
            nbytes -= size
            if size:
                parts.append(await self.queue.read_buffer_async(page.gpu, 0, size))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # -- pipelines ------------------------------------------------------------------------------------------------

    def pipeline(self, name, source):
        """(pipeline, bind group layout) for a WGSL source, compiled once."""
        found = self.pipelines.get(source)
        if found is None:
            try:
                pipeline = self.compiled(name, source)
            except Exception as error:
                raise self.refused(name, source, error)
            found = self.keep(source, pipeline)
        return found

    def module(self, name, source):
        """The shader module of a WGSL source."""
        code = source if self.knows_dots else source.replace(DOT, SHIFTED_DOT)
        return self.raw.create_shader_module(label=name, code=code)

    def compiled(self, name, source):
        """A pipeline for a WGSL source, compiled now."""
        module = self.module(name, source)
        return self.raw.create_compute_pipeline(
            label=name, layout="auto", compute={"module": module, "entry_point": "main"}
        )

    def refused(self, name, source, error):
        """The BackendError for a kernel that does not compile."""
        # Not a subclass: MicroPython's exceptions have no __init__ to call.
        detailed = Exception("{}\n{}".format(error, _numbered(source)))
        return self.failure("compiling kernel {}".format(name), detailed)

    def keep(self, source, pipeline):
        """Cache a pipeline under its source; returns (pipeline, bind group layout)."""
        found = (pipeline, pipeline.get_bind_group_layout(0))
        self.pipelines.put(source, found)
        return found

    def bind(self, layout, allocations, pages):
        """A bind group over the first pages[i] pages of allocations[i], in binding order."""
        entries = []
        for i in range(len(allocations)):
            for part in allocations[i].pages[: pages[i]]:
                resource = {"buffer": part.gpu, "offset": 0, "size": part.nbytes}
                entries.append({"binding": len(entries), "resource": resource})
        return self.raw.create_bind_group(layout=layout, entries=entries)


def _numbered(source):
    lines = source.split("\n")
    return "\n".join(["{:4d}  {}".format(i + 1, lines[i]) for i in range(len(lines))])


class _NoLock:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def lock():
    """A reentrant lock, or a substitute on ports without threads."""
    try:
        from threading import RLock
    except ImportError:
        return _NoLock()
    made = RLock()
    native.locks.add(made)
    return made


_devices = {}
_opening = lock()


def open_device(index=0):
    """Device number `index`, opened once. Raises BackendError if there is no such adapter, or if the process was forked
    after a device was opened."""
    with _opening:
        return _opened(index) or _keep_device(index, Device(_open(index)))


def open_early(index):
    """Begin to open device number `index` in a thread where that is possible."""
    if native and index not in _devices:
        native.open_early(index, open_device)


async def open_device_async(index=0):
    """`open_device`, awaited. MicroPython in a browser must await it before computing on the GPU."""
    if not must_await():
        return open_device(index)
    found = _opened(index)
    if found is None:
        from .micropython.device import gpu

        if index:
            raise BackendError("there is no GPU adapter {}; a browser offers only one".format(index))
        adapter = await gpu.request_adapter_async("high-performance")
        found = _keep_device(index, Device(await adapter.request_device_async(features(adapter))))
    return found


def _opened(index):
    if native and native.forked:
        raise BackendError(native.FORKED)
    found = _devices.get(index)
    return None if found is None or found.lost else found


def _keep_device(index, device):
    """`device`, or the one that another task opened in the meantime."""
    first = _opened(index)
    if first is not None:
        device.destroy()
        return first
    _devices[index] = device
    return device


def must_await():
    """Whether the GPU can only be awaited: MicroPython cannot be suspended."""
    return sys.implementation.name == "micropython"


def can_wait():
    """Whether Python can wait for the GPU now: not on MicroPython, nor in a tab without Promise Integration."""
    if sys.platform == "emscripten":
        from pyodide.ffi import can_run_sync

        return bool(can_run_sync())
    return not must_await()


def _open(index):
    if must_await():
        raise BackendError(
            "no GPU is open, and MicroPython cannot wait for one here: "
            "`await emberlet.wgpu_backend.device.open_device_async()` first"
        )
    from .native import open_raw

    return open_raw(index, features)


def features(adapter):
    """The features to request from a device: those of interest that the adapter has."""
    return [f for f in ("shader-f16", "subgroups", "timestamp-query") if f in adapter.features]
