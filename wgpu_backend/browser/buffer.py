"""Buffers: mapping, and their memory."""

from __future__ import annotations

from typing import Any

from wgpu import classes, flags

from .bridge import bridge
from .objects import to_flags
from .promise import GPUPromise, rejected

_map_async = bridge.mapAsync
_mapped_range = bridge.mappedRange
_part = bridge.part
_put = bridge.put
_unmap = bridge.unmap
_destroy = bridge.destroy


class GPUBuffer(classes.GPUBuffer):
    """A buffer of the browser.

    Its GPU memory is freed with the last Python reference, including those of bind groups and recorded commands: the
    browser's own garbage collector does not see how large a buffer is.
    """

    _internal: Any
    _map_state: str

    def __init__(self, label: str, internal: Any, device: Any, size: int, usage: int, map_state: str) -> None:
        super().__init__(label, internal, device, size, usage, map_state)
        self._range: Any = None  # the mapped range: a browser hands it out only once
        self._mapped = (0, size, flags.MapMode.WRITE) if map_state == "mapped" else (0, 0, 0)

    def map_async(self, mode: int | str, offset: int = 0, size: int | None = None) -> GPUPromise[None]:
        """As in wgpu-py. Raises ValueError for a misaligned or too large range.

        In the promise: RuntimeError if it is already mapped, and earlier errors of the device (see GPUDevice).
        """
        mode = to_flags(flags.MapMode, mode)
        offset, size = self._check_range(0 if offset is None else int(offset), size, self._size)
        if self._map_state != "unmapped":
            error = RuntimeError(f"can only map a buffer that is unmapped; this one is {self._map_state}")
            return rejected("buffer.map", error)
        self._map_state = "pending"
        js = _map_async(self._device._watch, self._internal, mode, offset, size)

        def mapped(_: Any) -> None:
            self._map_state = "mapped"
            self._mapped = offset, offset + size, mode

        promise = _MapPromise("buffer.map", mapped, js=js)
        promise._buffer = self
        return promise

    def map_sync(self, mode: int | str, offset: int = 0, size: int | None = None) -> None:
        """The same, but blocking."""
        self.map_async(mode, offset, size).sync_wait()

    def unmap(self) -> None:
        """As in wgpu-py; raises RuntimeError when the buffer is not mapped."""
        if self._map_state != "mapped":
            raise RuntimeError(f"can only unmap a buffer that is mapped; this one is {self._map_state}")
        _unmap(self._internal)
        self._map_state = "unmapped"
        self._mapped = 0, 0, 0
        self._range = None

    def read_mapped(
        self, buffer_offset: int | None = None, size: int | None = None, *, copy: bool = True
    ) -> memoryview:
        """As in wgpu-py, but always a copy: Python cannot see the browser's memory. `copy=False` makes it read-only."""
        start, size = self._mapped_part(buffer_offset, size, flags.MapMode.READ, "read from")
        data = bytearray(size)
        _part(self._range, start, start + size).assign_to(data)
        return memoryview(data) if copy else memoryview(data).toreadonly()

    def write_mapped(self, data: Any, buffer_offset: int | None = None) -> None:
        """As in wgpu-py."""
        view = memoryview(data)
        view = view.cast("B") if view.c_contiguous else memoryview(view.tobytes())
        padded = (view.nbytes + 3) & ~3
        start, _ = self._mapped_part(buffer_offset, padded, flags.MapMode.WRITE, "write to")
        _put(self._range, start, view)

    def destroy(self) -> None:
        """Free its memory at once, even if it is still referenced."""
        if self._internal is not None:
            _destroy(self._internal)

    def _release(self) -> None:
        internal, self._internal = self._internal, None
        if internal is not None:
            _destroy(internal)

    def _mapped_part(self, offset: int | None, size: int | None, mode: int, action: str) -> tuple[int, int]:
        """(start inside the mapped range, size), with the range fetched."""
        if self._map_state != "mapped":
            raise RuntimeError(f"can only {action} a buffer that is mapped; this one is {self._map_state}")
        first, last, mapped_mode = self._mapped
        if not mapped_mode & mode:
            raise RuntimeError(f"can only {action} a buffer that is mapped for it; this one is mapped the other way")
        offset, size = self._check_range(first if offset is None else int(offset), size, last)
        if offset < first:
            raise ValueError(f"the range starts at {offset}, before what is mapped ({first} to {last})")
        if self._range is None:
            self._range = _mapped_range(self._internal, first, last - first)
        return offset - first, size

    def _check_range(self, offset: int, size: int | None, end: int) -> tuple[int, int]:
        size = end - offset if size is None else int(size)
        if offset < 0 or offset % 8:
            raise ValueError(f"the offset must be a multiple of 8 and not negative, not {offset}")
        if size < 1 or size % 4:
            raise ValueError(f"the size must be a multiple of 4 and larger than 0, not {size}")
        if offset + size > end:
            raise ValueError(f"the range {offset} to {offset + size} goes past the end at {end}")
        return offset, size


class _MapPromise(GPUPromise[None]):
    """Resets the buffer to unmapped, not pending, if mapping fails."""

    _buffer: GPUBuffer

    def _set_error(self, error: Any, *, resolve_now: bool = True) -> None:
        self._buffer._map_state = "unmapped"
        super()._set_error(error, resolve_now=resolve_now)
