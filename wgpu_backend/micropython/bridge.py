"""How MicroPython's Wasm build reaches WebGPU: functions in JavaScript, and a way for bytes between the two memories.

`bridge` holds the functions, each called with positional arguments; one that makes something returns None when
JavaScript threw, and `bridge.take(None)` then tells what. `port` carries bytes: what `write` gets goes where the last
call aimed it, `readinto` fills from there.
"""

import js

_PORT = "/dev/emberlet-webgpu"

try:
    # What the page imported as a module and registered: a content security policy may forbid to evaluate texts.
    import emberlet_webgpu as bridge
except ImportError:
    from .script import SCRIPT

    try:
        bridge = js.eval(SCRIPT)
    except Exception as error:
        from emberlet.errors import BackendError

        raise BackendError(
            "JavaScript's eval failed (" + str(error) + "): a page whose content security policy forbids it "
            "registers webgpu.mjs, docs/browser.md shows how"
        )
bridge.mount(_PORT)
port = open(_PORT, "r+b")
