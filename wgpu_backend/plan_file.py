"""A saved plan: a burnpack with WGSL and dispatches as metadata, and the weights as tensors.

A target only needs `load`, which runs under CPython, Pyodide and MicroPython with device.py, run/ and plan/data.py.
`save` traces a model on the host, without a GPU (plan/writer.py).

The metadata entry "emberlet.plan" is JSON: {"version": 2 to 4, "inputs" and "outputs": [[name, dtype, shape,
buffer]], "buffers": [[kind, bytes]], "constants": [[buffer, tensor] or [buffer, tensor, how, scales]], "kernels":
[[name, WGSL]], "steps": {CLASS: [[kernel, [x, y, z], [buffer, …]]]}, "indices": [[input, length]]}. A step writes the
last of its buffers; a step that binds a tensor as several pages of "page_bytes" has a fourth entry, the number of pages
of each buffer. Inputs under "indices" hold indices of an axis of that length; plan/computed_index.py says
what "computed_indices" are. CLASS is a class of device: "gpu", "software" for software devices, or the optional
"subgroups" for SwiftShader with WGSL's subgroup operations. Of the first two, one may be missing: then all devices run
the other. A constant with a third entry is stored in fewer bits (plan/stored.py), since version 3. Files of version 4
have open sizes (plan/open_ports.py).
"""

import sys

from emberlet.burnpack.parts import FileParts

from .device import must_await
from .plan.data import KEY_STEP
from .saved_plan import SavedPlan


def save(path, model, *examples, **options):
    """Trace model(*examples) and write its plan to `path`; see plan/writer.py. A compiled training step is saved alike,
    save(path, step, *batch), with the weights and the optimizer's state of now."""
    if hasattr(model, "function_of"):  # a CompiledStep
        from .plan.step_writer import save
    else:
        from .plan.writer import save

    return save(path, model, *examples, **options)


def load(source, device=None, verify=None):
    """The `SavedPlan` in a file (a path) or in bytes; the `SavedStep` (saved_step.py) if it is a training step. device:
    a Device; None opens one.

    A file whose name ends in ".wasm", or bytes of one, is a WebAssembly module (wasm/file.py), which opens no GPU.
    Tensors are read into the GPU's memory one at a time, in parts. verify: whether to check them against the file's
    checksums, if it has any; by default only in a browser's tab, where files are downloaded. Raises FormatError if it
    is not a plan or is damaged. Under MicroPython open the device first: `await open_device_async()`.
    """
    if source.endswith(".wasm") if isinstance(source, str) else bytes(source[:4]) == b"\0asm":
        from .wasm.file import load, load_file

        return load_file(source) if isinstance(source, str) else load(bytes(source))
    from emberlet.burnpack import Burnpack

    if device is None:
        from .device import open_device

        device = open_device()
    if verify is None:
        verify = must_await() or sys.platform == "emscripten"
    if not isinstance(source, str):
        return _opened(Burnpack.from_bytes(source, "plan"), device, verify)
    file = FileParts(source)
    try:
        return _opened(Burnpack(file, source), device, verify)
    finally:
        file.close()


def _opened(pack, device, verify):
    if KEY_STEP not in pack.metadata:
        return SavedPlan(pack, device, verify)
    from .saved_step import SavedStep

    return SavedStep(pack, device, verify)
