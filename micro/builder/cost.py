"""The requirements of a program: flash, memory, stack and time, and whether they fit a board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .assembly.driver import ARGUMENTS, STATE
from .assembly.frame import BUFFERS
from .boards import KB, Board
from .counting import instructions
from .emit.held import held_bytes
from .emit.kernels import assembly_kernels, driver_table, holds_constants, is_held, kernels_source, uses_second_core
from .kernels.layer import Layer
from .kernels.pool import _Pool, _Reduce
from .program import Program

FACTOR = {"depthwise": 0.9, "lstm": 1.4, "gru": 1.4}
"""The cost of a multiply-accumulate in float32, in those of a dense layer, by kind of layer."""

ELEMENT = 4
"""Cost of moving or looking up one element, in multiply-accumulates of a dense layer."""

OUTPUT = 7
"""Cost of requantizing one sum, in multiply-accumulates of a dense layer."""

VIPER = 11
"""Instructions of a multiply-accumulate of a dense layer in viper, which is the unit of work."""

FLOAT = 110
"""Cost of a float32 multiply-accumulate in bytecode, in int8 multiply-accumulates in machine code."""

OBJECTS = 2 * KB
"""Heap used by the modules' own objects: functions, names, views of the arena."""

THREAD = 4 * KB
"""The stack of the thread on a second core, which MicroPython takes from the heap."""

CALLS = 832
"""Bytes of stack used around a kernel by `predict`, `run` and MicroPython itself. Like the two below, the largest of
measurements on emulated Cortex-M and RISC-V boards under MicroPython 1.25."""

FLOAT_CALLS = 1200
"""The same for bytecode kernels in float32."""

NUMBERS = 1184
"""Bytes of stack that `predict` uses to convert numbers to bytes, before any kernel runs."""


@dataclass(frozen=True)
class Cost:
    """Sizes are in bytes. flash: the deployed files; code: machine code and bytecode, which is loaded into memory
    unless frozen; weights_in_ram: the weights and tables that are copied into memory; words: the tables that are, if
    frozen; stack: the stack of `predict`, most of it in kernel `deepest`; peak: the layer at which the arena is
    fullest; held: the copy of the state that an interrupted inference leaves; thread: a second core's stack; work: of
    `predict`, in multiply-accumulates of a dense layer in int8.
    """

    flash: int
    arena: int
    code: int
    weights: int
    weights_in_ram: int
    words: int
    stack: int
    deepest: str
    macs: int
    peak: str
    is_float: bool
    work: float
    held: int = 0
    thread: int = 0

    @property
    def ram(self) -> int:
        """Bytes of the heap."""
        return self.arena + self.held + self.code + self.weights_in_ram + self.thread + OBJECTS

    def cycles(self, board: Board) -> float:
        """Estimated cycles per inference."""
        return self.work * VIPER * board.cycles

    def milliseconds(self, board: Board) -> float:
        """Estimated milliseconds per inference."""
        return self.cycles(board) / board.mhz / 1000


def cost(program: Program, files: Mapping[str, bytes], weights: str, flash: int, arch: str = "") -> Cost:
    """files: the deployed files by name; flash: their size in bytes; weights: where they are stored ("module", "file",
    "romfs", "frozen", "partition-copied" or "partition-mapped"); arch: the instruction set whose assembly kernels are
    used.
    """
    blobs = len(program.weight_bytes) + len(program.word_bytes)
    modules = sum(len(data) for name, data in files.items() if name.endswith((".mpy", ".py")))
    code = modules - (blobs if weights in ("module", "frozen") else 0)
    in_place = weights in ("romfs", "partition-mapped")
    words = 0 if holds_constants(program, arch) or program.is_float else len(program.word_bytes)
    frame, deepest = stack(program, arch)
    return Cost(
        flash=flash,
        arena=program.arena_bytes,
        code=0 if weights == "frozen" else code,
        weights=blobs,
        weights_in_ram=0 if in_place else words if weights == "frozen" else blobs,
        words=words,
        stack=frame,
        deepest=deepest,
        macs=program.macs,
        peak=program.peak,
        is_float=program.is_float,
        work=_floats(program) if program.is_float else instructions(program, arch) / VIPER,
        held=held_bytes(program) * is_held(program, arch),
        thread=THREAD * uses_second_core(program, arch),
    )


def _floats(program: Program) -> float:
    """The work of a float32 model's layers."""
    return FLOAT * sum(work(step.layer, step.output.row * step.output.shape[0]) for step in program.steps)


def work(layer: Layer, outputs: int) -> float:
    """The work of a layer in float32, in its multiply-accumulates of a dense layer."""
    if layer.macs:
        return layer.macs * FACTOR.get(layer.kind, 1) + outputs * OUTPUT
    if isinstance(layer, _Pool):
        return outputs * (layer.window.kernel[0] * layer.window.kernel[1] + OUTPUT)
    if isinstance(layer, _Reduce):
        return float(layer.shape[0] * layer.shape[1] * layer.shape[2] + outputs * OUTPUT)
    return (layer.turns or outputs) * ELEMENT


def stack(program: Program, arch: str = "") -> tuple[int, str]:
    """The stack of `predict` in bytes, with 32-bit words, and the kernel that uses most."""
    frame, name = frames(program, arch)
    return (FLOAT_CALLS + frame, name) if program.is_float else (max(CALLS + frame, NUMBERS), name)


def frames(program: Program, arch: str = "") -> tuple[int, str]:
    """The stack of the largest kernel in bytes, with 32-bit words, and its name. Locals, temporaries of expressions and
    saved registers count.
    """
    source = kernels_source(program, "float32" if program.is_float else "viper", arch)
    module = compile(source, "kernels", "exec")
    kernels = [c for c in module.co_consts if hasattr(c, "co_nlocals")]
    sizes = [(c.co_nlocals + c.co_stacksize + 12, c.co_name) for c in kernels]
    driver = driver_table(program, arch)
    if driver is not None and driver.kernels:
        deepest = max(driver.kernels.values(), key=lambda kernel: kernel.frame.size).name
        sizes.append((driver.frame // 4 + len(STATE) + ARGUMENTS + 12, deepest))
        return max((4 * words, name) for words, name in sizes)
    for name, kernel in assembly_kernels(program, arch).items():
        sizes.append((kernel.frame.size // 4 + len(kernel.frame.fields) + BUFFERS + 12, name))
    words, name = max(sizes, default=(0, ""))
    return 4 * words, name


def size_text(count: int) -> str:
    """A size for people to read."""
    return f"{count:,} B" if count < 10 * KB else f"{count / KB:,.1f} KB"


def time_text(milliseconds: float) -> str:
    """A time for people to read."""
    return f"{milliseconds:.3g} ms" if milliseconds < 999 else f"{milliseconds / 1000:.3g} s"


def report(name: str, c: Cost, boards: list[Board], weights: str) -> list[str]:
    """Lines for people to read: the model's requirements, and for each board whether it fits and the estimated time."""
    copied = "copied into memory" if c.weights_in_ram == c.weights else "the tables copied into memory"
    where = copied if c.weights_in_ram else "read in place"
    held = f"copy of the state {size_text(c.held)}; " if c.held else ""
    lines = [
        f"{name}: {'float32' if c.is_float else 'int8'}, {c.macs:,} multiply-accumulates",
        f"  flash   {size_text(c.flash)}, {size_text(c.weights)} of it weights and tables ({weights}, {where})",
        f"  memory  {size_text(c.ram)}: arena {size_text(c.arena)}, fullest at {c.peak!r}; {held}"
        f"code {size_text(c.code)}; "
        f"weights {size_text(c.weights_in_ram)}; objects about {size_text(c.thread + OBJECTS)}",
        f"  stack   about {size_text(c.stack)}, deepest in kernel {c.deepest!r}",
    ]
    for board in boards:
        problems = shortfalls(c, board, weights)
        verdict = "fits" if not problems else "does not fit: " + "; ".join(problems)
        cycles = f": {float(f'{c.cycles(board):.3g}'):,.0f} cycles by Arm's timings" if board.is_timed else ""
        time = f"about {time_text(c.milliseconds(board))} at {board.mhz} MHz{cycles}"
        time += " (an estimate that no board has confirmed)"
        memory = f"memory {size_text(c.ram)} of {size_text(board.heap)}"
        flash = f"flash {size_text(c.flash)} of {size_text(flash_of(board, weights))}"
        lines.append(f"  {board.name} ({board.title}): {verdict}. {memory}, {flash}, {time}")
        if weights == "romfs" and board.chip == "rp2":
            lines.append("    its stock firmware has no ROMFS: build one with MICROPY_HW_ROMFS_BYTES")
        if weights == "frozen":
            lines.append("    in custom firmware, whose file system gets the remaining flash")
    return lines


def shortfalls(c: Cost, board: Board, weights: str) -> list[str]:
    """What a board lacks, how much, and what to change; empty if the model fits."""
    problems: list[str] = []
    memory, flash = c.ram - board.heap, c.flash - flash_of(board, weights)
    if memory > 0:
        problems.append(f"{size_text(memory)} more memory needed; {_advice(c, board, weights)}")
    if flash > 0:
        problems.append(f"{size_text(flash)} more flash needed; {_flash_advice(c, board, weights)}")
    return problems


def flash_of(board: Board, weights: str) -> int:
    """The flash available to a model's files: the file system, or the flash besides the firmware."""
    return board.flash if weights in ("file", "module") else board.room


def _ways(c: Cost, board: Board, weights: str) -> list[str]:
    """The other choices of --weights with which the model fits."""
    memory = {"romfs": c.ram - c.weights_in_ram, "frozen": c.arena + c.held + c.words + OBJECTS}
    # The module that opens the weights differs slightly in size, and so does an image from files.
    fits = c.flash + 4 * KB <= board.room
    return [way for way, needed in memory.items() if way != weights and needed + KB <= board.heap and fits]


def _advice(c: Cost, board: Board, weights: str) -> str:
    ways, other = [], _ways(c, board, weights)
    if c.is_float:
        ways.append("build it in int8 (--calibration samples.npz): arena and weights shrink to a quarter")
    if "romfs" in other:
        ways.append(f"leave the weights in flash (--weights {' or '.join(other)})")
    elif other:
        ways.append("freeze weights and code into your own firmware (--weights frozen)")
    if not ways or c.arena > board.heap // 2:
        ways.append(f"make the input smaller, or layer {c.peak!r} narrower: the arena is fullest there")
    return ", or ".join(ways)


def _flash_advice(c: Cost, board: Board, weights: str) -> str:
    ways, other = [], _ways(c, board, weights)
    if c.is_float:
        ways.append("build it in int8 (--calibration samples.npz)")
    if other and weights in ("file", "module"):
        ways.append(f"put it beside your own firmware instead of into the file system (--weights {' or '.join(other)})")
    return ", or ".join(ways) or "prune or narrow its widest layers"
