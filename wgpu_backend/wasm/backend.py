"""The wasm backend: recorded operations (../record/), computed in WebAssembly with 128-bit vectors. In a tab, compiled
models may run on several threads (engine/)."""

from emberlet.errors import BackendError

from ..arena import ArenaBackend
from . import engine
from .image import Image
from .kernels.table import Options

_EXPANDED = 20  # how much larger than a module is what engines make of it


class WasmBackend(ArenaBackend):
    """Computes tensors with WebAssembly. strict: raise UnsupportedError instead of computing on the host.

    When a value is read, everything recorded so far is computed as one module, which is cached for the same graph with
    other values. `model.compile(backend="wasm")` also keeps the weights in the module's memory. Raises BackendError
    without a WebAssembly engine: on a desktop, the package wasmtime.
    """

    name = "wasm"

    def __init__(self, index=0, strict=False, planning=False):
        ArenaBackend.__init__(self, index, strict, planning)
        self.options = Options(planning or engine.relaxed())
        if index:
            raise BackendError('"wasm:{}" does not exist; there is only one wasm backend'.format(index))
        if not planning:
            engine.available()

    def set_threads(self, count):
        """The same as `wasm.set_threads`."""
        return engine.set_threads(count)

    def _compiled(self, plan):
        image = Image(plan, relaxed=self.options.relaxed)
        return engine.compiled(image.module), image, _EXPANDED * len(image.module)

    def layout(self, plan, sizes=0, room=None, constants=None):
        return Image(plan, None, sizes, room, self.options.relaxed)
