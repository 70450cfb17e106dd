"""A model as a WebAssembly module: its kernels, with the weights as the memory's initial content.

`emberlet compile model.onnx --out model.wasm` writes one; web/package/wasm.mjs runs it in a browser, plan_file.load in
Python. The module exports "memory" and "run". The custom section "emberlet" describes it to runtimes, in JSON:
{"version": 1, "inputs" and "outputs": [[name, dtype, shape, address, bytes]], "indices": [[input, length]],
"computed_indices": as plan/computed_index.py says}. A run is:
write the inputs, call "run", read the outputs. Elements are stored as on the GPU (run/storage.py): as 32-bit words,
except inputs of bool, int8 and uint8, which take a byte each. If the JSON has "checksum": "crc32", the last section is
"emberlet.crc32", a checksum of all bytes before it. Files without one load, too. The custom section "emberlet.simd"
holds a code section without relaxed SIMD, which replaces the module's own on engines that lack it; "relaxed" in the
JSON says that there is none, and whether the module's own code needs relaxed SIMD. Where weights are stored in fewer
bits, the export "expand" makes them whole (stored.py); it is called once, before "run". A module with a start function
is refused: that would run before a loader can limit its time. "threads" in the JSON is how many threads may run the
module, through its export "part" (threads.py); without it or with 1, there is no such export.

A module of version 2 has open sizes. "sizes" describes them (plan/open_ports.py); in shapes and lengths, a number that
depends on them is a list of terms. The bytes of an input or output are those of the largest sizes. Before "run", the
numbers of the "block" are written to the address SIZES (addresses.py), a word each.
"""

import json

from emberlet.errors import FormatError

from ..plan.checks import dtype_of, integer, list_of, part, shape_of, text_of
from ..plan.port import MAX_BYTES, Port
from ..plan.ports import Ported
from . import engine
from .addresses import SIZES
from .program import Program
from .sections import check_functions, sections, verify

MAX_THREADS = 64
NAME = "emberlet"
SIMD = "emberlet.simd"
VERSION = 1
VERSION_OPEN = 2  # with open sizes
SHARED = 16  # results may be the same bytes this many times


def load_file(path):
    """`load` of the file at `path`."""
    with open(path, "rb") as file:
        content = bytearray(file.seek(0, 2))  # MicroPython's `read()` grows its result by 256 bytes at a time
        file.seek(0)
        file.readinto(content)
    return load(content, path)


def load(source, origin="module"):
    """The `SavedModule` in the bytes of a file. Raises FormatError if they are not one or are damaged."""
    try:
        found = sections(source)
        content = _content(source, found)
        if 8 in [number for number, _, _, _, _ in found]:
            raise ValueError("it has a start function, which runs as it is loaded: compile the model again")
        check_functions(source, found)
        verify(source, found, content.get("checksum"))
        counts = None
        if content["version"] == VERSION_OPEN:
            from ..plan.open_ports import read_counts

            counts = read_counts(part(content, "sizes"))
        places = _ports(content, counts)
        computed = _computed(content, counts)
        threads = integer(content.get("threads", 1), "the number of threads", MAX_THREADS)
        module = _for_this_engine(source, found, content.get("relaxed"), origin)
        instance = engine.shared_file(module, threads) or engine.opened(module).instance()
        return SavedModule(origin, places, instance, computed, counts)
    except (ValueError, RuntimeError) as error:  # RuntimeError: JSON that is nested too deep
        raise FormatError("{}: damaged compiled model: {}".format(origin, error))


def _content(source, found):
    for number, name, start, end, _ in found:
        if number == 0 and name == NAME:
            content = json.loads(bytes(source[start:end]).decode())
            version = integer(part(content, "version"), "its version", MAX_BYTES)
            if version not in (VERSION, VERSION_OPEN):
                raise ValueError("it is of version {}; this release reads up to {}".format(version, VERSION_OPEN))
            return content
    raise ValueError("it has no section {!r}; it may be another WebAssembly module".format(NAME))


def _for_this_engine(source, found, needed, origin):
    """The module; if the engine lacks relaxed SIMD, with the code section that does without. needed: what the file says
    about the need for relaxed SIMD: True or False where it has no second code section."""
    if engine.relaxed() or needed is False:
        return source
    if needed:
        raise FormatError(
            "{} needs WebAssembly's relaxed SIMD, which this engine or browser lacks: take a newer one, or compile the "
            "model for both kinds, as `emberlet compile` does".format(origin)
        )
    codes = [bytes(source[start:end]) for number, name, start, end, _ in found if number == 0 and name == SIMD]
    if len(codes) != 1:
        raise ValueError("it has {} sections {!r}, and this engine needs one".format(len(codes), SIMD))
    out = [bytes(source[:8])]
    for number, _, _, end, begin in found:
        if number == 10:
            out.append(codes[0])
        elif number:
            out.append(bytes(source[begin:end]))
    return b"".join(out)


def _number(found, counts, what):
    """A whole number, or a Polynomial in a module with open sizes."""
    if counts is not None and isinstance(found, list):
        from ..plan.open_ports import read_number

        return read_number(found, counts)
    return integer(found, what, MAX_BYTES)


def _ports(content, counts):
    """(inputs, outputs) as lists of (Port or OpenPort, its address, its bytes)."""
    found = []
    for key in ("inputs", "outputs"):
        ports = []
        for item in list_of(part(content, key), key):
            name, dtype, shape, at, nbytes = list_of(item, "an input or output", 5)
            shape = tuple([_number(d, counts, "a dimension") for d in shape_of(shape)])
            name, dtype, is_open = text_of(name, "a name"), dtype_of(dtype), [d for d in shape if type(d) is not int]
            if is_open:
                from ..plan.open_ports import OpenPort

                port = OpenPort(name, dtype, shape, len(ports), counts)
            else:
                port = Port(name, dtype, shape, len(ports))
            at, nbytes = (integer(n, "an address or size of {}".format(port), 1 << 32) for n in (at, nbytes))
            if not is_open and nbytes != (port.given if key == "inputs" else port.count * 4):
                raise ValueError("{} does not take {} bytes".format(port, nbytes))
            ports.append((port, at, nbytes))
        found.append(ports)
    for item in list_of(content.get("indices", []), "indices"):
        number, length = list_of(item, "an index", 2)
        port = found[0][integer(number, "the input of an index", len(found[0]) - 1)][0]
        if not port.dtype.is_integer:
            raise ValueError("{} is not of integers, so it cannot hold indices".format(port))
        port.length = _number(length, counts, "the length of an axis")
    return found


def _computed(content, counts):
    found = []
    for item in list_of(content.get("computed_indices", []), "computed indices"):
        from ..plan.computed_index import ComputedIndex, part_of

        at = part_of(item, 1 << 32)
        found.append(ComputedIndex(item, at, _number(item[2], counts, "the length of an axis")))
    return found


class SavedModule(Ported):
    """A compiled model ready to run; like plan_file.SavedPlan on a GPU, with the same methods.

    places: (inputs, outputs) as lists of (Port or OpenPort, its address, its bytes); computed: a list of ComputedIndex;
    counts: the Counts of its open sizes, or None.
    """

    def __init__(self, origin, places, instance, computed=(), counts=None):
        self.origin = origin
        self.computed = computed
        self.counts = counts
        self.plan = None
        size = instance.nbytes()
        for ports in places:
            for port, at, nbytes in ports:
                if at + nbytes > size:
                    raise ValueError("{} lies outside the memory".format(port))
        for index in computed:
            if index.buffer + index.nbytes > size:
                raise ValueError("{} lies outside the memory".format(index))
        self.inputs, self.outputs = ([port for port, _, _ in ports] for ports in places)
        if sum([nbytes for ports in places for _, _, nbytes in ports]) > SHARED * size:
            raise ValueError(
                "its inputs and outputs share their memory: they hold more than {} times that".format(SHARED)
            )
        inputs, results = ([(at, nbytes) for _, at, nbytes in ports] for ports in places)
        results += [(c.buffer, c.nbytes) for c in computed]
        if counts is None:
            self.program = Program(instance, inputs, results)
            return
        from .open_program import OpenProgram

        if SIZES + 4 * len(counts.block) > size:
            raise ValueError("its sizes lie outside the memory")
        rooms = [nbytes for _, nbytes in results]
        needed = [p.words() if hasattr(p, "words") else p.count * 4 for p in self.outputs] + [
            c.nbytes for c in computed
        ]
        results = [(at, n) for (at, _), n in zip(results, needed)]
        self.program = OpenProgram(instance, counts, inputs, results, rooms)

    def release(self):
        """Free its memory; later calls raise BackendError."""
        self.program.release()
