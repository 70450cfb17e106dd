"""Builds a model's files from a float32 graph, with their requirements."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from emberlet import dtypes
from emberlet.burnpack import Burnpack
from emberlet.errors import UnsupportedError
from emberlet.host.burnpack_writer import Source, dumps
from emberlet.host.files import RESERVED_BY_WINDOWS
from emberlet.host.quantization import calibration

from .assembly.variants import FAMILIES, THUMB
from .boards import Board
from .compile import compile_mpy
from .cost import Cost, cost
from .emit.kernels import assembly_kernels, holds_constants, kernels_source, listing, machine_code
from .emit.layers import more_sources
from .emit.loading import Deployed, Frozen, Pack, Partition
from .emit.model import model_source, weights_source
from .fuse import fuse, in_float32
from .graph import Graph
from .kernels.layer import Array
from .plan import plan
from .program import Program
from .quantization.agreement import (
    FEWEST_LEFT_OUT,
    Agreement,
    compare,
    compare_left_out,
    notes_on_samples,
    outputs_of,
    rounded_weights,
)
from .quantization.calibrate import check_samples, observe, ranges_of
from .quantization.columns import with_columns
from .quantization.distances import taken_apart, with_room
from .quantization.quantize import quantize_graph
from .quantization.quantize16 import in_8_bits
from .romfs import romfs_image
from .streaming import streamed

WEIGHTS = ("module", "file", "romfs", "frozen", "partition")

METHODS = ("auto", *calibration.METHODS)

AUTO = ("minmax", "percentile")
"""Of which "auto" takes the one that is closest to float32."""

KERNELS = ("assembly", "viper")

INT4 = ("packed", "bytes")

MANIFEST = "manifest.py"
"""What MicroPython's makefiles are told to freeze. With machine code for a board it is beside its files, else beside
the sources."""

RESERVED_NAMES = frozenset(
    "array binascii bluetooth btree builtins cmath collections cryptolib deflate emberlet errno esp esp32 framebuf gc "
    "hashlib heapq io json machine main boot math micropython mip neopixel network ntptime os platform pyb random re "
    "rp2 select socket ssl stm struct sys time tls uasyncio asyncio uctypes vfs zlib".split()
)
"""Modules of MicroPython, whose names a model's modules must not take."""

FEWEST_COMPARED, MOST_COMPARED = 64, 1024
"""Samples on which calibration methods are compared, and int8 with float32: more for small models."""

WORK_OF_COMPARING = 10_000_000
"""Multiply-accumulates of a comparison, as far as FEWEST_COMPARED allows."""

WORK_OF_PARTS = 2_000_000_000
"""Multiply-accumulates of all samples up to which a build also compares on samples that did not give the ranges."""

LEAST_AGREEMENT, LEAST_OF_CLASSES = 0.98, 0.99
"""The least `Agreement.share` with which `emberlet micro build` writes a model in int8, and that of a model whose
classes have labels if the scores agree less than numbers have to. tests/micro/test_columns.py checks what estimators of
scikit-learn lose of their score."""


@dataclass(frozen=True)
class Options:
    """weights: where they are stored ("module": bytes of a module; "file": a burnpack read into memory, or in place if
    it is in a ROMFS; "romfs": the same with an image; "frozen": a module for the firmware; "partition": a burnpack in a
    flash partition). method: of calibration. release: the oldest MicroPython that the .mpy files must load on.
    kernels: "assembly" for boards that have them, or "viper" for all. floats: stay float32, even if samples are given.
    second_core: share large layers with an RP2040's second core. layers: add a module that lists and times the layers.
    steps: add an inference in steps (emit/steps.py). arena: the module of another model whose arena is used. int4:
    4-bit weights are two in a byte ("packed") or one ("bytes"). stream: the time axis of the model's input, of which
    each inference takes `new_steps` (streaming.py).
    least_agreement: a build in int8 fails if its `Agreement.share` is below; None: below LEAST_AGREEMENT, or
    LEAST_OF_CLASSES.
    """

    name: str
    weights: str = "file"
    boards: Sequence[Board] = ()
    method: str = "auto"
    percentile: float = 99.99
    partition: Partition | None = None
    release: str | None = None
    kernels: str = "assembly"
    floats: bool = False
    second_core: bool = False
    layers: bool = False
    steps: bool = False
    arena: str = ""
    stream: int | None = None
    new_steps: int | None = None
    int4: str = "packed"
    least_agreement: float | None = 0.0

    @property
    def in_assembly(self) -> bool:
        """Whether boards get assembly kernels."""
        return self.kernels == "assembly"

    @property
    def families(self) -> tuple[str, ...]:
        """The families of instruction sets that get kernels in assembly."""
        archs = {b.arch for b in self.boards} if self.in_assembly else set()
        return tuple(sorted({FAMILIES[arch] for arch in archs if arch in FAMILIES}))


@dataclass
class BuildResult:
    """sources: the files as text; extra: files beside them; by instruction set ("" for bytecode alone): deployed, the
    files for a board; images, its ROMFS image; costs; listings, the kernels in assembly as text. notes: messages for
    the person who builds.
    """

    program: Program
    graph: Graph
    sources: dict[str, str] = field(default_factory=dict)
    deployed: dict[str, dict[str, bytes]] = field(default_factory=dict)
    extra: dict[str, bytes] = field(default_factory=dict)
    images: dict[str, bytes] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    listings: dict[str, str] = field(default_factory=dict)
    agreement: Agreement | None = None
    notes: tuple[str, ...] = ()


def build(graph: Graph, options: Options, samples: Mapping[str, Array] | None = None) -> BuildResult:
    """The files of a model: int8 if there are samples (or the graph is already quantized), else float32.

    Raises UnsupportedError for anything the kernels do not support, ShapeError for samples of the wrong shape.
    """
    if options.weights not in WEIGHTS:
        raise UnsupportedError(f"weights {options.weights!r}: expected one of {', '.join(WEIGHTS)}")
    graph = in_float32(graph) if options.floats else in_8_bits(graph) if samples is not None else graph
    graph = fuse(replace(graph, name=options.name, packed=graph.packed if options.int4 == "packed" else frozenset()))
    agreement, notes, in_words = None, tuple[str, ...](), False
    if graph.sums:
        pass  # in integers already
    elif samples is not None and not options.floats:
        graph, agreement, notes = calibrated(fuse(taken_apart(graph)), samples, options)
    elif graph.grids:
        notes = rounded_weights(graph)
        in_words = options.stream is not None and bool(graph.wide)
        graph = quantize_graph(graph, stream=(lambda g: _streamed(g, options)) if in_words else None)
    if options.kernels not in KERNELS:
        raise UnsupportedError(f"kernels {options.kernels!r}: expected one of {', '.join(KERNELS)}")
    if options.stream is not None and not in_words:
        graph = _streamed(graph, options)
    if options.second_core and (
        THUMB not in options.families or graph.is_float or options.weights == "frozen"  # whose code lies in flash
    ):
        raise UnsupportedError(
            "the second core is an RP2040's, and runs kernels in assembly: build with --board rp2 in int8, without "
            "--kernels viper and --weights frozen, or without --second-core"
        )
    program = plan(graph, options.families, options.second_core)
    built = BuildResult(program, graph, agreement=agreement, notes=notes)
    if options.arena and options.steps:
        raise UnsupportedError(
            f"{options.name} gives back control between its layers, while the other model may use the arena: build it "
            "without --steps, or without --arena"
        )
    if options.arena and (built.program.states or built.program.kept):
        raise UnsupportedError(f"{options.name} keeps a state between calls, which the other model would overwrite")
    _write_sources(built, options)
    _compile(built, options)
    if options.second_core and not any(c.thread for c in built.costs.values()):
        built.notes += ("no layer is large enough to share it with the second core",)
    return built


def _streamed(graph: Graph, options: Options) -> Graph:
    """The graph that computes new steps only. Raises UnsupportedError."""
    assert options.stream is not None
    if graph.words:
        raise UnsupportedError(
            f"{graph.name}: a stream with indices of two bytes, {', '.join(sorted(graph.words))}; "
            "build the model with --float"
        )
    return streamed(graph, options.stream, options.new_steps)


def calibrated(
    graph: Graph, samples: Mapping[str, Array], options: Options
) -> tuple[Graph, Agreement, tuple[str, ...]]:
    """The graph in int8; if the method is "auto", by the one closest to float32; and notes about the samples.

    Raises UnsupportedError if int8 agrees less with float32 than the options want.
    """
    given, checked = graph, check_samples(samples, graph)
    graph, own = _columns(given, checked, options)
    seen = observe(graph, own)
    methods = AUTO if options.method == "auto" else (options.method,)
    # With stateful layers the samples are a sequence, so the first ones are used.
    count = len(next(iter(own.values())))
    work = sum(layer.macs for layer in graph.layers)
    most = min(max(WORK_OF_COMPARING // max(work, 1), FEWEST_COMPARED), MOST_COMPARED)
    sequence = bool(graph.states) or any(layer.remembers for layer in graph.layers)
    step = 1 if sequence else max(1, count // most)
    some = {name: x[::step][:most] for name, x in own.items()}
    outputs = outputs_of(graph, some)
    best: tuple[Graph, Agreement, str] | None = None
    for method in methods:
        quantized = quantize_graph(graph, with_room(ranges_of(seen, method, options.percentile)))
        agreement = compare(graph, quantized, some, outputs)
        if best is None or agreement.rms < best[1].rms:
            best = quantized, agreement, method
    assert best is not None
    quantized, agreement, chosen = best
    _refuse(graph, agreement, options.least_agreement)

    def from_others(graph: Graph, samples: Mapping[str, Array]) -> Graph:
        graph, own = _columns(graph, samples, options)
        return quantize_graph(graph, with_room(ranges_of(observe(graph, own), chosen, options.percentile)))

    if options.least_agreement != 0 and not sequence and count >= FEWEST_LEFT_OUT and count * work <= WORK_OF_PARTS:
        _refuse(graph, compare_left_out(given, checked, outputs, step, from_others), options.least_agreement)
    return quantized, agreement, notes_on_samples(own, seen, graph)


def _columns(graph: Graph, samples: Mapping[str, Array], options: Options) -> tuple[Graph, Mapping[str, Array]]:
    """As with_columns, except for a stream, whose `put` takes the numbers of a step and knows no column."""
    return with_columns(graph, samples) if options.stream is None else (graph, samples)


def _refuse(graph: Graph, found: Agreement, least: float | None) -> None:
    """Raise UnsupportedError if int8 agrees less with float32 than `least`, or than LEAST_AGREEMENT says."""
    if least is None:
        strict = graph.labels and found.rms > 1 - LEAST_AGREEMENT
        least = LEAST_OF_CLASSES if strict else LEAST_AGREEMENT
    one = 0.0
    if found.left_out:  # of which one may differ: ranges from fewer samples are narrower
        others = max(found.rms**2 - found.worst**2 / found.samples, 0) ** 0.5
        one = found.rms - others if found.same_best is None else 1 / found.samples
    if found.share + one < least:
        raise UnsupportedError(
            f"{graph.name}: {found}; that is less than {least:.0%} agreement: calibrate with more "
            "samples of what the model will see, build it with --float, or take it as it is with --least-agreement "
            f"{int(max(found.share, 0) * 100) / 100:g}"
        )


def pack(program: Program) -> Pack:
    """Both blobs as a burnpack: the tensors "weights" and "tables", and an identifier of this build."""
    weights, tables = program.weight_bytes, program.word_bytes
    mark = hashlib.sha256(weights + tables + repr(program.arena).encode()).hexdigest()[:8]
    dtype = dtypes.float32 if program.is_float else dtypes.uint8
    data = dumps(
        {
            "weights": Source(dtype, program.weights.shape, lambda: weights),
            "tables": Source(dtypes.uint32, (len(program.words),), lambda: tables),
        },
        metadata={"generator": "emberlet micro", "model": program.name, "build": mark},
    )
    entries = Burnpack(data).tensors
    return Pack(data, entries["weights"].start, entries["tables"].start, data.index(mark.encode()), mark.encode())


def _main_source(built: BuildResult, options: Options, deployed: Deployed | Frozen | None = None) -> str:
    """The module to import: as source, or as it is compiled beside the deployed or frozen files."""
    packed = None if options.weights in ("module", "frozen") else pack(built.program)
    partition = options.partition if options.weights == "partition" else None
    return model_source(built.program, packed, partition, options.layers, options.arena, deployed, options.steps)


def _write_sources(built: BuildResult, options: Options) -> None:
    program, name, apart = built.program, options.name, options.layers or options.steps
    built.sources[f"{name}.py"] = _main_source(built, options)
    if program.is_float:
        built.sources[f"{name}_kernels.py"] = kernels_source(program, "float32", apart=apart)
    else:
        built.sources[f"{name}_kernels.py"] = kernels_source(program, "viper", apart=apart)
        built.sources[f"{name}_bytecode.py"] = kernels_source(program, "bytecode", apart=apart)
    more = more_sources(program, options.layers, options.steps, "float32" if program.is_float else "viper")
    built.sources.update((f"{key}.py", text) for key, text in more.items())
    if options.weights in ("module", "frozen"):
        built.sources[f"{name}_weights.py"] = weights_source(program)
    else:
        built.extra[f"{name}.bpk"] = pack(program).data


def _compile(built: BuildResult, options: Options) -> None:
    """The .mpy files for each instruction set of the boards; portable bytecode if no board is given."""
    name, release = options.name, options.release
    portable = {
        file.replace(".py", ".mpy"): compile_mpy(text, file[:-3], None, release)
        for file, text in built.sources.items()
        if (not file.endswith("_kernels.py") or built.program.is_float)
        and (file != f"{name}.py" or options.weights == "frozen")
    }
    native = "" if built.program.is_float else f"{name}_kernels"
    archs = sorted({b.arch for b in options.boards}) if native else []
    for arch in archs or [""]:
        files = dict(portable)
        own = arch if options.in_assembly else ""
        frozen = bool(arch) and options.weights == "frozen"
        if arch:
            files.pop(f"{name}_bytecode.mpy", None)
            source = kernels_source(built.program, "viper", own, options.layers or options.steps, frozen)
            code = machine_code(built.program, own, frozen)
            files[f"{native}.mpy"] = compile_mpy(source, native, arch, release, code)
            for key, text in more_sources(built.program, options.layers, options.steps, "viper", own).items():
                files[f"{key}.mpy"] = compile_mpy(text, key, None, release)
            kernels = assembly_kernels(built.program, own)
            if kernels:
                built.listings[arch] = listing(built.program, arch)
        if frozen:
            held = holds_constants(built.program, own)
            knows_frozen = Frozen(arch, files[f"{native}.mpy"], held)
            files[f"{name}.mpy"] = compile_mpy(_main_source(built, options, knows_frozen), name, None, release)
            weights = weights_source(built.program, words=not held)
            files[f"{name}_weights.mpy"] = compile_mpy(weights, f"{name}_weights", None, release)
            built.extra[f"{arch}/{MANIFEST}"] = f"freeze_mpy('.', {tuple(files)})\n".encode()
        elif options.weights == "frozen":
            modules = [f'module("{file}")\n' for file in built.sources if not file.endswith("_bytecode.py")]
            built.extra[MANIFEST] = "".join(modules).encode()
        else:
            own_kernels = files.get(f"{name}_kernels.mpy") or files[f"{name}_bytecode.mpy"]
            knows = Deployed(arch, own_kernels, moves=options.weights != "romfs")
            main = compile_mpy(_main_source(built, options, knows), name, None, release)
            files = {f"{name}.mpy": main, **files}  # `deploy` renames the first one first
        blob = {f"{name}.bpk": built.extra[f"{name}.bpk"]} if f"{name}.bpk" in built.extra else {}
        built.deployed[arch] = {**files, **blob}
        how = options.weights
        if how == "partition":
            mapped = options.partition is not None and options.partition.chip == "rp2"
            how = "partition-mapped" if mapped else "partition-copied"
        flash = sum(map(len, built.deployed[arch].values()))
        if how == "romfs":
            built.images[arch] = romfs_image(built.deployed[arch])
            flash = len(built.images[arch])
        built.costs[arch] = cost(built.program, built.deployed[arch], how, flash, own)


def module_name(text: str) -> str:
    """A name for the modules, derived from a file's name."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII).strip("_").lower() or "model"
    if name[0].isdigit():
        return f"m_{name}"
    return f"{name}_model" if name in RESERVED_NAMES | RESERVED_BY_WINDOWS or keyword.iskeyword(name) else name
