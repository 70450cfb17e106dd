"""The instructions that a model's kernels take, estimated from their source.

The loops of viper kernels run as often as numbers in their source say, so that what a kernel does can be counted
without running it. Each thing that it does costs some instructions (`COSTS`), fitted to counts of real and drawn
networks on emulated boards. Assembly kernels are counted by the numbers that they are called with.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from .assembly.driver import Kernel, Table, second
from .assembly.driver.converted import is_converted
from .assembly.variants import DSP, FAMILIES, RV32, THUMB
from .emit.inputs import has_whole, in_grid, integers
from .emit.kernels import DRIVE, assembly_kernels, driver_table, kernels_source
from .emit.outputs import ROOM, has_large, has_listed, is_large, is_listed
from .emit.ranks import is_forest
from .emit.trees import is_named
from .emit.whole import is_answered
from .program import Port, Program

FITTED = {DSP: 0, THUMB: 1, RV32: 2}
"""The families of instruction sets whose instructions were counted. Others take the last one's; code without assembly
takes the first one's."""

COSTS = {
    "driven call": (30, 30, 45),
    "field": (3, 3, 5),
    "moved eight": (7, 20, 20),
    "moved eight by words": (2, 2, 6),
    "moved byte": (5, 5, 5),
    "moved row": (15, 15, 15),
    "run in bytecode": (250, 450, 570),
    "called line": (330, 350, 260),
    "argument": (22, 33, 27),
    "call": (370, 640, 670),
    "line": (1.4, 1.2, 1.2),
    "operation": (3, 3.4, 3),
    "division": (8, 64, 5),
    "element": (0.4, 0.4, 0.6),
    "test": (5, 5.7, 4.2),
    "turn": (5, 5, 4.5),
    "conv product": (1.04, 3.5, 3.4),
    "conv product alone": (1.04, 5, 4.7),
    "dense product": (1.43, 3.5, 3.4),
    "plain output": (14, 18, 26),
    "doubled output": (28, 54, 60),
    "shifted output": (19, 37, 42),
    "taken byte": (1, 3.7, 2.6),
    "gathered byte": (4.3, 5, 5.2),
    "place": (72, 180, 70),
    "depthwise tap": (2, 4.1, 4.1),
    "depthwise plain output": (8, 24, 30),
    "depthwise doubled output": (18, 66, 64),
    "depthwise shifted output": (13, 45, 48),
    "depthwise tap of two": (1.73, 3.4, 3.8),
    "depthwise plain output of two": (5, 19, 24),
    "depthwise doubled output of two": (5, 61, 58),
    "depthwise shifted output of two": (10, 40, 43),
    "depthwise tap of four": (1.42, 0, 0),
    "depthwise plain output of four": (5.5, 0, 0),
    "depthwise shifted output of four": (10.5, 0, 0),
    "depthwise weight": (5, 8, 8),
    "depthwise tap of one": (2.6, 5.5, 6),
    "depthwise plain output of one": (16, 46, 52),
    "depthwise doubled output of one": (16, 88, 94),
    "depthwise shifted output of one": (23, 66, 68),
    "dense product of one": (2.5, 0, 0),
    "gru unit": (140, 150, 150),
    "lstm unit": (190, 200, 190),
    "number of logistic": (150, 150, 150),
    "number of tanh": (150, 150, 150),
    "number of cells": (50, 50, 50),
    "number of hidden": (60, 60, 60),
    "short word": (5.3, 0, 0),
    "short row": (7, 0, 0),
    "unpacked word": (2.1, 0, 0),
    "unpacked row": (6, 0, 0),
    "gru unit of short rows": (48, 0, 0),
    "lstm unit of short rows": (68, 0, 0),
    "short step": (65, 65, 75),
    "product in halves": (0, 2.5, 3),
    "row in halves": (0, 13.5, 16),
    "gru unit of halves": (0, 66, 70),
    "halved weight": (0, 5, 6),
    "tree": (45, 45, 48),
    "branch": (11, 11, 11.5),
}
"""Instructions of each thing, for each of FITTED. "called line" and "argument" are lines of `run`, where it is
bytecode, and arguments of the calls there; from "call" to "turn" it is what a kernel in viper does; the rest is
assembly."""

RUN, WHOLE = (1250, 2250, 1130), (500, 800, 700)
"""Those of calling `run`, for each of FITTED, and of a call that converts the numbers of the input, too."""

ANSWERED, CONVERTED = ((260, 160), (370, 260), (310, 210)), (25, 65, 55)
"""Those of the list of a few numbers that machine code makes after such a call, and of each number; of each number of
the input that it converts."""

RANKS, BYTES, WORDS, GET = (
    ((8000, 580), (10000, 730), (8000, 580)),
    ((12000, 37), (14000, 39), (12000, 35)),
    ((4500, 2900), (4500, 4750), (4500, 3800)),
    ((3300, 600), (4200, 880), (3800, 790)),
)
"""Those of an input, and of each number, for each of FITTED: features of trees in a list, bytes, and words, which are
converted in bytecode. GET: of the output."""

RANKED, COMPARED = (225, 225, 210), (20, 28, 26)
"""Those of each feature of trees that a driver ranks, and of a forest, which compares them as they are."""

SCORES = ((3000, 210), (4000, 300), (3500, 270))
"""Those of sums of trees, and of each of their bytes."""

NAMED = ((1000, 185), (1400, 265), (1150, 240))
"""The same for a few sums."""

LARGE = ((90_000, 30), (110_000, 30), (90_000, 30))
"""Those of an output from a driver whose list is filled in machine code: half of the bytes that there are occur."""

LISTED, ARRAY = ((5000, 372), (8500, 418), (7600, 358)), (10_000, 20_000, 13_500)
"""Those of an output from a driver that is listed by an array, and of making the array first."""

DRIVEN = ((6000, 95), (7400, 95), (6000, 85))
"""The same for a list or an array of floats that a driver converts."""

VIPER = ((12000, 196), (18000, 207), (12000, 174))
"""For an array of floats, where a viper kernel does."""

COLUMN = (110, 110, 110)
"""What each number takes more in a column with a range of its own, in a driver; in viper four times that."""

DEPTH = 6
"""The branches of a tree that a row goes through."""

UNKNOWN, RARE = 4, 0.5
"""How often a loop turns whose length depends on the data; the share of runs in which the body of an `if` runs."""


Found = defaultdict[str, float]
"""How often each key of COSTS."""


def instructions(program: Program, arch: str) -> float:
    """The instructions of an int8 model's `predict`, which gets bytes where it can take them as a whole, else arrays of
    floats. arch: the instruction set whose assembly kernels are used, or ""."""
    family = FAMILIES.get(arch, "")
    which = FITTED.get(family, 2 if family else 0)
    found = counted(program, arch)
    driven = family in FITTED
    at_once = driven and has_whole(program) and "run in bytecode" not in found and not integers(program)
    total = (WHOLE if at_once else RUN)[which] + sum(COSTS[key][which] * count for key, count in found.items())
    parts = [(_way(program, k, which, driven), port) for k, port in enumerate(program.inputs)]
    if at_once:
        port = program.inputs[0]
        if port.cuts is not None:
            each = (COMPARED if is_forest(program) else RANKED)[which]
        else:
            each = CONVERTED[which] if is_answered(program) and is_converted(port) else parts[0][0][1]
        parts = [((0, each), port)]
    if at_once and is_answered(program):
        fixed, each = ANSWERED[which]
        total += fixed + each * program.outputs[0].size // (4 if program.outputs[0].sums else 1)
    else:
        parts += [(_back(program, port, which, driven), port) for port in program.outputs[:1]]
    for (fixed, each), port in parts:
        total += fixed + each * port.size // port.width
    return total


def _way(program: Program, k: int, which: int, driven: bool) -> tuple[int, int]:
    """The instructions of an input, and of each of its numbers. driven: whether there is a driver."""
    port = program.inputs[k]
    if port.cuts is not None:
        return RANKS[which]
    if k in integers(program):
        return BYTES[which]
    if not in_grid(port):
        return WORDS[which]
    fixed, each = (DRIVEN if driven else VIPER)[which]
    return fixed, each + (COLUMN[which] * (1 if driven else 4) if port.columns is not None else 0)


def _back(program: Program, port: Port, which: int, driven: bool) -> tuple[int, int]:
    """The instructions of an output, and of each of its numbers."""
    if port.sums:
        return (NAMED if is_named(port) else SCORES)[which]
    if driven and has_large(program) and is_large(port):
        return LARGE[which]
    if driven and has_listed(program) and is_listed(port):
        fixed, each = LISTED[which]
        return fixed + ARRAY[which] * (port.size > ROOM), each
    return GET[which]


def counted(program: Program, arch: str) -> Found:
    """What an int8 model's `run` does, and how often: keys of COSTS."""
    tree = ast.parse(kernels_source(program, "viper", arch))
    driver = driver_table(program, arch)
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    walk = _Walk(functions, assembly_kernels(program, arch), driver)
    bind = functions["bind"].body
    walk.run(next(f for f in bind if isinstance(f, ast.FunctionDef)))
    if isinstance(bind[-1], ast.Return) and isinstance(bind[-1].value, ast.IfExp):  # `run` is the driver
        del walk.found["called line"], walk.found["argument"]
    else:
        walk.found["run in bytecode"] = 1
    return walk.found


class _Walk:
    """functions: of the source; kernels: those in assembly."""

    def __init__(
        self, functions: Mapping[str, ast.FunctionDef], kernels: Mapping[str, Kernel], driver: Table | None
    ) -> None:
        self.functions, self.kernels, self.driver = functions, kernels, driver
        self.found = Found(float)
        self.bodies: dict[str, Found] = {}

    def run(self, function: ast.FunctionDef) -> None:
        self._lines(function.body, 1)

    def _lines(self, body: list[ast.stmt], times: float) -> None:
        """Lines of `run`, which is bytecode: calls of kernels, and loops over them."""
        for line in body:
            if isinstance(line, ast.For):
                assert isinstance(line.iter, ast.Call)
                self._lines(line.body, times * _number(line.iter.args[0]))
                continue
            self.found["called line"] += times
            for call in (n for n in ast.walk(line) if isinstance(n, ast.Call)):
                name = call.func.id if isinstance(call.func, ast.Name) else ""
                self.found["argument"] += times * len(call.args)
                if name == DRIVE:
                    self._driven(call, times)
                elif name in self.kernels:
                    self._assembly(name, call, times)
                elif name in self.functions:
                    for key, count in self._body(name).items():
                        self.found[key] += times * count

    def _driven(self, call: ast.Call, times: float) -> None:
        assert self.driver is not None
        turns, elsewhere = 1, False
        for own in self.driver.calls(*map(_number, call.args[4:6])):
            name, numbers = own.kernel.name, {k: v if isinstance(v, int) else 0 for k, v in own.numbers.items()}
            if name == second.KERNEL.name:
                elsewhere = numbers["what"] == second.FORK  # up to the next call of this kernel, on the second core
            elif elsewhere:
                continue
            self.found["driven call"] += times * turns
            self.found["field"] += times * turns * len(numbers)
            turns = numbers["times"] if name == "repeat" else 1 if name == "again" else turns
            for key, count in assembly(name, numbers).items():
                self.found[key] += times * turns * count

    def _assembly(self, name: str, call: ast.Call, times: float) -> None:
        fields = self.kernels[name].frame.fields
        numbers = {field: _number(given) for field, given in zip(fields, call.args[-len(fields) :], strict=True)}
        for key, count in assembly(name, numbers).items():
            self.found[key] += times * count

    def _body(self, name: str) -> Found:
        if name not in self.bodies:
            self.bodies[name] = found = Found(float, {"call": 1.0})
            _viper(self.functions[name].body, 1, {}, found)
        return self.bodies[name]


def assembly(name: str, n: Mapping[str, int]) -> dict[str, int]:
    """What a call of an assembly kernel does, from its name and its numbers."""
    if name.startswith("depthwise"):
        kh, kw = map(int, name.split("_")[1].split("x"))
        columns = n["last"] // n["xstep"] + 2 if "last" in n else n["cols"]
        squares, pairs = "squares" in name, "pairs" in name
        channels = max(n["C"], 4) if "up" in n and not squares else n["C"]  # DSP instructions take four at once
        outs = n["rows"] * columns * channels
        at_once = " of two" if pairs else " of four" if squares else ""
        if "of_one" in name:
            return {"depthwise tap of one": n["C"] * kh * kw, f"depthwise {_how(name)} output of one": n["C"]}
        return {
            f"depthwise tap{at_once}": outs * kh * kw,
            f"depthwise {_how(name)} output{at_once}": outs,
            "depthwise weight": n["C"] * kh * kw,
        }
    if name in ("repeat", "again", second.KERNEL.name):
        return {}
    if name.startswith("trees"):
        return {"tree": n["roots"], "branch": DEPTH * n["roots"]}
    if name.startswith(("copy", "fill")):
        eight = "moved eight by words" if name.endswith("words") else "moved eight"
        return {eight: n["rows"] * n["n8"], "moved byte": n["rows"] * n["rest"], "moved row": n["rows"]}
    if name.startswith(("logistic", "tanh")) or name in ("cells", "hidden"):
        return {f"number of {name.partition('_')[0]}": n["count"]}
    if name.endswith("_units"):
        return {name.replace("_units", " unit"): n["hidden"]}
    if name.startswith(("gru_", "lstm_")):
        return _short_rows(name, n["steps"])
    if name.startswith("whole_gru"):
        return _halves(name, n["steps"])
    if name.startswith("dense_of_one"):
        return {"dense product of one": n["K"], f"{_how(name)} output": 1, "place": 1}
    places = n.get("left") or n.get("rows", 1) * n.get("cols", 1)
    dense = "dense" if name.startswith("dense") else "conv"
    gather = "gathered" if "gather" in name else "taken"
    few = " alone" if "few" in name else ""
    return {
        f"{dense} product{few}": places * n["N"] * n["K"],
        f"{_how(name)} output": places * n["N"],
        f"{gather} byte": places * n["K"],
        "place": places,
    }


def _short_rows(name: str, steps: int) -> dict[str, int]:
    """What a layer of assembly/dsp_recurrent.py does."""
    kind, size, *_ = name.split("_")
    k, hidden = map(int, size.split("x"))
    rows = (3 if kind == "gru" else 4) * hidden
    unpacked = "unpacked" if "unpacked" in name else "short"
    found = Found(float)
    for one, size_of in ((unpacked, k), ("short", hidden)):
        found[f"{one} word"] += steps * rows * -(-size_of // 4)
        found[f"{one} row"] += steps * rows
    return {k: int(n) for k, n in found.items()} | {f"{kind} unit of short rows": steps * hidden, "short step": steps}


def _halves(name: str, steps: int) -> dict[str, int]:
    """What a layer of assembly/scalar_gru.py does."""
    k, hidden = map(int, name.split("_")[2].split("x"))
    weights, rows = 3 * hidden * (k + hidden), 6 * hidden
    each = {"product in halves": steps * weights, "row in halves": steps * rows}
    return {**each, "gru unit of halves": steps * hidden, "short step": steps, "halved weight": weights}


def _how(name: str) -> str:
    """How a kernel rescales its sums."""
    if "shifted" in name:
        return "shifted"
    return "doubled" if "twice" in name or "once" in name else "plain"


def _number(node: ast.expr) -> int:
    """A number in the source; 0 for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int) else 0


def _viper(body: list[ast.stmt], times: float, env: dict[str, int], found: Found) -> None:
    """Count the statements of a viper kernel. env: the numbers that names hold, where they are known."""
    for line in body:
        if isinstance(line, ast.While):
            turns = times * _turns(line, env)
            _viper(line.body, turns, env, found)
            found["turn"] += turns
            if not isinstance(line.test, ast.Name):
                _expression(line.test, turns, found)
        elif isinstance(line, ast.If):
            _expression(line.test, times, found)
            found["test"] += times
            _viper(line.body, times * RARE, env, found)
            _viper(line.orelse, times * RARE, env, found)
        else:
            if isinstance(line, ast.Assign | ast.AugAssign):
                targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                    env |= dict.fromkeys(names, _number(line.value))
                else:
                    for name in names:
                        env.pop(name, None)
            found["line"] += times
            found["operation"] += times * isinstance(line, ast.AugAssign)
            _expression(line, times, found)


def _turns(loop: ast.While, env: Mapping[str, int]) -> int:
    """How often a loop turns that counts down or up to a number or halves one, from the number that it begins with."""
    test = loop.test
    tested, bound = (test.left, _number(test.comparators[0])) if isinstance(test, ast.Compare) else (test, 0)
    if not isinstance(tested, ast.Name) or tested.id not in env:
        return UNKNOWN
    name, first = tested.id, env[tested.id]
    updates = [ast.unparse(line) for line in loop.body]
    if f"{name} -= 1" in updates or f"{name} += 1" in updates:
        return abs(first - bound)
    return first.bit_length() if f"{name} = {name} >> 1" in updates else UNKNOWN


def _expression(node: ast.AST, times: float, found: Found) -> None:
    for n in ast.walk(node):
        if isinstance(n, ast.Subscript):
            found["element"] += times
        elif isinstance(n, ast.BinOp):
            found["division" if isinstance(n.op, ast.FloorDiv | ast.Mod) else "operation"] += times
        elif isinstance(n, ast.Compare | ast.IfExp | ast.BoolOp):
            found["test"] += times
