"""The page's model, the same under Pyodide and under MicroPython: 64 numbers of 0 to 16 in, ten logits out."""

import sys

import emberlet
from digits import Digits


def version():
    """The interpreter's name and version."""
    name = {"cpython": "CPython", "micropython": "MicroPython"}.get(sys.implementation.name, sys.implementation.name)
    return name + " " + ".".join([str(part) for part in sys.implementation.version[:3]])


def load(backend, weights):
    """A Classifier on a backend ("python", "wasm", "wgpu"), its weights from the file `weights`."""
    return Classifier(emberlet.get_backend(backend), weights)


class Classifier:
    """The generated model with its weights; on a GPU and in WebAssembly with its plan."""

    def __init__(self, backend, weights):
        self.backend = backend
        self.model = Digits.from_file(weights, backend=backend)
        self.compiled = None
        if backend.name != "python":
            self.compiled = self.model.compile(self._image([0] * 64), backend=backend)

    def adapter(self):
        """The GPU's name, or None."""
        return self.backend.device.raw.adapter.summary if self.backend.name == "wgpu" else None

    def logits(self, pixels):
        """Ten floats."""
        return (self.compiled or self.model)(self._image(pixels)).tolist()[0]

    def _image(self, pixels):
        rows = [[pixels[8 * y + x] / 16 for x in range(8)] for y in range(8)]
        return emberlet.asarray([[rows]], dtype=emberlet.float32, backend=self.backend)
