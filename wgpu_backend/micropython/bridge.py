"""How MicroPython's Wasm build reaches WebGPU: through JavaScript functions, and a channel for bytes between the two
memories.

`bridge` holds the functions, which take positional arguments. One that creates an object returns None if JavaScript
threw; `bridge.take(None)` then returns the error. `port` carries bytes: `write` sends them to where the last call
aimed, `readinto` fetches them from there.
"""

import js

_PORT = "/dev/emberlet-webgpu"

try:
    # The module that the page imported and registered: a content security policy may forbid eval.
    import emberlet_webgpu as bridge
except ImportError:
    from .script import SCRIPT

    try:
        bridge = js.eval(SCRIPT)
    except Exception as error:
        from emberlet.errors import BackendError

        raise BackendError(
            "JavaScript's eval failed (" + str(error) + "): a page whose content security policy forbids it "
            "must register webgpu.mjs, as docs/browser.md shows"
        )
bridge.mount(_PORT)
port = open(_PORT, "r+b")
