"""Simulated WebAssembly threads: the parts of each group of steps run one after the other, in a random order.

wasmtime's Python package has no shared memory. Whether kernels may be divided does not depend on it: a part that read
what another part of the same group writes, or that changed a sum, gives other bytes in some order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import emberlet
import pytest
import wasmtime
from emberlet.wgpu_backend.wasm import engine, threads
from emberlet.wgpu_backend.wasm.addresses import SIZES
from emberlet.wgpu_backend.wasm.engine.desktop import WasmtimeInstance, WasmtimeModule
from emberlet.wgpu_backend.wasm.image import Image
from emberlet.wgpu_backend.wasm.kernels import split


class Divided(WasmtimeModule):
    """A module whose instances run everything twice: alone, and in parts whose results must be the same bytes."""

    images: dict[bytes, Image] = {}  # noqa: RUF012
    files: list[tuple[bytes, Image, Any]] = []  # noqa: RUF012  # how a file begins, and the data in it
    shared = 0  # steps that ran in parts
    most = threads.MOST * threads.RANGES

    def __init__(self, source: bytes) -> None:
        source = bytes(source)
        self.image = self.images.get(source)
        data: Any = ()
        for start, image, found in self.files:
            if source.startswith(start):
                self.image, data = image, found
        super().__init__(self.image.open_module(data) if self.image else source)

    def instance(self) -> WasmtimeInstance:
        return DividedInstance(self)


class DividedInstance(WasmtimeInstance):
    def __init__(self, module: Divided) -> None:
        super().__init__(module)
        self.image = module.image
        self.exports = wasmtime.Instance(self.store, module.module, []).exports(self.store)
        self.memory, self.function = self.exports["memory"], self.exports["run"]
        self.random = random.Random(len(Divided.images))

    def number(self, n: Any) -> int:
        """A number, or the value of an open size in this call."""
        return n if type(n) is int else int.from_bytes(self.read(SIZES + 4 * n.scope.place(n.number), 4), "little")

    def ranges(self, step: Any) -> list[tuple[Any, int, int]]:
        """A step's ranges of its loop, with the step."""
        assert self.image
        f = self.image.plan.kernels[step.kernel][1]
        parts = self.random.randint(2, Divided.most) if split.shares(f) and self.image.threads > 1 else 1
        Divided.shared += parts > 1
        steps = self.number(f.steps)
        return [(step, n * steps // parts, (n + 1) * steps // parts) for n in range(parts)]

    def run(self) -> None:
        image = self.image
        if image is None:
            super().run()
            return
        before = self.read(SIZES, image.scratch - SIZES)
        super().run()
        alone = self.read(SIZES, image.scratch - SIZES)
        self.write(SIZES, before)
        apart = (image.scratch_room + 63) // 64 * 64
        for group in image.groups:
            ranges = [one for at in group for one in self.ranges(image.plan.steps[at])]
            if image.threads > 1 and split.shares(image.plan.kernels[image.plan.steps[group[0]].kernel][1]):
                self.random.shuffle(ranges)
            for n, (step, first, last) in enumerate(ranges):
                kernel: Any = self.exports[f"kernel{step.kernel}"]
                places = [image.addresses[b] for b in step.buffers]
                kernel(self.store, *places, image.scratch + n % threads.MOST * apart, first, last)
        assert self.read(SIZES, image.scratch - SIZES) == alone, [
            image.plan.kernels[s.kernel][1].name for s in image.plan.steps
        ]


@contextmanager
def in_parts() -> Iterator[type[Divided]]:
    """While it is open, the wasm backend divides every loop that threads may share, however short; so do files that are
    written and loaded meanwhile."""
    plain, file = Image.__init__, Image.file

    def remember(self: Image, *given: Any, **named: Any) -> None:
        plain(self, *given, **named)
        Divided.images[self.module] = self

    def remember_file(self: Image, custom: Any, data: Any) -> Any:
        written = file(self, custom, data)
        Divided.files.append((written, self, data))
        return written

    plans: Any = emberlet.get_backend("wasm")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Image, "__init__", remember)
        patched.setattr(Image, "file", remember_file)
        patched.setattr(engine, "compiled", Divided)
        patched.setattr(engine, "opened", Divided)
        patched.setattr(split, "LEAST_WORK", 0)
        patched.setattr(split, "LEAST_SAVED", -(1 << 40))
        patched.setattr(Divided, "images", {})
        patched.setattr(Divided, "files", [])
        patched.setattr(Divided, "shared", 0)
        plans._plans.clear()
        yield Divided
    plans._plans.clear()
