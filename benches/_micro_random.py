"""Random layers and whole random networks on emulated boards: how many outputs are not NumPy's byte by byte."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

from tools.boards_in_qemu import EmulatedBoard
from tools.microcontrollers.random_layers import ASSEMBLY_KINDS, assembly_cases, program_of
from tools.microcontrollers.random_networks import KINDS, batch_of, networks
from tools.microcontrollers.running import wrong_of_batch, wrong_on_board
from tools.micropython_builds import firmware

BATCHES, LAYERS = 20, 500

NETWORKS, AT_ONCE = 500, 100
"""Networks of each kind, and how many of them a board runs in one program."""


def layers() -> Iterator[dict[str, Any]]:
    """Random layers on every board, of seeds never tried before: their number so far, the first seed, and the number of
    outputs that differ from NumPy's."""
    first = secrets.randbelow(1 << 31)
    boards = [EmulatedBoard(name) for name in firmware.BOARDS]
    wrong = dict.fromkeys(firmware.BOARDS, 0)
    for batch in range(BATCHES):
        made = program_of(list(assembly_cases(first + batch, LAYERS)))
        for board in boards:
            wrong[board.board.name] += len(wrong_on_board(board, *made))
        count = (batch + 1) * LAYERS
        print(f"random layers: {count}, seeds from {first} on, wrong: {wrong}", flush=True)
        yield {"layers": count, "kinds": len(ASSEMBLY_KINDS), "first": first, "wrong": wrong}


def whole_networks() -> Iterator[dict[str, Any]]:
    """Random networks of every kind on every board, of seeds never tried before: the first seed, and of each kind their
    number so far, their layers, and the number of those with outputs that differ from NumPy's."""
    first = secrets.randbelow(1 << 31)
    boards = [EmulatedBoard(name) for name in firmware.BOARDS]
    kinds: dict[str, Any] = {}
    for kind in KINDS:
        found = kinds[kind] = {"networks": 0, "layers": 0, "wrong": dict.fromkeys(firmware.BOARDS, 0)}
        drawn = networks(kind, first)
        while found["networks"] < NETWORKS:
            batch = batch_of([next(drawn) for _ in range(AT_ONCE)])
            for board in boards:
                found["wrong"][board.board.name] += len(wrong_of_batch(board, batch))
            found["networks"] += AT_ONCE
            found["layers"] += len(batch.program.steps)
            print(f"random networks from seed {first} on: {kind}, {found}", flush=True)
        yield {"first": first, "kinds": kinds}


LAYERS_TEXT = """
## Random layers

{layers:,} layers with dimensions, weights and inputs at random on each board (`--boards layers`), {each} of each of
{kinds} kinds, from seed {first} on, which is new in each run. Outputs that are not NumPy's byte by byte:
{wrong}.
"""

NETWORKS_TEXT = """
## Random networks

Whole networks of several layers on each board, from seed {first} on, which is new in each run (`--boards random`):
dense ones; convolutions with pools; depthwise convolutions with sums and joins; GRU, LSTM and RNN, some of which keep
their state; streams, called 20 times; 16-bit activations; float32. Networks with an output that is not NumPy's byte by
byte, in any of three calls:

| kind | networks | layers | {titles} |
|---|---:|---:|{rule}
"""


def layers_text(found: dict[str, Any]) -> str:
    """What `layers` found."""
    wrong = ", ".join(f"{count} on {firmware.BOARDS[name].title}" for name, count in found["wrong"].items())
    count, kinds = found["layers"], found["kinds"]
    return LAYERS_TEXT.format(layers=count, each=count // kinds, kinds=kinds, first=found["first"], wrong=wrong)


def networks_text(found: dict[str, Any]) -> str:
    """What `whole_networks` found."""
    titles = " | ".join(board.title for board in firmware.BOARDS.values())
    text = NETWORKS_TEXT.format(first=found["first"], titles=titles, rule="---:|" * len(firmware.BOARDS))
    for kind, each in found["kinds"].items():
        wrong = " | ".join(str(each["wrong"][name]) for name in firmware.BOARDS)
        text += f"| {kind} | {each['networks']} | {each['layers']:,} | {wrong} |\n"
    return text
