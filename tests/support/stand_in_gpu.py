"""A stand-in for the library that drives a GPU, which notes every call."""

from __future__ import annotations

from typing import Any

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


class Raw:
    """A GPU's library; `said` has its calls. refuse: an error that every call raises."""

    def __init__(self, info: dict[str, Any] = REAL, **changed: Any) -> None:
        self.adapter_info = info
        self.features = changed.pop("features", ("subgroups",))
        self.limits = LIMITS | changed
        self.said: list[str] = []
        self.buffers: list[Buffer] = []
        self.refuse: Exception | None = None
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

    def submit(self, commands: list[Any]) -> None:
        self.say(f"submit {commands}")

    def destroy(self) -> None:
        self.said.append("destroy device")
