"""In a browser tab without a GPU: emberlet's WebAssembly beside onnxruntime-web's and jax-js's, on 1 thread and on 2.

One Chromium, one worker for each number of threads; the engines take turns, every call begins with the input in
JavaScript and ends with the result there, and the best of many calls counts. Writes benches/results/wasm.md. `dev.py
bench web` runs it as well. The peers are installed from benches/web/package-lock.json.

    python3 dev.py bench wasm [NAME ...]     with names of rows, these only, and nothing is written
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import _browser_peers
import _cpu_networks
import numpy as np
from _browser_peers import ROOT

ROUNDS, CALLS = 12, 5
LONG = 20  # ms of a call that is measured once a round
SIZE = 512
THREADS = (1, 2)
TOKENS = (1, 32, 128)
RATE = 16000  # Hz, of silero
NAMES = {"onnxruntime": "onnxruntime-web 1.30.0", "jax": "jax-js 0.1.25"}
Array = np.ndarray[Any, np.dtype[np.float32]]


class Work(NamedTuple):
    """One row of the table: a compiled model, its inputs, and the equivalent work of its peers.

    asked: peer -> how many times as fast as the peer emberlet should be.
    """

    name: str
    module: Path
    inputs: tuple[Array, ...]
    names: tuple[str, ...]
    peers: tuple[str, ...]
    asked: float
    expected: Array
    model: Path
    constants: dict[str, int]  # inputs that emberlet's module holds as constants, for the peers


class Line(NamedTuple):
    """The measurements by engine: milliseconds of each call, and the error."""

    work: Work
    times: dict[str, list[float]]
    error: dict[str, float]
    threads: int


def works(folder: Path, names: Sequence[str] = ()) -> list[Work]:
    """The rows to measure, those of `names` unless it is empty; their modules are written to `folder`."""
    import emberlet
    import onnx.helper
    import onnxruntime
    from emberlet import codegen
    from emberlet.wgpu_backend import plan_file
    from gpu import models

    rng = np.random.default_rng(0)
    product = folder / "product.onnx"
    square = [SIZE, SIZE]
    _save(product, [onnx.helper.make_node("MatMul", ["a", "b"], ["c"])], {"a": square, "b": square}, {"c": square}, {})
    found = []
    everything = [(name, path, ("onnxruntime",), 1.0) for name, path in models().items()]
    everything.append((f"matmul {SIZE}", product, ("onnxruntime", "jax"), 1.2))
    everything += [(name, path, ("onnxruntime",), 1.0) for name, path in _of_8_bits(folder).items()]
    everything += [(name, path, ("onnxruntime",), 1.0) for name, path in _networks(folder, names).items()]
    for name, path, peers, asked in everything:
        if names and name not in names:
            continue
        session = onnxruntime.InferenceSession(str(path))
        constants = {i.name: RATE for i in session.get_inputs() if i.type == "tensor(int64)"}
        wanted = [i for i in session.get_inputs() if i.name not in constants]
        given = _cpu_networks.SHAPES[name] if name in ("silero", "yolov8n_320") else [i.shape for i in wanted]
        shapes = [tuple(d if isinstance(d, int) else 1 for d in shape) for shape in given[: len(wanted)]]
        inputs = tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
        ports = tuple(i.name for i in wanted)
        fixed = {port: np.array(value) for port, value in constants.items()}
        expected = session.run(None, {**dict(zip(ports, inputs, strict=True)), **fixed})[0]
        module = folder / f"{name.replace(' ', '_')}.wasm"
        tensors = [emberlet.asarray(x, backend="numpy") for x in inputs]
        plan_file.save(str(module), codegen.load(str(path), backend="numpy", freeze=constants), *tensors)
        found.append(Work(name, module, inputs, ports, peers, asked, expected, path, constants))
    return found


def _networks(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    """silero, SqueezeNet with 8-bit integers (QDQ), an encoder as large as MiniLM's, float and with 8-bit weights, and
    YOLOv8n: those that are there."""
    from _gpu_models import encoder, light
    from onnxruntime.quantization import QuantType, quantize_dynamic

    found = {name: _cpu_networks.source(name) for name in ("silero", "yolov8n_320") if not _cpu_networks.missing(name)}
    if not names or "squeezenet QDQ" in names:
        found["squeezenet QDQ"] = _cpu_networks.quantized("squeezenet_qdq", light("squeezenet"))
    for tokens in TOKENS:
        name = f"minilm, {tokens} tokens"
        found[name] = encoder(6, 384, 12, tokens)
        if not names or f"{name}, int8" in names:
            path = folder / f"minilm{tokens}.int8.onnx"
            quantize_dynamic(str(found[name]), str(path), weight_type=QuantType.QInt8)
            found[f"{name}, int8"] = path
    return found


def _of_8_bits(folder: Path) -> dict[str, Path]:
    """Models whose weights and activations are 8-bit integers: a dense layer, a convolution."""
    from onnx.helper import make_node

    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (SIZE, SIZE)).astype(np.int8)
    kernel = rng.integers(-127, 128, (64, 64, 3, 3)).astype(np.int8)
    zero, middle = np.array(0, np.int8), np.array(128, np.uint8)
    dense, convolution = folder / "dense8.onnx", folder / "conv8.onnx"
    nodes = [
        make_node("DynamicQuantizeLinear", ["a"], ["q", "scale", "zero"]),
        make_node("MatMulInteger", ["q", "weight", "zero"], ["sum"]),
        make_node("Cast", ["sum"], ["real"], to=1),
        make_node("Mul", ["real", "scale"], ["c"]),
    ]
    _save(dense, nodes, {"a": [SIZE, SIZE]}, {"c": [SIZE, SIZE]}, {"weight": weight})
    nodes = [
        make_node("QuantizeLinear", ["x", "xs", "middle"], ["q"]),
        make_node("QLinearConv", ["q", "xs", "middle", "kernel", "ws", "no", "ys", "middle"], ["r"], pads=[1] * 4),
        make_node("DequantizeLinear", ["r", "ys", "middle"], ["y"]),
    ]
    scales = {"xs": np.float32(0.03), "ws": np.float32(0.01), "ys": np.float32(0.5), "middle": middle, "no": zero}
    image = [1, 64, 56, 56]
    _save(convolution, nodes, {"x": image}, {"y": image}, {"kernel": kernel, **scales})
    return {f"matmul {SIZE}, 8 bits": dense, "conv 64 of 56x56, 8 bits": convolution}


def _save(
    path: Path, nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], weights: dict[str, Any]
) -> None:
    """An ONNX file of float32 inputs and outputs."""
    import onnx

    ports = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in named.items()]
        for named in (inputs, outputs)
    ]
    constants = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = onnx.helper.make_graph(nodes, path.stem, *ports, constants)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10), path)


def ceiling() -> bytes:
    """A module whose `run` does the multiply-adds of a product of two SIZE by SIZE matrices, all in registers."""
    from emberlet.wgpu_backend.wasm.assembler import Function, f32x4, i32, memory, module, op

    sums, turns = 12, 4
    f = Function("run", ())
    left, step = f.local("i32"), f.local("v128")
    totals = [f.local("v128") for _ in range(sums)]
    f.set(step, memory("v128.load", i32(0)))
    f.set(left, i32(SIZE**3 // (4 * sums * turns)))
    f.begin_loop()
    for total in totals * turns:
        f.set(total, op("f32x4.relaxed_madd", f.get(step), f.get(step), f.get(total)))
    f.set(left, op("i32.sub", f.get(left), i32(1)))
    f.branch_if(f.get(left), 0)
    f.end()
    whole = f32x4(0.0)
    for total in totals:
        whole = op("f32x4.add", whole, f.get(total))
    f.do(memory("v128.store", i32(16), whole))
    return module([("run", f.finish())], ["run"], 1)


class Visit(NamedTuple):
    """A fresh tab: milliseconds to the first result, and bytes that were loaded and that the tab then holds."""

    start: float
    loaded: int
    memory: int


def _job(work: Work, folder: Path, threads: int) -> dict[str, Any]:
    """What wasm_worker.mjs is asked to load; the files are written to `folder`."""
    urls = []
    for i, x in enumerate(work.inputs):
        path = folder / f"{work.module.stem}.input{i}"
        path.write_bytes(x.tobytes())
        urls.append(f"/work/{path.name}")
    if work.model.parent != folder:
        (folder / work.model.name).write_bytes(work.model.read_bytes())
    return {
        "module": f"/work/{work.module.name}",
        "model": f"/work/{work.model.name}",
        "inputs": urls,
        "shapes": [list(x.shape) for x in work.inputs],
        "names": list(work.names),
        "constants": work.constants,
        "threads": threads,
    }


def visit(browser: Any, url: str, work: Work, folder: Path) -> dict[str, Visit]:
    """Each engine in a tab of its own, with an empty cache and one thread."""
    found = {}
    job = {**_job(work, folder, 1), "visit": True}
    for engine in ("emberlet", *work.peers):
        page = browser.open(url)
        page.wait("() => globalThis.loaded")
        answer = page.evaluate(
            "(x) => prepare(x)", {"engine": engine, "key": f"{engine} {work.name}", "job": job}, timeout=240000
        )
        memory = answer["memory"] + page.evaluate("() => memory()", timeout=120000)
        found[engine] = Visit(answer["start"], answer["bytes"], memory)
        page.close()
    print(f"  {work.name}, fresh tabs: {found}", flush=True)
    return found


def measure(page: Any, work: Work, folder: Path, threads: int) -> Line:
    """Start each engine, then let them take turns."""
    job = _job(work, folder, threads)
    times, error = {}, {}
    slowest = 0.0
    scale = np.abs(work.expected).max()
    engines = ["emberlet", *work.peers]
    if "jax" in engines:
        (folder / "ceiling.wasm").write_bytes(ceiling())
        engines.append("ceiling")
    for engine in engines:
        if threads > 1 and engine == "ceiling":
            continue
        key = f"{engine} {work.name}"
        answer = page.evaluate("(x) => prepare(x)", {"engine": engine, "key": key, "job": job}, timeout=240000)
        assert answer["threads"] == threads or engine == "emberlet", (key, answer["threads"])
        if engine != "ceiling":
            error[engine] = float(np.abs(np.array(answer["result"]) - work.expected.ravel()).max() / scale)
        times[engine] = list[float]()
        slowest = max(slowest, *page.evaluate("(x) => measure(x)", {"key": key, "calls": 1, "threads": threads}))
    calls = CALLS if slowest < LONG else 1
    for _ in range(ROUNDS):
        for engine in times:
            key = f"{engine} {work.name}"
            times[engine] += page.evaluate(
                "(x) => measure(x)", {"key": key, "calls": calls, "threads": threads}, timeout=240000
            )
    told = ", ".join(f"{engine} {min(found):.2f} ms" for engine, found in times.items())
    print(f"  {work.name}, {threads} threads: {told}", flush=True)
    return Line(work, times, error, threads)


def table(lines: list[Line], visits: dict[str, dict[str, Visit]], chromium: str) -> list[str]:
    """The lines of the page after its title."""
    out = [
        f"Chromium {chromium}, WebAssembly in a worker. Milliseconds a call, result in JavaScript, best (median) of",
        f"{ROUNDS * CALLS} ({ROUNDS} of those that take {LONG} ms), in turns; written by `python3 dev.py bench wasm`.",
        "A turn begins with a pause of 50 ms, as onnxruntime's threads are busy for some 15 ms after a run.",
        "*threads* is what both may use. jax-js uses as many as `navigator.hardwareConcurrency` says, which is set to",
        "that number for it, and computes in the calling thread where memory cannot be shared, as for its row of one.",
        "Errors are against onnxruntime on the CPU, relative to the largest element. *target* is the required ratio.",
        "",
        "| work | threads | emberlet | peer | peer's | ratio | target | error | its error |",
        "|---|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for x in lines:
        own = x.times["emberlet"]
        for peer in x.work.peers:
            if peer not in x.times:
                continue
            other = x.times[peer]
            out.append(
                f"| {x.work.name} | {x.threads} | {min(own):.2f} ({median(own):.2f}) | {NAMES[peer]} |"
                f" {min(other):.2f} ({median(other):.2f}) | {min(other) / min(own):.2f} | {x.work.asked:.1f} |"
                f" {x.error['emberlet']:.1e} | {x.error[peer]:.1e} |"
            )
    out += [
        "",
        "A fresh tab with an empty cache, on one thread: milliseconds from nothing to the first result, the downloads",
        "from this machine included; what was downloaded, compressed, the model and the engine; and what the tab holds",
        "then, the memory of WebAssembly included.",
        "",
        "| work | first result | its | MB | its | memory, MB | its |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in visits.items():
        own, other = found["emberlet"], found["onnxruntime"]
        out.append(
            f"| {name} | {own.start:.0f} | {other.start:.0f} | {own.loaded / 1e6:.2f} | {other.loaded / 1e6:.2f} |"
            f" {own.memory / 1e6:.1f} | {other.memory / 1e6:.1f} |"
        )
    for x in lines:
        if "ceiling" in x.times:
            out += [
                "",
                f"The multiply-adds of {x.work.name} alone, in registers, with nothing loaded or stored, take"
                f" {min(x.times['ceiling']):.2f} ms on this",
                "processor and one thread. The inputs are copied to the module's memory and the result from it, too.",
            ]
    return out


def section(folder: Path, names: Sequence[str] = ()) -> list[str]:
    """Measure everything, with files in `folder`. Writes benches/results/wasm.md unless there are `names` of rows;
    returns its lines after the title."""
    wanted = works(folder, names)
    package = {"/package/": ROOT / "web" / "package"}
    with _browser_peers.opened("wasm.html", folder, folder, package) as (browser, page):
        measured = [measure(page, work, folder, threads) for work in wanted for threads in THREADS]
        url = page.evaluate("() => location.href")
        visits = {work.name: visit(browser, url, work, folder) for work in wanted}
        lines = table(measured, visits, browser.version)
    if not names:
        _browser_peers.write("wasm.md", "\n".join(["# In a browser tab without a GPU", "", *lines]) + "\n")
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of works (default: all)")
    names = parser.parse_args(argv).names
    if not _browser_peers.are_installed():
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        section(Path(temporary), names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
