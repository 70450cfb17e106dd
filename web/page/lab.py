"""The page's models: any generated module with its weights, the same under Pyodide and under MicroPython.

JavaScript hands over bytes in files (/in0, /out0 …) and reads the answers from /answer.json.
"""

import json
import sys

import emberlet
import js
from emberlet import dtypes

_state = {}


def _tell(answer):
    with open("/answer.json", "wb") as file:
        file.write(json.dumps(answer).encode())


def version():
    """The interpreter's name and version."""
    name = {"cpython": "CPython", "micropython": "MicroPython"}.get(sys.implementation.name, sys.implementation.name)
    return name + " " + ".".join([str(part) for part in sys.implementation.version[:3]])


def generate(path):
    """Generate Python from an ONNX file, into /model. Needs CPython."""
    from emberlet import codegen

    made = codegen.generate(path, "/model")
    _tell({"module": str(made.module), "weights": str(made.weights), "structure": codegen.inspect(path)})


async def load(module, weights, device):
    """The model of a module, on "python", "wasm" or "wgpu"."""
    if device == "wgpu":
        from emberlet.wgpu_backend.device import open_device_async

        await open_device_async()
    backend = emberlet.get_backend(device)
    found = None
    names = __import__(module).__dict__
    for name in names:
        kind = names[name]
        if isinstance(kind, type) and getattr(kind, "INPUTS", None) and hasattr(kind, "from_file"):
            found = kind
    if found is None:
        raise ValueError("the module has no generated model: no class with INPUTS")
    _state["backend"] = backend
    _state["model"] = found.from_file(weights, backend=backend)
    _state["class"] = found
    _state["compiled"] = None
    _tell(
        {
            "name": found.__name__,
            "inputs": [_port(port) for port in found.INPUTS],
            "outputs": [port[0] for port in found.OUTPUTS],
            "parameters": _state["model"].num_params(),
            "adapter": backend.device.raw.adapter.summary if device == "wgpu" else None,
            "version": version(),
        }
    )


def _port(port):
    name, dtype, shape = port
    return {"name": name, "dtype": str(dtype), "shape": list(shape)}


async def run(shapes, again):
    """Run on the files of the inputs, which have these shapes, and `again` times more to time later runs, in ms."""
    backend = _state["backend"]
    given = []
    for i in range(len(shapes)):
        dtype = dtypes.BY_NAME[str(_state["class"].INPUTS[i][1])]
        count = 1
        for size in shapes[i]:
            count *= size
        content = bytearray(dtype.nbytes(count))  # MicroPython's `read()` grows its result by 256 bytes at a time
        with open(f"/in{i}", "rb") as file:
            file.readinto(content)
        given.append(backend.from_bytes(content, dtype, tuple(shapes[i])))
    begin = js.performance.now()
    compile_ms = None
    if backend.name != "python" and _state.get("shapes") != shapes:
        _state["compiled"] = _state["model"].compile(*given, backend=backend)
        compile_ms = js.performance.now() - begin
        _state["shapes"] = shapes
        begin = js.performance.now()
    results = await _results(given)
    times = [js.performance.now() - begin]
    for _ in range(again):
        begin = js.performance.now()
        await _results(given)
        times.append(js.performance.now() - begin)
    _state["given"] = given
    outputs = []
    for i in range(len(results)):
        x, content = results[i]
        with open(f"/out{i}", "wb") as file:
            file.write(content)
        outputs.append({"dtype": str(x.dtype), "shape": list(x.shape)})
    _tell({"outputs": outputs, "compile": compile_ms, "times": times, "threads": _threads()})


def _threads():
    """How many threads the next run has in WebAssembly; None elsewhere and for a model that is not a single plan."""
    compiled = _state["compiled"]
    if _state["backend"].name != "wasm" or compiled.cut is not None:
        return None
    return compiled.planned().program.threads()


async def _results(given):
    """[(Tensor, its bytes)]: the results, once they are on the host."""
    compiled = _state["compiled"]
    out = await compiled.call_async(*given) if compiled else _state["model"](*given)
    found = []
    for x in list(out) if isinstance(out, tuple) else [out]:
        if not hasattr(x, "backend"):
            raise ValueError(f"an output is a {type(x).__name__}, not a tensor; the page shows only tensors")
        found.append((x, bytes((await x.to_data_async()).bytes)))
    return found


async def profile():
    """The time of each dispatch of the last run, in ms."""
    compiled = _state["compiled"]
    if not compiled or _state["backend"].name != "wgpu":
        raise ValueError("only kernels on the GPU are measured, after a run")
    from emberlet.wgpu_backend.run.stepwise import measure

    _tell(await measure(compiled.planned(*_state["given"]).program, lambda: js.performance.now()))
