"""Shader modules, layouts, bind groups and pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wgpu import classes, flags

from ...errors import UnsupportedError
from .bridge import bridge
from .objects import check_struct, to_flags
from .promise import GPUPromise


class GPUShaderModule(classes.GPUShaderModule):
    """A module of WGSL."""

    def get_compilation_info_async(self) -> GPUPromise[GPUCompilationInfo]:
        """The messages of the browser's compiler about the module."""
        return GPUPromise(
            "get_compilation_info",
            lambda found: GPUCompilationInfo([GPUCompilationMessage(*message) for message in found.to_py()]),
            js=bridge.compilationInfo(self._internal),
        )

    def get_compilation_info_sync(self) -> GPUCompilationInfo:
        """The same, but blocking."""
        return self.get_compilation_info_async().sync_wait()


class GPUCompilationMessage(classes.GPUCompilationMessage):
    """One message: `type` ("error", "warning", "info"), `message`, and its position: `line_num` and `line_pos` count
    from 1, `offset` and `length` are in UTF-16 units; all four are 0 if it has no position."""

    def __init__(self, type: str, message: str, line_num: int, line_pos: int, offset: int, length: int) -> None:
        self._fields = (type, message, line_num, line_pos, offset, length)

    type = property(lambda self: self._fields[0])
    message = property(lambda self: self._fields[1])
    line_num = property(lambda self: self._fields[2])
    line_pos = property(lambda self: self._fields[3])
    offset = property(lambda self: self._fields[4])
    length = property(lambda self: self._fields[5])

    def __repr__(self) -> str:
        return f"{self.line_num}:{self.line_pos} {self.type}: {self.message}"


class GPUCompilationInfo(classes.GPUCompilationInfo):
    """The messages about one module."""

    def __init__(self, messages: list[GPUCompilationMessage]) -> None:
        self._messages = messages

    @property
    def messages(self) -> list[GPUCompilationMessage]:
        """In the compiler's order; empty for a clean module."""
        return self._messages


class GPUBindGroupLayout(classes.GPUBindGroupLayout):
    """The layout of a group."""


class GPUBindGroup(classes.GPUBindGroup):
    """A group of buffers, which it keeps alive."""

    _buffers: tuple[classes.GPUBuffer, ...] = ()


class GPUPipelineLayout(classes.GPUPipelineLayout):
    """The layouts of a pipeline's groups."""


class GPUComputePipeline(classes.GPUComputePipeline):
    """A compute pipeline."""

    def get_bind_group_layout(self, index: int) -> GPUBindGroupLayout:
        """The layout of one of its bind groups, derived from the shader."""
        return GPUBindGroupLayout("", bridge.bindGroupLayoutOf(self._internal, index), self._device)


def bind_group_layout_entries(entries: Sequence[Any]) -> list[Any]:
    """(binding, visibility, type, dynamic offset, smallest size) of each entry, in one flat list."""
    flat: list[Any] = []
    for entry in entries:
        entry = check_struct("BindGroupLayoutEntry", entry)
        if entry.get("buffer") is None:
            raise UnsupportedError(
                f"binding {entry['binding']} of a bind group layout is no buffer: emberlet's backend for wgpu-py in "
                "the browser covers buffers only"
            )
        buffer = check_struct("BufferBindingLayout", entry["buffer"])
        flat += (
            int(entry["binding"]),
            to_flags(flags.ShaderStage, entry["visibility"]),
            buffer.get("type", "uniform"),
            bool(buffer.get("has_dynamic_offset", False)),
            buffer.get("min_binding_size", 0) or 0,
        )
    return flat


def bind_group_entries(entries: Sequence[Any]) -> tuple[list[Any], tuple[classes.GPUBuffer, ...]]:
    """(binding, buffer, offset, size) of each entry in one flat list, and the buffers."""
    flat: list[Any] = []
    buffers = []
    for entry in entries:
        binding, resource = entry["binding"], entry["resource"]
        if isinstance(resource, classes.GPUBuffer):
            flat += (binding, resource._internal, 0, None)
            buffers.append(resource)
            continue
        resource = check_struct("BufferBinding", resource)
        buffer = resource["buffer"]
        flat += (binding, buffer._internal, resource.get("offset", 0), resource.get("size"))
        buffers.append(buffer)
    return flat, tuple(buffers)


def pipeline_layout_of(layout: Any) -> Any:
    """A pipeline layout's JavaScript object, or "auto"."""
    if isinstance(layout, GPUPipelineLayout):
        return layout._internal
    if layout == "auto":
        return "auto"
    raise TypeError(f"a pipeline's layout is a GPUPipelineLayout or 'auto', not {layout!r}")


def compute_stage(compute: Any) -> tuple[Any, str | None, Any]:
    """(module, entry point, constants) of a ProgrammableStage."""
    stage = check_struct("ProgrammableStage", compute)
    constants = stage.get("constants") or None
    if constants:
        constants = bridge.record(*(part for key, value in constants.items() for part in (str(key), float(value))))
    return stage["module"]._internal, stage.get("entry_point") or None, constants
