"""The module of a model's kernels, and `run`, which calls them in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..assembly.driver import KEPT, Call, Kernel, Table
from ..assembly.driver.calls import Calls, CallsRv32, CallsThumb, CallsVfp
from ..assembly.driver.constants import CONSTANT, constant_words
from ..assembly.driver.layers import numbers_listed, numbers_put, numbers_ranked
from ..assembly.driver.predict import predict
from ..assembly.driver.second import SERVING, WORKER, shared
from ..assembly.registry import calls, sums, sums_in_assembly, table, units
from ..assembly.variants import DSP, FAMILIES, RV32, THUMB, VFP
from ..functions import FROM_MATH
from ..kernels.depthwise import Depthwise
from ..kernels.dot import Dot
from ..kernels.recurrence import Rows, SumsIn
from ..kernels.writer import Writer
from ..program import Program, Step
from .held import END, bind_lines, changes_state, hold_source, spans
from .inputs import TRIED, grid_table, has_grid, has_whole, in_grid, inputs_source
from .outputs import is_listed, outputs_source
from .whole import answer, answering_source, is_answered

DRIVE = "drive"
"""The driver's name."""

PREDICT = "predict"
"""The function that makes the list of `predict`."""

CONSTANTS = "constants"
"""The function that says where the constant words T are, in a frozen module."""

_CALLS: dict[str, type[Calls]] = {DSP: CallsThumb, THUMB: CallsThumb, RV32: CallsRv32}

_PART = re.compile(rf"{DRIVE}\(a, w, t, l, (\d+), (\d+), 0\)")

_PREPARE = {
    "viper": """\
def prepare(W, T):
    import uctypes

    return W, T if uctypes.addressof(T) & 3 == 0 else bytearray(T)
""",
    "bytecode": """\
def prepare(W, T):
    from array import array

    return W, array("I", bytes(T))
""",
    "float32": """\
def prepare(W, T):
    import uctypes

    def numbers(data, kind):
        address = uctypes.addressof(data)
        order = uctypes.LITTLE_ENDIAN if address & 3 else uctypes.NATIVE
        return uctypes.struct(address, {"all": (uctypes.ARRAY | 0, kind | len(data) // 4)}, order).all

    return numbers(W, uctypes.FLOAT32), numbers(T, uctypes.UINT32)
""",
}

_PREPARE_CONSTANTS = """\
@micropython.viper
def {name}():
    pass


def prepare(W, T):
    from uctypes import bytearray_at

    return W, bytearray_at({name}() << 2, {size})
"""


def holds_constants(program: Program, arch: str) -> bool:
    """Whether the kernels of an instruction set hold T, where they are frozen: elsewhere it is copied to memory."""
    return FAMILIES.get(arch) in CONSTANT and not program.is_float and len(program.words) > 0


def listing(program: Program, arch: str) -> str:
    """The assembly kernels as input for GNU's assembler, preceded by the mapping from layers to kernels."""
    family = FAMILIES[arch]
    lines = [f"// {program.name}: what each layer runs in on {arch}", "//"]
    for step in program.steps:
        own = dict.fromkeys(call.kernel.name for call in step_calls(program, step, family))
        lines.append(f"//   {step.layer.name}: {', '.join(own) or 'viper'}")
    kernels = assembly_kernels(program, arch).items()
    return "\n".join([*lines, "", *(kernel.assembled().text(name) for name, kernel in kernels)])


# A quarter of an address always is a small integer; the remainder of W's is passed separately.
_ADDRESSES = [
    "from uctypes import addressof",
    *(f"{b.lower()} = addressof({b}) >> 2" for b in "AWT"),
    "l = addressof(W) & 3",
]


def kernels_source(program: Program, dialect: str, arch: str = "", apart: bool = False, frozen: bool = False) -> str:
    """The source of `bind(A, W, T)`, which returns a model's `run`, and of the kernels it needs; layers with equal
    kernels share one.

    dialect: "viper", "bytecode" or "float32", as in kernels/writer.py. arch: mpy-cross's name of an instruction set;
    layers that have a kernel in its assembly use it. apart: whether another module calls single layers. frozen: whether
    firmware holds the module, and the words with it (see holds_constants).

    A: the arena, bytearray (float32: array of floats); W: weights; T: words (viper: aligned bytes; else array 'I').
    After `bind`, `reset(A)` sets the model's state to its initial value. `prepare(W, T)` converts both from bytes to
    what `bind` takes, in place if they are aligned. Buffers never move, so `bind` computes their addresses once. Bind a
    module only once: its addresses are the module's, and another `bind` changes them for every `run`.
    """
    made = _layers(program, dialect, arch)
    lines = _joined([line for group in made.groups for line in group])
    at_once, held = _is_one_call(lines), _is_held(program, made, arch, apart)
    whole = has_whole(program) and at_once
    own = [inputs_source(program, dialect, made.put, whole), outputs_source(program, bool(made.put), made.listed)]
    own += [answering_source(program, arch, FAMILIES[arch])] if made.predict else []
    text = "\n\n".join([*made.functions, *filter(None, own), *([hold_source(program)] * held)])
    begin = (
        [f"global a, w, t, l{', kept' * at_once}", *made.begin] if made.begin else []
    )  # as variables of `bind` they would be too many
    begin += bind_lines(program) * held + _serving(made)
    run = ["def run():", *(f"    {line}" for line in _held(lines, held) or ["pass"])]
    ends = ["return run"] if held else _returned(lines)
    bind = "def bind(A, W, T):\n" + "".join(f"    {line}\n" for line in [*begin, *run, *ends])
    prepare = _PREPARE[dialect]
    if frozen and holds_constants(program, arch):
        prepare = _PREPARE_CONSTANTS.format(name=CONSTANTS, size=len(program.word_bytes))
    return "\n\n".join([_imports(text, dialect), text, bind, _reset(program, held), prepare]).lstrip("\n")


def _held(lines: Sequence[str], held: bool) -> list[str]:
    """Lines that change a state, so that an interrupt between them leaves that of before, if they are `held`."""
    return ["hold()", *lines, END] if held else [*lines]


def _is_held(program: Program, made: Emitted, arch: str, apart: bool) -> bool:
    """Whether an interrupt can come while a state is changed: not where one call of a board's machine code, which is
    not interrupted, changes all that there is. Kernels for any processor may run on a PC, where it is."""
    steps = [group for step, group in zip(program.steps, made.groups, strict=True) if changes_state(program, step)]
    changing = [line for group in steps for line in group]
    lines = enumerate(_joined([line for group in made.groups for line in group]))
    calls_of_them = {k for k, line in lines for part in changing if _covers(line, part)}
    return bool(spans(program)) and (apart or not arch or len(calls_of_them) > 1)


def _covers(line: str, part: str) -> bool:
    """Whether a line of `run` is a part of it, or joins it with others."""
    whole, own = _PART.fullmatch(line), _PART.fullmatch(part)
    return int(whole[1]) <= int(own[1]) < int(whole[2]) if whole and own else line == part


def is_held(program: Program, arch: str = "") -> bool:
    """Whether the kernels' module of a plain build keeps a copy of the state while layers run."""
    return _is_held(program, _layers(program, "float32" if program.is_float else "viper", arch), arch, False)


@dataclass(frozen=True)
class Emitted:
    """functions: the kernels; begin: the first lines of `run`; groups: its lines for each step; table: the driver's, if
    there is one; put: where the table has the calls that write the numbers of each input, and, as another input, of two
    numbers at the arena's start; listed: those that make the numbers of each output, (0, 0) if there are none; serving:
    the part that a second core runs, (0, 0) if there is none."""

    functions: list[str]
    begin: list[str]
    groups: list[list[str]]
    table: Table | None
    put: list[list[tuple[int, int]]]
    listed: list[tuple[int, int]]
    predict: bool
    serving: tuple[int, int]


def _layers(program: Program, dialect: str, arch: str) -> Emitted:  # noqa: C901
    names: dict[str, str] = {}
    functions: list[str] = []
    groups: list[list[str]] = []
    family = FAMILIES.get(arch, "")
    driver = table(family)

    def name(writer: Writer) -> str:
        body = writer.source("_")
        if body not in names:
            names[body] = f"{step.layer.kind}_{len(names)}"
            functions.append(writer.source(names[body]))
        return names[body]

    def function(own: str) -> None:
        if own not in names:
            names[own] = own
            functions.append(f"@micropython.viper\ndef {own}():\n    pass\n")

    def assembly(made: Sequence[Call]) -> list[str]:
        if driver is None:
            for call in made:
                function(call.kernel.name)
            return [call.line() for call in made]
        function(DRIVE)
        start, end = driver.add(made)
        i = "i" if len(made) == 1 and "i" in made[0].numbers.values() else "0"
        return [f"{DRIVE}(a, w, t, l, {start}, {end}, {i})"]

    def at_once() -> bool:
        return _is_one_call(_joined([line for group in groups for line in group]))

    for step in program.steps:
        layer, own = step.layer, (step.inputs, step.output, step.places)
        made = _calls(program, step, family) if family else None
        if made is not None:
            groups.append(assembly(made) if made else [])
        elif family and sums_in_assembly(layer, family):
            update = units(layer, family, step.places)
            sums_in = _sums_in(family, step.places, lambda call: assembly([call])[0])
            groups.append(layer.calls(name, dialect, *own, sums_in, assembly([update])[0] if update else None))
        else:
            groups.append(layer.calls(name, dialect, *own))
    put: list[list[tuple[int, int]]] = []
    listed: list[tuple[int, int]] = []
    if driver is not None and has_grid(program):
        function(DRIVE)
        for port in (*program.inputs, TRIED):
            made_put = numbers_put(family, port.place, port.size, *grid_table(port)[:2]) if in_grid(port) else []
            put.append([driver.add([call]) for call in made_put])
        for port in program.outputs:
            listed.append(driver.add([numbers_listed(family, port)]) if is_listed(port) else (0, 0))
    elif driver is not None and has_whole(program) and at_once():
        put.append([driver.add([call]) for call in numbers_ranked(family, program)])
    answers = bool(put) and has_whole(program) and at_once() and is_answered(program)
    serving = driver.add([SERVING]) if driver is not None and SERVING.kernel.name in driver.kernels else (0, 0)
    return Emitted(functions, _ADDRESSES if family else [], groups, driver, put, listed, answers, serving)


_SERVING = """\
try:
    from _thread import start_new_thread

    start_new_thread({drive}, (a, w, t, l, {start}, {end}, {worker}))
except (ImportError, OSError):
    pass  # there is no second core, or another program has it: this one does everything"""


def _serving(made: Emitted) -> list[str]:
    """The lines of `bind` that start the second core's thread."""
    start, end = made.serving
    return _SERVING.format(drive=DRIVE, start=start, end=end, worker=WORKER).splitlines() if end else []


def _returned(lines: Sequence[str]) -> list[str]:
    """The end of `bind`. Where one call of the driver does everything, `run` is the driver itself, which keeps its
    arguments, if the port's functions are as it expects."""
    if not _is_one_call(lines):
        return ["return run"]
    found = _PART.fullmatch(lines[0])
    assert found
    kept = f"{DRIVE}(a, w, t, l, {found[2]}, {found[1]}, addressof(kept) >> 2, {DRIVE})"
    return [
        "from array import array",
        f"kept = array('I', bytes({4 * len(KEPT)}))",
        f"return {DRIVE} if {kept} else run",
    ]


def _is_one_call(lines: Sequence[str]) -> bool:
    """Whether lines of `run` are one call of the driver."""
    found = _PART.fullmatch(lines[0]) if len(lines) == 1 else None
    return found is not None and found[1] != found[2]


def _joined(lines: list[str]) -> list[str]:
    """Lines of `run`, with parts of the driver's table that follow one another run by one call."""
    out: list[str] = []
    for line in lines:
        found, before = _PART.fullmatch(line), _PART.fullmatch(out[-1]) if out else None
        if found and before and before[2] == found[1]:
            out[-1] = f"{DRIVE}(a, w, t, l, {before[1]}, {found[2]}, 0)"
        else:
            out.append(line)
    return out


def timed_run(program: Program, dialect: str, arch: str = "") -> str:
    """A `run(A, W, T, spans)` that calls the module's kernels and writes each step's microseconds to `spans`."""
    made = _layers(program, dialect, arch)
    lines = list(made.begin)
    for k, group in enumerate(made.groups):
        lines += ["start = ticks_us()", *group, f"spans[{k}] = ticks_diff(ticks_us(), start)"]
    lines = _held(lines, bool(spans(program)))
    return "def run(A, W, T, spans):\n" + "".join(f"    {line}\n" for line in lines)


def stepped_run(program: Program, dialect: str, arch: str = "") -> str:
    """A generator `run(A, W, T)` that calls the module's kernels, and yields after each step."""
    made = _layers(program, dialect, arch)
    lines = list(made.begin)
    for group in made.groups:
        lines += [*group, "yield"]
    lines = _held(lines, bool(spans(program)))
    return "def run(A, W, T):\n" + "".join(f"    {line}\n" for line in lines)


def machine_code(program: Program, arch: str, frozen: bool = False) -> dict[str, bytes]:
    """The code of the functions in assembly of `kernels_source(program, "viper", arch)`, by name, for compile_mpy."""
    made = _layers(program, "viper", arch) if arch in FAMILIES else None
    if made is not None and made.table is not None:
        held = frozen and holds_constants(program, arch)
        code = {CONSTANTS: constant_words(FAMILIES[arch], program.word_bytes)} if held else {}
        code |= {DRIVE: made.table.code(frozen)} if made.table.kernels else {}
        return code | ({PREDICT: _predict(program, arch)} if made.predict else {})
    return {name: kernel.assembled().code() for name, kernel in assembly_kernels(program, arch).items()}


def _predict(program: Program, arch: str) -> bytes:
    a = CallsVfp() if arch in VFP else _CALLS[FAMILIES[arch]]()
    return predict(a, answer(program, arch)).code()


def driver_table(program: Program, arch: str) -> Table | None:
    """The calls that a driver makes, or None if the instruction set has none."""
    return _layers(program, "viper", arch).table if arch in FAMILIES else None


def uses_second_core(program: Program, arch: str) -> bool:
    """Whether an instruction set's kernels share layers with a second core."""
    table = driver_table(program, arch)
    return table is not None and SERVING.kernel.name in table.kernels


def assembly_kernels(program: Program, arch: str) -> dict[str, Kernel]:
    """The assembly kernels that a program uses on an instruction set, by name."""
    family = FAMILIES.get(arch, "")
    found: dict[str, Kernel] = {}
    for step in program.steps if family else ():
        for call in step_calls(program, step, family):
            found.setdefault(call.kernel.name, call.kernel)
    return found


def _calls(program: Program, step: Step, family: str) -> list[Call] | None:
    """As registry.calls, halved where a second core helps."""
    layer = step.layer
    made = calls(layer, family, step.inputs, step.output, step.places)
    if made and program.second_core and family == THUMB and isinstance(layer, Dot | Depthwise):
        made = shared(made, 1 + layer.requant.words if isinstance(layer, Dot) else 0)
    return made


def step_calls(program: Program, step: Step, family: str) -> list[Call]:
    """The assembly kernels that a step calls; none if it runs in viper."""
    made = _calls(program, step, family)
    if made is None and sums_in_assembly(step.layer, family):
        parts = [sums(rows, family, "i", step.places) for rows in step.layer.rows]
        return [call for call in (*parts, units(step.layer, family, step.places)) if call]
    return made or []


def _sums_in(family: str, places: Mapping[str, int], write: Callable[[Call], str]) -> SumsIn:
    def line(rows: Rows, source: str, own: dict[str, int]) -> str | None:
        at = int(source) if source.isdecimal() else source
        call = sums(rows, family, at, {**own, "zs": places["zs"]})
        return write(call) if call else None

    return line


def _imports(text: str, dialect: str) -> str:
    if dialect == "viper":
        return "import micropython\n"
    used = [name for name in FROM_MATH if re.search(rf"\b{name}\(", text)]
    return f"from math import {', '.join(used)}\n" if used else ""


def _reset(program: Program, held: bool) -> str:
    lines = []
    for place, size, repeated in (*program.states, *program.kept):
        step = f", {len(repeated)}" if len(repeated) > 1 else ""
        lines.append(f"for i in range({place}, {place + size}{step}):")
        lines += [f"    A[i{f' + {k}' if k else ''}] = {value!r}" for k, value in enumerate(repeated)]
    return "def reset(A):\n" + "".join(f"    {line}\n" for line in _held(lines, held) or ["pass"])
