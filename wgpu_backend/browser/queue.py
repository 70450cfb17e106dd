"""The queue: submissions, uploads and downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import js
from wgpu import classes

from .bridge import bridge
from .errors import unsupported
from .promise import GPUPromise

_submit = bridge.submit
_write_buffer = bridge.writeBuffer
_write_small = bridge.writeSmall
_bytes_of = bridge.bytesOfStaging
_destroy = bridge.destroy
_new_bytes = js.Uint8Array.new

# Up to this size, filling a reused array is faster than making a view of Python's memory.
_SMALL = 16 * 1024
_SCRATCH_ARRAYS = 16


class GPUQueue(classes.GPUQueue):
    """The queue of a device of the browser."""

    def __init__(self, label: str, internal: Any, device: Any) -> None:
        super().__init__(label, internal, device)
        self._scratch: dict[int, Any] = {}

    def submit(self, command_buffers: Sequence[classes.GPUCommandBuffer]) -> None:
        """As in wgpu-py."""
        _submit(self._internal, *[commands._internal for commands in command_buffers])
        for commands in command_buffers:
            commands._used = None  # the browser keeps alive what is in flight

    def write_buffer(
        self, buffer: classes.GPUBuffer, buffer_offset: int, data: Any, data_offset: int = 0, size: int | None = None
    ) -> None:
        """As in wgpu-py; `data_offset` and `size` in bytes. Raises ValueError for a range outside the data or the
        buffer, or not a multiple of 4."""
        view = memoryview(data).cast("B")
        size = view.nbytes - data_offset if not size else int(size)
        if not 0 <= data_offset <= view.nbytes or not 0 <= size <= view.nbytes - data_offset:
            raise ValueError(f"the data has {view.nbytes} bytes; cannot write {size} from byte {data_offset} on")
        if not 0 <= buffer_offset <= buffer.size - size:
            raise ValueError(f"the buffer has {buffer.size} bytes; cannot write {size} at byte {buffer_offset}")
        if size % 4 or buffer_offset % 4:
            raise ValueError(f"offset and size must be multiples of 4, not {buffer_offset} and {size}")
        if size == view.nbytes and size <= _SMALL:
            scratch = self._scratch.get(size)
            if scratch is None:
                if len(self._scratch) >= _SCRATCH_ARRAYS:
                    self._scratch.clear()
                scratch = self._scratch[size] = _new_bytes(size)
            scratch.assign(view)
            _write_small(self._internal, buffer._internal, buffer_offset, scratch)
        else:
            _write_buffer(self._internal, buffer._internal, buffer_offset, view, data_offset, size)

    def read_buffer_async(
        self, buffer: classes.GPUBuffer, buffer_offset: int = 0, size: int | None = None
    ) -> GPUPromise[memoryview]:
        """The async `read_buffer` that wgpu-py lacks: the buffer's bytes once all submitted work is done.

        Raises ValueError for a range outside the buffer or not a multiple of 4; in the promise, earlier errors of the
        device (see GPUDevice).
        """
        size = buffer.size - buffer_offset if not size else int(size)
        if not 0 <= buffer_offset <= buffer.size - size:
            raise ValueError(f"the buffer has {buffer.size} bytes; cannot read {size} at byte {buffer_offset}")
        if size % 4 or buffer_offset % 4:
            raise ValueError(f"offset and size must be multiples of 4, not {buffer_offset} and {size}")
        promise = bridge.readBuffer(self._device._watch, buffer._internal, buffer_offset, size)

        def download(staging: Any) -> memoryview:
            data = bytearray(size)
            try:
                _bytes_of(staging).assign_to(data)
            finally:
                _destroy(staging)
            return memoryview(data)

        return GPUPromise("read_buffer", download, js=promise, keepalive=buffer)

    def read_buffer(self, buffer: classes.GPUBuffer, buffer_offset: int = 0, size: int | None = None) -> memoryview:
        """As in wgpu-py."""
        return self.read_buffer_async(buffer, buffer_offset, size).sync_wait()

    def on_submitted_work_done_async(self) -> GPUPromise[None]:
        """Resolves when all submitted work is done; raises earlier errors of the device (see GPUDevice)."""
        return GPUPromise(
            "on_submitted_work_done", lambda _: None, js=bridge.workDone(self._device._watch, self._internal)
        )

    def on_submitted_work_done_sync(self) -> None:
        """The same, but blocking."""
        self.on_submitted_work_done_async().sync_wait()

    write_texture = unsupported("GPUQueue.write_texture")
    read_texture = unsupported("GPUQueue.read_texture")
