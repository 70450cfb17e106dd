"""Killed commands leave the old files or the new ones, never a mixture."""

from __future__ import annotations

import contextlib
import io
import os
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from emberlet.errors import EmberletError

from soak.killing import killed, said
from soak.models_of_digits import versions
from soak.telling import Clock, Told
from tools.paths import ROOT

WHAT = "SIGKILL at a random moment of each command that writes, and of saving a session's states"
NEEDS = ("mpy-cross",)
SHARE = 3

MODELS = ROOT / "tests" / "models"

# what is killed -> (its words, the file or folder that it writes); MODEL and OUT stand for a version and for the latter
COMMANDS = {
    "compile, plan": ("compile MODEL --out OUT", "m.plan"),
    "compile, q8": ("compile MODEL --out OUT --weights q8", "q8.plan"),
    "compile, wasm": ("compile MODEL --out OUT", "m.wasm"),
    "convert, bpk": ("convert MODEL OUT --overwrite", "m.bpk"),
    "convert, safetensors": ("convert MODEL OUT --overwrite", "m.safetensors"),
    "convert, npz": ("convert MODEL OUT --overwrite", "m.npz"),
    "convert --shard": ("convert MODEL OUT --overwrite --shard 8K", "parts.safetensors"),
    "run": ("run MODEL --input image=IMAGE --backend numpy --out OUT", "y.npz"),
    "graph": ("graph MODEL --out OUT --dim batch=MORE", "g.svg"),
    "codegen": ("codegen MODEL --name digits --force --out OUT", "generated"),
    "quantize": ("quantize MODEL --calibration IMAGE --name digits --force --time none --out OUT", "quantized"),
    "micro build": ("micro build MODEL --name digits --out OUT --weights MORE", "dist"),
}
SESSION = "session"


def run(clock: Clock, choose: random.Random) -> Told:
    told = Told("kills")
    if not hasattr(os, "fork"):
        told.facts["left out"] = "this system has no fork"
        return told
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = {kind: _command(kind, folder) for kind in COMMANDS} | {SESSION: _session(folder)}
        wanted = {kind: _both(work, look) for kind, (work, look) in kinds.items()}
        took = {kind: _seconds(work) for kind, (work, _) in kinds.items()}
        by_kind, new = dict.fromkeys(kinds, 0), 0
        number = 0
        while (clock.times is None or min(by_kind.values()) < clock.times) and clock and len(told.failures) < 20:
            number += 1
            kind = min(kinds, key=lambda k: (by_kind[k], choose.random()))
            work, look = kinds[kind]
            before = look()
            version = 1 - wanted[kind].index(before)
            hit = killed(partial(work, version), choose.uniform(0.0, 1.3 * took[kind] + 0.01), folder / "error")
            told.tried += hit
            by_kind[kind] += hit
            if text := said(folder / "error"):
                told.failures.append(f"{kind}: {text}")
            try:
                found = look()
            except (OSError, EmberletError, ValueError, KeyError) as error:
                told.failures.append(f"{kind}: {error!r}")
                work(version)
                continue
            told.checked += 1
            new += found == wanted[kind][version]
            if found not in wanted[kind]:
                told.failures.append(f"{kind}: neither the old files nor the new ones")
                work(version)
        for work, _ in kinds.values():  # the next one that succeeds removes leftover files
            work(0)
        told.facts |= {"kills by kind": by_kind, "found new": new}
        told.failures += [f"left lying about: {file.name}" for file in folder.rglob(".emberlet-*")]
    return told


def _both(work: Callable[[int], None], look: Callable[[], Any]) -> list[Any]:
    """What the folder holds with each version."""
    found = []
    for version in (1, 0):
        work(version)
        found.insert(0, look())
    assert found[0] != found[1], found[0]
    return found


def _seconds(work: Callable[[int], None]) -> float:
    begin = time.perf_counter()
    work(0)
    return time.perf_counter() - begin


def _command(kind: str, folder: Path) -> tuple[Callable[[int], None], Callable[[], Any]]:
    """(do it with version 0 or 1, what it has written)"""
    from emberlet.host.cli import main

    words, name = COMMANDS[kind]
    models, image = versions(folder)

    def work(version: int) -> None:
        more = {"graph": ["1", "2"], "micro build": ["file", "module --layers"]}.get(kind, ["", ""])[version]
        text = words.replace("MODEL", str(models[version])).replace("OUT", str(folder / name)).replace("MORE", more)
        with contextlib.redirect_stdout(io.StringIO()):
            status = main(text.replace("IMAGE", str(image)).split())
        assert status == 0, text

    return work, lambda: _contents(folder / name)


def _contents(path: Path) -> Any:
    """What readers find: tensors, or the bytes of files."""
    from emberlet import store
    from emberlet.burnpack import Burnpack
    from emberlet.host.folders.journals import current

    if path.name == "dist":
        return _build(path)
    if path.name in ("generated", "quantized"):
        pack = Burnpack.from_file(path / "digits.bpk")
        pack.verify()
        # The module's comments name its model; a mixture has the comments of one and the weights of the other.
        return (path / "digits.py").read_bytes(), {name: bytes(pack.raw(name)) for name in pack.tensors}
    if path.name.startswith("parts"):
        path = path.with_name("parts.safetensors.index.json")
    if path.suffix in (".json", ".npz", ".safetensors", ".bpk"):
        return {name: np.asarray(s.tensor()).tobytes() for name, s in store.open(path).items()}
    return Path(current(path)).read_bytes()


def _build(out: Path) -> dict[str, str]:
    """The digests of a build, which its files have too."""
    from emberlet.host.folders.journals import current
    from emberlet.micro.builder.deploy import commands
    from emberlet.micro.builder.written import read_about

    written: dict[str, str] = read_about(out)["written"]
    for name, digest in written.items():
        if sha256(Path(current(out / name)).read_bytes()).hexdigest() != digest:
            raise ValueError(f"{name} is of another build")
    assert all(Path(word).exists() for step in commands(out) for word in step if word.startswith(str(out)))
    return written


def _session(folder: Path) -> tuple[Callable[[int], None], Callable[[], Any]]:
    """The states of a recurrent model after one more step."""
    from emberlet import codegen
    from emberlet.burnpack import Burnpack
    from emberlet.host.burnpack_writer import save

    session = codegen.load(MODELS / "lstm_step" / "model.onnx", "numpy").session()
    path = folder / "session.bpk"
    states = []
    for _ in range(2):
        kept = [row[0] for row in session.model.STATE]
        shapes = [shape for name, _, shape in session.model.INPUTS if name not in kept]
        session.step(*[np.full([d if isinstance(d, int) else 1 for d in shape], 0.1, np.float32) for shape in shapes])
        states.append({name: session.state(name) for name in kept})

    def work(version: int) -> None:
        save(path, states[version])

    def look() -> dict[str, bytes]:
        pack = Burnpack.from_file(path)
        pack.verify()
        return {name: bytes(pack.raw(name)) for name in pack.tensors}

    return work, look
