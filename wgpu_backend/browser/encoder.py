"""Recording commands: the command encoder, the compute pass, query sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyodide.ffi import JsException
from wgpu import classes

from .bridge import bridge
from .errors import translate, unsupported
from .objects import check_struct

_set_pipeline = bridge.setPipeline
_set_bind_group = bridge.setBindGroup
_set_bind_group_offsets = bridge.setBindGroupOffsets
_dispatch = bridge.dispatch
_end = bridge.end
_begin_compute_pass = bridge.beginComputePass
_copy_buffer_to_buffer = bridge.copyBufferToBuffer
_finish = bridge.finish


class _DebugCommands:
    """Debug groups and markers."""

    _internal: Any

    def push_debug_group(self, group_label: str) -> None:
        """Begin a named group in the command stream."""
        bridge.pushDebugGroup(self._internal, group_label)

    def pop_debug_group(self) -> None:
        """End the innermost group."""
        bridge.popDebugGroup(self._internal)

    def insert_debug_marker(self, marker_label: str) -> None:
        """Leave a named mark in the command stream."""
        bridge.insertDebugMarker(self._internal, marker_label)


class GPUQuerySet(classes.GPUQuerySet):
    """A set of queries."""

    def destroy(self) -> None:
        """Free its memory at once."""
        if self._internal is not None:
            bridge.destroy(self._internal)


class GPUCommandBuffer(classes.GPUCommandBuffer):
    """Recorded commands, to be submitted once; until then they keep the objects that they use alive."""

    _used: list[Any] | None = None


class GPUCommandEncoder(_DebugCommands, classes.GPUCommandEncoder):
    """Records commands."""

    def __init__(self, label: str, internal: Any, device: Any) -> None:
        super().__init__(label, internal, device)
        self._used: list[Any] = []  # buffers and groups, kept alive until submission

    def begin_compute_pass(self, *, label: str = "", timestamp_writes: Any = None) -> GPUComputePassEncoder:
        """As in wgpu-py; `timestamp_writes` names a query set and the indices at which the pass writes its times."""
        timestamps: tuple[Any, ...] = ()
        if timestamp_writes is not None:
            writes = check_struct("ComputePassTimestampWrites", timestamp_writes)
            query_set = writes["query_set"]
            self._used.append(query_set)
            timestamps = (
                query_set._internal,
                writes.get("beginning_of_pass_write_index"),
                writes.get("end_of_pass_write_index"),
            )
        js = _begin_compute_pass(self._internal, label, *timestamps)
        compute_pass = GPUComputePassEncoder(label, js, self._device)
        compute_pass._used = self._used
        return compute_pass

    def clear_buffer(self, buffer: classes.GPUBuffer, offset: int = 0, size: int | None = None) -> None:
        """As in wgpu-py. Raises ValueError for a misaligned range."""
        if offset % 4 or (size or 0) % 4:
            raise ValueError(f"offset and size must be multiples of 4, not {offset} and {size}")
        self._used.append(buffer)
        bridge.clearBuffer(self._internal, buffer._internal, offset, size)

    def copy_buffer_to_buffer(
        self,
        source: classes.GPUBuffer,
        source_offset: int,
        destination: classes.GPUBuffer,
        destination_offset: int,
        size: int | None = None,
    ) -> None:
        """As in wgpu-py. Raises ValueError for a misaligned range."""
        if source_offset % 4 or destination_offset % 4 or (size or 0) % 4:
            raise ValueError(
                f"offsets and size must be multiples of 4, not {source_offset}, {destination_offset} and {size}"
            )
        self._used += (source, destination)
        _copy_buffer_to_buffer(
            self._internal, source._internal, source_offset, destination._internal, destination_offset, size
        )

    def resolve_query_set(
        self,
        query_set: classes.GPUQuerySet,
        first_query: int,
        query_count: int,
        destination: classes.GPUBuffer,
        destination_offset: int,
    ) -> None:
        """As in wgpu-py."""
        self._used += (query_set, destination)
        bridge.resolveQuerySet(
            self._internal,
            query_set._internal,
            first_query,
            query_count,
            destination._internal,
            destination_offset,
        )

    def finish(self, *, label: str = "") -> GPUCommandBuffer:
        """As in wgpu-py."""
        commands = GPUCommandBuffer(label, _finish(self._internal, label), self._device)
        commands._used, self._used = self._used, []
        return commands

    begin_render_pass = unsupported("GPUCommandEncoder.begin_render_pass")
    copy_buffer_to_texture = unsupported("GPUCommandEncoder.copy_buffer_to_texture")
    copy_texture_to_buffer = unsupported("GPUCommandEncoder.copy_texture_to_buffer")
    copy_texture_to_texture = unsupported("GPUCommandEncoder.copy_texture_to_texture")


class GPUComputePassEncoder(_DebugCommands, classes.GPUComputePassEncoder):
    """Records the commands of a compute pass."""

    _used: list[Any]

    def set_pipeline(self, pipeline: classes.GPUComputePipeline) -> None:
        """As in wgpu-py."""
        _set_pipeline(self._internal, pipeline._internal)

    def set_bind_group(
        self,
        index: int,
        bind_group: classes.GPUBindGroup,
        dynamic_offsets_data: Sequence[int] = (),
        dynamic_offsets_data_start: int | None = None,
        dynamic_offsets_data_length: int | None = None,
    ) -> None:
        """As in wgpu-py."""
        self._used.append(bind_group)
        if not len(dynamic_offsets_data):
            _set_bind_group(self._internal, index, bind_group._internal)
            return
        start, length = dynamic_offsets_data_start, dynamic_offsets_data_length
        if (start is None) != (length is None):
            raise ValueError("dynamic_offsets_data_start and dynamic_offsets_data_length go together")
        offsets = list(dynamic_offsets_data)
        if start is not None and length is not None:
            offsets = offsets[start : start + length]
        _set_bind_group_offsets(self._internal, index, bind_group._internal, *offsets)

    def set_immediates(self, range_offset: int, data: Any, data_offset: int = 0, data_size: int | None = None) -> None:
        """As in wgpu-py; offsets and size in bytes. Raises TypeError if the browser has no immediates."""
        view = memoryview(data).cast("B")
        size = view.nbytes - data_offset if data_size is None else data_size
        try:
            bridge.setImmediates(self._internal, range_offset, view, data_offset, size)
        except JsException as error:
            raise translate(error) from None

    def dispatch_workgroups(
        self, workgroup_count_x: int, workgroup_count_y: int = 1, workgroup_count_z: int = 1
    ) -> None:
        """As in wgpu-py."""
        _dispatch(self._internal, workgroup_count_x, workgroup_count_y, workgroup_count_z)

    def dispatch_workgroups_indirect(self, indirect_buffer: classes.GPUBuffer, indirect_offset: int) -> None:
        """As in wgpu-py."""
        self._used.append(indirect_buffer)
        bridge.dispatchIndirect(self._internal, indirect_buffer._internal, indirect_offset)

    def end(self) -> None:
        """As in wgpu-py."""
        _end(self._internal)
