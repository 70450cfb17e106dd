"""The texts of models' modules, for ports, states and constants of every kind. `UPDATE_SNAPSHOTS=1 pytest` on this file
records them again."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emberlet.micro.builder.assembly.registry import FAMILIES
from emberlet.micro.builder.emit.kernels import kernels_source, listing, machine_code, timed_run
from emberlet.micro.builder.emit.layers import layers_source
from emberlet.micro.builder.emit.model import Pack, Partition, model_source, weights_source
from emberlet.micro.builder.graph import Sums
from emberlet.micro.builder.kernels.layer import dense_view
from emberlet.micro.builder.kernels.state import Keep
from emberlet.micro.builder.program import Port, Program, Step
from support.microcontrollers.described import digest
from support.recorded import assert_recorded

from tools.microcontrollers.random_layers import assembly_cases, program_of

RECORDED = Path(__file__).with_name("recorded_modules.txt")

BYTES = Port("x", (2, 3), 0, 0.125, 100)
OUT = Port("a b", (4,), 6, 0.5, 7, "class")
WORDS = Port("words", (3,), 10, 2.0**-10, 1 << 15, width=2)
CUTS = ((1.5, 2.0), (), (0.25,))


def program(
    inputs: tuple[Port, ...] = (BYTES,), outputs: tuple[Port, ...] = (OUT,), is_float: bool = False, **more: Any
) -> Program:
    layer = Keep("keep it\n", ("x",), "y", (2, 3))
    step = Step(layer, (dense_view((2, 3)),), dense_view((2, 3)), {"i0": 0, "o": 6, "wo": 0, "to": 0})
    weights = np.arange(5).astype(np.float32 if is_float else np.uint8)
    return Program("net", is_float, (step,), inputs, outputs, 40, weights, (1, 2, 1 << 29), **more)


PROGRAMS: dict[str, Program] = {
    "bytes": program(),
    "floats": program(is_float=True),
    "one number": program((replace(BYTES, shape=()),)),
    "several ports": program((BYTES, replace(BYTES, name="z", place=6)), (OUT, replace(OUT, place=12))),
    "several floats": program((BYTES, replace(BYTES, place=6)), (OUT, replace(OUT, place=12)), True),
    "words": program((WORDS,), (replace(WORDS, zero=5),)),
    "whole words": program((replace(WORDS, scale=1, zero=0),), (replace(WORDS, scale=1, zero=9),)),
    "bytes and words": program((BYTES, WORDS), (WORDS, OUT, replace(WORDS, place=30))),
    "uint8": program((replace(BYTES, integer=0),), (replace(OUT, integer=0),)),
    "int8": program((replace(BYTES, integer=-128),), (replace(OUT, integer=-128),)),
    "int8 in floats": program((replace(BYTES, integer=-128),), (replace(OUT, integer=0),), True),
    "labels": program((BYTES,), (OUT, replace(OUT, labels=("cat", "dog")))),
    "a decision": program((BYTES,), (OUT, replace(OUT, labels=(3, 4), decides=True)), True),
    "a state": program(states=((20, 4, (128,)), (24, 6, (0, 128)))),
    "a state of floats": program(is_float=True, states=((20, 4, (0.5,)),)),
    "a kept tensor": program(kept=((20, 4, (1, 2)),)),
    "a stream": program(kept=((20, 4, (7,)),), calls_to_fill=3),
    "a stream of words": program((replace(WORDS, zero=0x1234),), calls_to_fill=2),
    "a stream of floats": program(is_float=True, calls_to_fill=2),
    "trees": program((replace(BYTES, shape=(3,), cuts=CUTS, nan=((2, 0, 1), ())),), (replace(OUT, sums=Sums(0.25)),)),
    "wide trees": program(
        (replace(BYTES, shape=(6,), cuts=CUTS, nan=((2, 0, 1), ())),), (replace(OUT, sums=Sums(0.5, "softmax")),)
    ),
    "trees of copies": program(
        (replace(BYTES, shape=(3,), cuts=CUTS, nan=((2, 0, 1), (1,))),), (replace(OUT, sums=Sums(2.0, "logistic")),)
    ),
    "many cuts": program(
        (replace(BYTES, shape=(1,), cuts=(tuple(range(65_536)),), nan=((9,), ())),), (replace(OUT, sums=Sums(1.0)),)
    ),
    "almost as many cuts": program(
        (replace(BYTES, shape=(1,), cuts=(tuple(range(65_535)),), nan=((9,), ())),), (replace(OUT, sums=Sums(1.0)),)
    ),
}

PACK = Pack(bytes(4097), 64, 512, 24, b"\x00mark'\"\xff")
WAYS: dict[str, Callable[[Program], str]] = {
    "module": model_source,
    "file": lambda p: model_source(p, PACK),
    "rp2": lambda p: model_source(p, PACK, Partition("rp2", 1 << 20)),
    "rp2, a whole page": lambda p: model_source(p, replace(PACK, data=bytes(4096)), Partition("rp2")),
    "esp32": lambda p: model_source(p, PACK, Partition("esp32", label="net")),
    "layers": lambda p: model_source(p, layers=True),
    "arena": lambda p: model_source(p, arena="other"),
    "weights": weights_source,
    "viper layers": lambda p: layers_source(p, "viper"),
    "bytecode layers": lambda p: layers_source(p, "bytecode"),
    "kernels": lambda p: kernels_source(p, "float32" if p.is_float else "viper"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_module_of_every_kind_of_model(name: str) -> None:
    lines: list[str] = []
    for way, source in WAYS.items():
        text = source(PROGRAMS[name])
        ast.parse(text)
        lines.append(f"{way}: {text.count(chr(10))} lines {digest(text)}")
    assert_recorded(RECORDED, name, "\n".join(lines))


@pytest.mark.parametrize("arch", ["", "armv6m", "armv7em", "rv32imc"])
def test_what_calls_the_kernels_of_several_layers(arch: str) -> None:
    cases = list(assembly_cases(71, 24))
    whole = program_of([*cases, *cases[:4]])[0]
    texts = [kernels_source(whole, "viper", arch), timed_run(whole, "viper", arch)]
    if arch in FAMILIES:
        texts.append(listing(whole, arch))
        texts.append(f"{ {name: digest(code) for name, code in machine_code(whole, arch).items()} }")
    calls = f"layers on {arch or 'none'}"
    assert_recorded(RECORDED, calls, "\n".join(f"{t.count(chr(10))} {digest(t)}" for t in texts))


def modules_functions(name: str) -> dict[str, Any]:
    """What a module defines, its kernels aside, without what it loads."""
    text = model_source(PROGRAMS[name])
    names: dict[str, Any] = {"_w": b"", "_t": b""}
    tree = ast.parse(text)
    kept: list[ast.stmt] = []
    for node in tree.body:
        is_load = isinstance(node, ast.Try) or (isinstance(node, ast.ImportFrom) and str(node.module).startswith("net"))
        is_prepared = "_kernels" in ast.unparse(node) and not isinstance(node, ast.FunctionDef)
        if not is_load and not is_prepared:
            kept.append(node)
    exec(compile(ast.Module(kept, []), name, "exec"), names)
    return names


@pytest.mark.parametrize("name", ["trees", "wide trees", "trees of copies"])
def test_features_become_ranks_and_sums_become_scores(name: str) -> None:
    module = modules_functions(name)
    port = PROGRAMS[name].inputs[0]
    copies = port.nan[1]
    features = 3 - len(copies)
    given = [2.0, 9.0, float("nan")][:features]
    module["put"](given)
    ranks = [int(np.searchsorted(cuts, v)) if v == v else nan for v, cuts, nan in zip(given, CUTS, port.nan[0])]  # noqa: B905
    ranks += [int(np.searchsorted(CUTS[2], given[c])) for c in copies]
    wide = name == "wide trees"
    assert list(module["input"]) == [b for r in ranks for b in ([r & 255, r >> 8] if wide else [r])]
    with pytest.raises(ValueError, match=f"the model takes {features} features, found 1"):
        module["put"]([1.0])
    sums = PROGRAMS[name].outputs[0].sums
    assert sums
    module["output"][:] = np.array([(1 << 29) + 5], "<u4").tobytes()
    assert module["best"]() == 0
    due = {None: 5 * sums.step, "softmax": 1.0, "logistic": 1 / (1 + np.exp(-5 * sums.step))}[sums.transform]
    assert module["get"]() == pytest.approx([due])
