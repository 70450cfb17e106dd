"""A model as a WebAssembly module: its kernels, with the weights as the memory's first content.

`emberlet compile model.onnx --out model.wasm` writes one; web/package/wasm.mjs runs it in a browser, plan_file.load in
Python. The module exports "memory" and "run". What runtimes have to know is JSON in the custom section "emberlet":
{"version": 1, "inputs" and "outputs": [[name, dtype, shape, address, bytes]], "indices": [[input, length]]}.
A run is: write the inputs, call "run", read the outputs. Elements are as on the GPU (run/storage.py): 32-bit words, but
for inputs of bool, int8 and uint8, which take a byte each. The custom section "emberlet.simd" holds a code section
without relaxed SIMD, to be put in the place of the module's own where an engine lacks that.
"""

import json

from emberlet import dtypes
from emberlet.backend import get_backend
from emberlet.errors import FormatError, ModelError

from ..plan.data import Buffer
from ..plan.make import make_plan
from ..plan.reading import Port
from ..plan_file import SavedPlan
from ..record.index_ranges import index_ranges
from . import engine
from .assembler import sections
from .image import Image
from .prepare import materialize, prepare
from .program import Program
from .table import Options

NAME = "emberlet"
SIMD = "emberlet.simd"
VERSION = 1
MOST = 1 << 30  # bytes of a module that browsers accept


def save(path, model, *examples, inputs=None, outputs=None):
    """Trace model(*examples) for their dtypes and shapes and write its module to `path`; returns the Plan.

    inputs, outputs: as of plan/writer.py. Raises ModelError where the model is not one plan, or is too large.
    """
    from emberlet.host.files import atomic_write

    from ..plan.writer import argument_names, traced_for
    from .backend import WasmBackend

    traced, results = traced_for(model, examples, WasmBackend(planning=True))
    host = get_backend("numpy")
    materialize(traced.roots, host)
    prepare(traced.roots)
    simple, _ = make_plan(traced.roots, Options(relaxed=False), False)
    plan, externals = make_plan(traced.roots, Options(), False)
    given, data = {}, {}
    for number, node in zip(plan.externals, externals):
        if node.op == "input":
            given[node.arg] = number
        else:
            data[number] = node.arg
    for node in traced.inputs:
        if node.arg not in given:  # the results do not depend on it; it is still to be given
            given[node.arg] = len(plan.buffers)
            for one in (plan, simple):
                one.buffers.append(Buffer("external", node.nbytes))
    image = Image(plan)
    names = list(inputs or argument_names(model, len(examples)))
    labels = list(outputs or ["output{}".format(i) for i in range(len(results))])
    places = {}
    for i, r in enumerate(traced.roots):
        places[id(r)] = image.addresses[plan.outputs[i]]
    lengths = index_ranges(traced.roots)
    content = {
        "version": VERSION,
        "inputs": [
            [names[n.arg], n.dtype.name, list(n.shape), image.addresses[given[n.arg]], n.nbytes] for n in traced.inputs
        ],
        "outputs": [
            [labels[i], r.dtype.name, list(r.shape), places[id(r)], r.count * 4] for i, r in enumerate(results)
        ],
        "indices": [[at, lengths[n.arg]] for at, n in enumerate(traced.inputs) if n.arg in lengths],
    }
    custom = [(NAME, json.dumps(content).encode()), (SIMD, Image(simple).code())]
    whole = image.file(custom, data)
    if len(whole) > MOST:
        raise ModelError("the module would have {} bytes; browsers accept {}".format(len(whole), MOST))
    with atomic_write(path) as file:
        file.write(whole)
    return plan


def load_file(path):
    """`load` of the file at `path`."""
    with open(path, "rb") as file:
        return load(file.read(), path)


def load(source, origin="module"):
    """The `SavedModule` in the bytes of a file. Raises FormatError where they are none, or are damaged."""
    try:
        found = sections(source)
        content = _content(source, found)
        module = engine.compiled(_for_this_engine(source, found))
        return SavedModule(origin, content, module.instance())
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FormatError("{}: as a compiled model it does not hold together: {}".format(origin, error))


def _content(source, found):
    for number, name, start, end in found:
        if number == 0 and name == NAME:
            content = json.loads(bytes(source[start:end]).decode())
            if content.get("version") != VERSION:
                raise ValueError("it is of version {!r}; this release reads {}".format(content.get("version"), VERSION))
            return content
    raise ValueError("it has no section {!r}; it may be another WebAssembly module".format(NAME))


def _for_this_engine(source, found):
    """The module, with the other code section where relaxed SIMD is missing."""
    if engine.relaxed():
        return source
    (code,) = [source[start:end] for number, name, start, end in found if number == 0 and name == SIMD]
    out = [source[:8]]
    for number, _, start, end in found:
        if number == 10:
            out.append(code)
        elif number:
            from .opcodes import unsigned

            out.append(bytes((number,)) + unsigned(end - start) + source[start:end])
    return b"".join(out)


class SavedModule(SavedPlan):
    """A compiled model ready to run: what plan_file.SavedPlan is on a GPU, with the same methods."""

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
                    raise ValueError("{} lies outside of the memory".format(port))
                places.append(at)
                ports.append(port)
        for number, length in content["indices"]:
            self.inputs[number].length = length
        inputs = [(places[p.buffer], p.given) for p in self.inputs]
        results = [(places[p.buffer], p.count * 4) for p in self.outputs]
        self.program = Program(instance, inputs, results)

    def release(self):
        self.program.release()
