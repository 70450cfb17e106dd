"""A plan with its memory kept: weights are written once, a call writes the inputs and reads the results."""

from emberlet.errors import BackendError

from ..device import lock
from . import engine
from .image import Image


class Program:
    """A Plan ready to run: what run/runtime.py's Program is on a GPU, with the same methods.

    constants: per number of a constant buffer its bytes; inputs and results: lists of (buffer number, nbytes). Calls of
    several threads run one after the other.
    """

    def __init__(self, plan, constants, inputs, results):
        image = Image(plan)
        self.inputs = [(image.addresses[n], nbytes) for n, nbytes in inputs]
        self.results = [(image.addresses[n], nbytes) for n, nbytes in results]
        self._instance = engine.compiled(image.module).instance()
        for number in constants:
            self._instance.write(image.addresses[number], constants[number])
        self._given = [False] * len(inputs)
        self._lock = lock()
        self.owner = None

    def run(self, data):
        """Bytes of the results, given those of the inputs; None leaves an input as it is. Raises BackendError where an
        input that was never given is left as it is, and after `release`."""
        with self._lock:
            instance = self._instance
            if instance is None:
                raise BackendError("this program was released; load or compile the model again")
            for i in range(len(self.inputs)):
                if data[i] is not None:
                    instance.write(self.inputs[i][0], data[i])
                    self._given[i] = True
                elif not self._given[i]:
                    raise BackendError("input {} was left as it is, and no call before gave it".format(i))
            instance.run()
            return [instance.read(at, nbytes) for at, nbytes in self.results]

    async def run_async(self, data):
        """`run`; there is nothing to wait for."""
        return self.run(data)

    def release(self):
        """Give the memory back; later calls raise BackendError."""
        with self._lock:
            self._instance = None

    def disown(self, owner):
        """Nothing is compiled for others."""
