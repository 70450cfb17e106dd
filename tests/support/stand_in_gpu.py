"""A stand-in for the library that drives a GPU, which notes every call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

SOFTWARE = {"device": "", "description": "", "architecture": "", "adapter_type": "CPU"}
REAL = {"device": "RTX", "description": "a card", "architecture": "", "adapter_type": "DiscreteGPU"}
LIMITS = {
    "max-storage-buffer-binding-size": 1024,
    "max-buffer-size": 2048,
    "max-compute-workgroup-storage-size": 16384,
    "max-storage-buffers-per-shader-stage": 8,
}


class Buffer:
    def __init__(self, raw: Raw, number: int, size: int) -> None:
        self.raw, self.number, self.size = raw, number, size
        self.content = bytearray(size)

    def destroy(self) -> None:
        self.raw.said.append(f"destroy buffer {self.number}")

    def __repr__(self) -> str:
        return f"buffer {self.number}"


class Promise:
    """Of a pipeline; `Raw.late` has the errors."""

    def __init__(self, raw: Raw, label: str) -> None:
        self.raw, self.label = raw, label

    def sync_wait(self) -> Any:
        if self.label in self.raw.late:
            raise RuntimeError(self.raw.late[self.label])
        return SimpleNamespace(get_bind_group_layout=lambda n: f"layout {n} of {self.label}")

    async def _wait(self) -> Any:
        return self.sync_wait()

    def __await__(self) -> Any:
        return self._wait().__await__()


class Raw:
    """A GPU's library; `said` has its calls. refuse: an error that every call raises."""

    def __init__(self, info: dict[str, Any] = REAL, **changed: Any) -> None:
        self.adapter_info = info
        self.features = changed.pop("features", ("subgroups",))
        self.limits = LIMITS | changed
        self.said: list[str] = []
        self.buffers: list[Buffer] = []
        self.refuse: Exception | None = None
        self.late: dict[str, str] = {}  # label -> the error that its compilation ends with; "message": reported later
        self.queue = self

    def say(self, text: str) -> None:
        if self.refuse:
            raise self.refuse
        self.said.append(text)

    def create_buffer(self, size: int, usage: int) -> Buffer:
        self.say(f"buffer {len(self.buffers)} of {size}, usage {usage:#x}")
        self.buffers.append(Buffer(self, len(self.buffers), size))
        return self.buffers[-1]

    def write_buffer(self, buffer: Buffer, at: int, data: Any) -> None:
        self.say(f"write {len(data)} to {buffer} at {at}")
        buffer.content[at : at + len(data)] = bytes(data)

    def read_buffer(self, buffer: Buffer, at: int, size: int) -> bytes:
        self.say(f"read {size} of {buffer} from {at}")
        return bytes(buffer.content[at : at + size])

    async def read_buffer_async(self, buffer: Buffer, at: int, size: int) -> bytes:
        self.said.append("awaited")
        return self.read_buffer(buffer, at, size)

    def create_command_encoder(self) -> Any:
        return SimpleNamespace(clear_buffer=lambda b: self.say(f"clear {b}"), finish=lambda: "commands")

    def submit(self, commands: list[Any]) -> None:
        self.say(f"submit {commands}")

    def create_shader_module(self, label: str, code: str) -> str:
        self.say(f"module {label}: {code!r}")
        return f"module {label}"

    def create_compute_pipeline(self, label: str, layout: str, compute: dict[str, str]) -> Any:
        self.say(f"pipeline {label} {layout} {compute}")
        return SimpleNamespace(get_bind_group_layout=lambda n: f"layout {n} of {label}")

    def create_compute_pipeline_async(self, label: str, layout: str, compute: dict[str, str]) -> Promise:
        self.say(f"start {label} {layout} {compute}")
        return Promise(self, label)

    def on_submitted_work_done_sync(self) -> None:
        if "message" in self.late:
            raise RuntimeError(self.late["message"])
        self.said.append("waited")

    async def on_submitted_work_done_async(self) -> None:
        self.on_submitted_work_done_sync()

    def create_bind_group(self, layout: Any, entries: list[Any]) -> Any:
        return layout, entries

    def destroy(self) -> None:
        self.said.append("destroy device")
