"""The browser's own engine, called from Pyodide."""

from js import Uint8Array, WebAssembly
from pyodide.ffi import JsException, to_js

# (module (func (drop (f32x4.relaxed_madd (v128.const …) (v128.const …) (v128.const …)))))
_RELAXED = (
    b"\0asm\1\0\0\0\1\4\1\x60\0\0\3\2\1\0\n\x3e\1\x3c\0" + (b"\xfd\x0c" + bytes(16)) * 3 + b"\xfd\x85\x02\x1a\x0b"
)


def has_relaxed_simd():
    """Whether this browser has relaxed SIMD."""
    return bool(WebAssembly.validate(to_js(_RELAXED)))


class BrowserModule:
    """A compiled module. Instances have memories of their own."""

    def __init__(self, source):
        try:
            self.module = WebAssembly.Module.new(to_js(source))
        except JsException as error:
            raise ValueError("the browser refuses it: {}".format(error.message))

    def instance(self):
        return BrowserInstance(WebAssembly.Instance.new(self.module))


class BrowserInstance:
    """A memory, and the function that runs the plan over it."""

    def __init__(self, instance):
        self._run = instance.exports.run
        self._bytes = Uint8Array.new(instance.exports.memory.buffer)

    def write(self, at, data):
        self._bytes.subarray(at, at + len(data)).assign(data)

    def read(self, at, nbytes):
        return self._bytes.subarray(at, at + nbytes).to_bytes()

    def run(self):
        self._run()

    def nbytes(self):
        """Bytes of the memory."""
        return self._bytes.length
