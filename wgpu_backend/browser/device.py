"""The device: creates everything else, reports errors and its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyodide.ffi import JsException, create_proxy
from wgpu import classes, flags

from .bridge import bridge
from .buffer import GPUBuffer
from .encoder import GPUCommandEncoder, GPUQuerySet
from .errors import named, translate, unsupported
from .objects import to_flags
from .pipeline import (
    GPUBindGroup,
    GPUBindGroupLayout,
    GPUComputePipeline,
    GPUPipelineLayout,
    GPUShaderModule,
    bind_group_entries,
    bind_group_layout_entries,
    compute_stage,
    pipeline_layout_of,
)
from .promise import GPUPromise

_create_buffer = bridge.createBuffer
_create_buffer_with_data = bridge.createBufferWithData
_create_bind_group = bridge.createBindGroup
_create_command_encoder = bridge.createCommandEncoder


class GPUDevice(classes.GPUDevice):
    """A device of the browser.

    WebGPU reports errors after the call that caused them. Those not caught by an error scope are raised by the next
    wait for this device: `read_buffer`, `map_sync`, `on_submitted_work_done_sync` and their `_async` twins. So is the
    loss of the device, as DeviceLostError.
    """

    _internal: Any

    def __init__(
        self,
        label: str,
        internal: Any,
        adapter: classes.GPUAdapter,
        features: set[str],
        limits: dict[str, int],
        queue: classes.GPUQueue,
    ) -> None:
        super().__init__(label, internal, adapter, features, limits, queue)
        self._watch = bridge.watch(internal)
        self._on_error: Callable[[classes.GPUError], None] | None = None
        self._on_error_proxy: Any = None

    @property
    def wgsl_language_features(self) -> set[str]:
        """The WGSL language extensions of this browser."""
        return set(bridge.languageFeatures(bridge.gpu()))

    # -- buffers --------------------------------------------------------------------------------------------------

    def create_buffer(
        self, *, label: str = "", size: int, usage: int | str, mapped_at_creation: bool = False
    ) -> GPUBuffer:
        """As in wgpu-py; raises GPUOutOfMemoryError if a mapped buffer cannot be allocated."""
        usage = to_flags(flags.BufferUsage, usage)
        size = int(size)
        try:
            js = _create_buffer(self._internal, label, size, usage, bool(mapped_at_creation))
        except JsException as error:
            raise translate(error) from None
        return GPUBuffer(label, js, self, size, usage, "mapped" if mapped_at_creation else "unmapped")

    def create_buffer_with_data(self, *, label: str = "", data: Any, usage: int | str) -> GPUBuffer:
        """As in wgpu-py; crosses to JavaScript once."""
        usage = to_flags(flags.BufferUsage, usage)
        view = memoryview(data).cast("B")
        if not view.nbytes:
            raise ValueError("cannot create a buffer with no data: its size would be 0")
        size = (view.nbytes + 3) & ~3
        try:
            js = _create_buffer_with_data(self._internal, label, size, usage, view)
        except JsException as error:
            raise translate(error) from None
        return GPUBuffer(label, js, self, size, usage, "unmapped")

    # -- shaders, groups, pipelines -------------------------------------------------------------------------------

    def create_shader_module(self, *, label: str = "", code: str, compilation_hints: Any = ()) -> GPUShaderModule:
        """A module of WGSL. Errors in it are not raised here: `get_compilation_info_sync()` reports them, and the next
        wait for the device raises them.

        Raises TypeError for anything but a str: browsers do not accept SPIR-V.
        """
        if not isinstance(code, str):
            raise TypeError(f"a browser takes WGSL source as a str, not {type(code).__name__}")
        return GPUShaderModule(label, bridge.createShaderModule(self._internal, label, code), self)

    def create_bind_group_layout(self, *, label: str = "", entries: Sequence[Any]) -> GPUBindGroupLayout:
        """As in wgpu-py, for buffers."""
        js = bridge.createBindGroupLayout(self._internal, label, *bind_group_layout_entries(entries))
        return GPUBindGroupLayout(label, js, self)

    def create_bind_group(self, *, label: str = "", layout: Any, entries: Sequence[Any]) -> GPUBindGroup:
        """As in wgpu-py, for buffers. The group keeps its buffers alive."""
        flat, buffers = bind_group_entries(entries)
        group = GPUBindGroup(label, _create_bind_group(self._internal, label, layout._internal, *flat), self)
        group._buffers = buffers
        return group

    def create_pipeline_layout(
        self, *, label: str = "", bind_group_layouts: Sequence[Any], immediate_size: int = 0
    ) -> GPUPipelineLayout:
        """As in wgpu-py."""
        layouts = [layout._internal for layout in bind_group_layouts]
        js = bridge.createPipelineLayout(self._internal, label, immediate_size or None, *layouts)
        return GPUPipelineLayout(label, js, self)

    def create_compute_pipeline(self, *, label: str = "", layout: Any, compute: Any) -> GPUComputePipeline:
        """As in wgpu-py. Errors are raised by the next wait for the device."""
        js = bridge.createComputePipeline(self._internal, label, pipeline_layout_of(layout), *compute_stage(compute))
        return GPUComputePipeline(label, js, self)

    def create_compute_pipeline_async(
        self, *, label: str = "", layout: Any, compute: Any
    ) -> GPUPromise[GPUComputePipeline]:
        """As in wgpu-py; several at once are compiled in parallel. Raises GPUPipelineError when awaited, if it is
        faulty."""
        js = bridge.createComputePipelineAsync(self._watch, label, pipeline_layout_of(layout), *compute_stage(compute))
        return GPUPromise("create_compute_pipeline", lambda pipeline: GPUComputePipeline(label, pipeline, self), js=js)

    def create_query_set(self, *, label: str = "", type: str, count: int) -> GPUQuerySet:
        """As in wgpu-py; "timestamp" needs the feature "timestamp-query"."""
        try:
            js = bridge.createQuerySet(self._internal, label, type, int(count))
        except JsException as error:
            raise translate(error) from None
        return GPUQuerySet(label, js, self, type, int(count))

    def create_command_encoder(self, *, label: str = "") -> GPUCommandEncoder:
        """As in wgpu-py."""
        return GPUCommandEncoder(label, _create_command_encoder(self._internal, label), self)

    create_texture = unsupported("GPUDevice.create_texture")
    create_sampler = unsupported("GPUDevice.create_sampler")
    create_render_pipeline = unsupported("GPUDevice.create_render_pipeline")
    create_render_pipeline_async = unsupported("GPUDevice.create_render_pipeline_async")
    create_render_bundle_encoder = unsupported("GPUDevice.create_render_bundle_encoder")

    # -- errors and loss ------------------------------------------------------------------------------------------

    def push_error_scope(self, filter: str) -> None:
        """From here on, catch errors of one kind ("validation", "out-of-memory", "internal")."""
        try:
            bridge.pushErrorScope(self._internal, filter)
        except JsException as error:
            raise translate(error) from None

    def pop_error_scope_async(self) -> GPUPromise[classes.GPUError | None]:
        """End the innermost scope: the first error it caught, or None.

        Raises (in the promise) GPUInternalError if there is no scope.
        """

        def caught(reported: Any) -> classes.GPUError | None:
            return named(*reported) if reported.length else None

        return GPUPromise("pop_error_scope", caught, js=bridge.popErrorScope(self._internal))

    def pop_error_scope_sync(self) -> classes.GPUError | None:
        """The same, but blocking."""
        return self.pop_error_scope_async().sync_wait()

    @property
    def onuncapturederror(self) -> Callable[[classes.GPUError], None] | None:
        """A function called with each uncaught error as it arrives; the next wait then does not raise it."""
        return self._on_error

    @onuncapturederror.setter
    def onuncapturederror(self, handler: Callable[[classes.GPUError], None] | None) -> None:
        old, self._on_error_proxy = self._on_error_proxy, None
        self._on_error = handler
        if handler is not None:
            self._on_error_proxy = create_proxy(lambda name, message: handler(named(name, message)))
        bridge.onError(self._watch, self._on_error_proxy)
        if old is not None:
            old.destroy()

    def _get_lost_async(self) -> GPUPromise[classes.GPUDeviceLostInfo]:
        return GPUPromise("lost", lambda reported: classes.GPUDeviceLostInfo(*reported), js=bridge.lost(self._internal))

    @property
    def lost_async(self) -> GPUPromise[classes.GPUDeviceLostInfo]:
        """Resolves when the device is lost, with the reason."""
        return self._get_lost_async()

    @property
    def lost_sync(self) -> classes.GPUDeviceLostInfo:
        """The same, but blocking."""
        return self._get_lost_async().sync_wait()

    lost = lost_async

    def destroy(self) -> None:
        """Free the device and all its memory at once. Later waits raise DeviceLostError."""
        bridge.destroy(self._internal)

    def _release(self) -> None:
        # All objects of the device are gone too, as each holds a reference to it.
        internal, self._internal = self._internal, None
        if internal is not None:
            self.onuncapturederror = None
            bridge.unwatch(self._watch)
            bridge.destroy(internal)
