"""Killed saves and generations leave the old files or the new ones, never a mixture."""

from __future__ import annotations

import os
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import emberlet as el
from emberlet.burnpack import Burnpack
from emberlet.errors import EmberletError
from emberlet.host.burnpack_writer import save

from soak.killing import killed, said
from soak.telling import Clock, Told
from tools.paths import ROOT

WHAT = "SIGKILL at a random moment of saving a burnpack, or of generating a model over another one"
NEEDS = ()
SHARE = 3

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"


def run(clock: Clock, choose: random.Random) -> Told:
    from emberlet.codegen import generate

    told = Told("kills")
    if not hasattr(os, "fork"):
        told.facts["left out"] = "this system has no fork"
        return told
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        versions = _versions(folder)
        values = [el.full((256, 1024), float(number), backend="numpy") for number in range(2)]
        number = 0

        def save_one() -> None:
            save(str(folder / "saved.bpk"), {f"t{i}": values[number % 2] for i in range(3)} | {"n": values[0]})

        def generate_one() -> None:
            generate(versions[number % 2], folder / "generated", force=True)

        kinds: dict[str, tuple[Callable[[], None], Callable[[Path], str]]] = {
            "save": (save_one, _look_at_saved),
            "generate": (generate_one, _look_at_generated),
        }
        took = {}
        for kind, (work, _) in kinds.items():
            work()
            begin = time.perf_counter()
            work()
            took[kind] = time.perf_counter() - begin
        by_kind = dict.fromkeys(kinds, 0)
        while clock and len(told.failures) < 20:
            number += 1
            kind = choose.choice(list(kinds))
            work, look = kinds[kind]
            told.tried += killed(work, choose.uniform(0.0, 1.5 * took[kind] + 0.01), folder / "error")
            by_kind[kind] += 1
            if text := said(folder / "error"):
                told.failures.append(f"{kind}: {text}")
            try:
                wrong = look(folder)
            except (OSError, EmberletError) as error:
                wrong = repr(error)
            if wrong:
                told.failures.append(f"{kind}: {wrong}")
            told.checked += 1
        for work, _ in kinds.values():  # the next one that succeeds removes leftover files
            work()
        told.facts["moments by kind"] = by_kind
        stale = [file.name for file in folder.rglob(".emberlet-*")]
        told.facts["temporary files of killed saves left"] = len(stale)
        if stale:
            told.failures.append(f"left lying about: {stale[:8]}")
    return told


def _versions(folder: Path) -> list[Path]:
    """Two models whose layers have other names."""
    import onnx

    out = []
    for label in ("a", "b"):
        model = onnx.load(DIGITS)
        for weight in model.graph.initializer:
            weight.name = label + weight.name
        for node in model.graph.node:
            known = {weight.name[1:] for weight in model.graph.initializer}
            node.input[:] = [label + name if name in known else name for name in node.input]
        out.append(folder / label / "digits.onnx")
        out[-1].parent.mkdir()
        onnx.save(model, out[-1])
    return out


def _look_at_saved(folder: Path) -> str:
    pack = Burnpack.from_file(str(folder / "saved.bpk"))
    if not pack.verify():
        return "a saved burnpack has no checksums"
    return "" if len({bytes(pack.raw(f"t{i}")) for i in range(3)}) == 1 else "a saved burnpack mixes two versions"


def _look_at_generated(folder: Path) -> str:
    weights = folder / "generated" / "digits.bpk"
    pack = Burnpack.from_file(str(weights))
    pack.verify()
    source = (folder / "generated" / "digits.py").read_text(encoding="utf-8")
    layers = set(re.findall(r"self\.(\w+) = nn\.(?:Conv2d|Linear)", source))
    there = {name.partition(".")[0] for name in pack.tensors}
    return "" if layers == there and layers else f"the module has {sorted(layers)}, the weights {sorted(there)}"
