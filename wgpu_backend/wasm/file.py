"""A model as a WebAssembly module: its kernels, with the weights as the memory's initial content.

`emberlet compile model.onnx --out model.wasm` writes one; web/package/wasm.mjs runs it in a browser, plan_file.load in
Python. The module exports "memory" and "run". The custom section "emberlet" describes it to runtimes, in JSON:
{"version": 1, "inputs" and "outputs": [[name, dtype, shape, address, bytes]], "indices": [[input, length]]}. A run is:
write the inputs, call "run", read the outputs. Elements are stored as on the GPU (run/storage.py): as 32-bit words,
except inputs of bool, int8 and uint8, which take a byte each. If the JSON has "checksum": "crc32", the last section is
"emberlet.crc32", a checksum of all bytes before it. Files without one load, too. The custom section "emberlet.simd"
holds a code section without relaxed SIMD, which replaces the module's own on engines that lack it. Where weights are
stored in fewer bits, the export "expand" makes them whole (stored.py); it is called once, before "run". A module with a
start function is refused: that would run before a loader can limit its time. "threads" in the JSON is how many threads
may run the module, through its export "part" (threads.py); without it or with 1, there is no such export.
"""

import json

from emberlet import dtypes
from emberlet.errors import FormatError

from ..plan.ports import Ported
from ..plan.reading import Port
from . import engine
from .program import Program
from .sections import sections, verify

NAME = "emberlet"
SIMD = "emberlet.simd"
VERSION = 1
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
        verify(source, found, content.get("checksum"))
        module = _for_this_engine(source, found)
        instance = engine.shared_file(module, content.get("threads", 1)) or engine.opened(module).instance()
        return SavedModule(origin, content, instance)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FormatError("{}: damaged compiled model: {}".format(origin, error))


def _content(source, found):
    for number, name, start, end, _ in found:
        if number == 0 and name == NAME:
            content = json.loads(bytes(source[start:end]).decode())
            if content.get("version") != VERSION:
                raise ValueError("it is of version {!r}; this release reads {}".format(content.get("version"), VERSION))
            return content
    raise ValueError("it has no section {!r}; it may be another WebAssembly module".format(NAME))


def _for_this_engine(source, found):
    """The module; if the engine lacks relaxed SIMD, with the code section that does without."""
    if engine.relaxed():
        return source
    (code,) = [bytes(source[start:end]) for number, name, start, end, _ in found if number == 0 and name == SIMD]
    out = [bytes(source[:8])]
    for number, _, _, end, begin in found:
        if number == 10:
            out.append(code)
        elif number:
            out.append(bytes(source[begin:end]))
    return b"".join(out)


class SavedModule(Ported):
    """A compiled model ready to run; like plan_file.SavedPlan on a GPU, with the same methods."""

    def __init__(self, origin, content, instance):
        self.origin = origin
        self.plan = None
        size = instance.nbytes()
        self.inputs, self.outputs = [], []
        places = []
        for ports, key in ((self.inputs, "inputs"), (self.outputs, "outputs")):
            for name, dtype, shape, at, nbytes in content[key]:
                port = Port(name, dtypes.dtype(dtype), tuple(shape), len(places))
                wanted = port.given if key == "inputs" else port.count * 4
                if nbytes != wanted or at < 0 or at + nbytes > size:
                    raise ValueError("{} lies outside the memory".format(port))
                places.append(at)
                ports.append(port)
        if sum([p.count for p in self.inputs + self.outputs]) * 4 > SHARED * size:
            raise ValueError(
                "its inputs and outputs share their memory: they hold more than {} times that".format(SHARED)
            )
        for number, length in content["indices"]:
            self.inputs[number].length = length
        inputs = [(places[p.buffer], p.given) for p in self.inputs]
        results = [(places[p.buffer], p.count * 4) for p in self.outputs]
        self.program = Program(instance, inputs, results)

    def release(self):
        """Free its memory; later calls raise BackendError."""
        self.program.release()
