"""Measurements on a real GPU (peak arithmetic, large products, large models), and their pages of results."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _gpu_models import matrices, model_input
from _gpu_peers import best, in_a_row

RESULTS = Path(__file__).resolve().parent / "results"
DTYPES = ("float32", "float16")
# Independent chains of multiply-adds: enough to hide the latency of each.
CHAINS = 16
MULTIPLY_ADD = """{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = {{ flat }};
    let factor = vec4<{{ type }}>({{ type }}(in0[0]));
{{ start }}
    for (var step = 0u; step < {{ steps }}u; step++) {
{{ body }}
    }
    if (i < {{ count }}u) {
        out[i] = f32(dot({{ total }}, factor));
    }
}
"""


def results_page(name: str, device: Any) -> Path:
    """results/NAME.md for a software device; for a real GPU, a page with its name."""
    from emberlet.wgpu_backend.kernels.table import Options

    if Options.of(device).software:
        return RESULTS / f"{name}.md"
    info = device.raw.adapter_info
    gpu = re.sub("[^a-z0-9]+", "-", (info["device"] or info["description"]).lower()).strip("-")
    return RESULTS / f"{name}-{gpu}.md"


def seconds_on_device(backend: Any, planned: Any, inputs: list[Any]) -> float:
    """Seconds of one run of a compiled function's dispatches, of many in one submission; inputs are written once."""
    raw = backend.device.raw
    program = planned.program
    program.prepare()
    for (number, _), words in zip(program.inputs, planned.words(inputs), strict=True):
        program.device.write(program.allocations[number], words)
    output = program.allocations[program.results[0][0]].pages[0].gpu

    def times(n: int) -> None:
        encoder = raw.create_command_encoder()
        run = encoder.begin_compute_pass()
        for _ in range(n):
            for pipeline, group, x, y, z in program.steps:
                run.set_pipeline(pipeline)
                run.set_bind_group(0, group)
                run.dispatch_workgroups(x, y, z)
        run.end()
        raw.queue.submit([encoder.finish()])
        raw.queue.read_buffer(output, 0, 4)  # waits

    return in_a_row(times)


def peak(backend: Any, dtype: str) -> float | None:
    """FLOP/s of a kernel that only multiplies and adds in registers; None if the device lacks the type."""
    from emberlet import dtypes
    from emberlet.wgpu_backend.compiled import compile

    if dtype == "float16" and not backend.half:
        return None
    software = backend.options.software
    invocations, steps = (1 << 10, 1 << 8) if software else (1 << 20, 1 << 9)
    names = [f"a{c}" for c in range(CHAINS)]
    type = "f16" if dtype == "float16" else "f32"
    values = {
        "type": type,
        "steps": steps,
        "start": "\n".join(f"    var {a} = factor * {type}({c}.125) + {type}(lane);" for c, a in enumerate(names)),
        "body": "\n".join(f"        {a} = fma({a}, factor, factor);" for a in names),
        "total": " + ".join(names),
    }

    def work(x: Any) -> Any:
        groups = (invocations, 64)
        return backend.launch("multiply_add", MULTIPLY_ADD, [x], dtypes.float32, (invocations,), groups, values)

    x = backend.from_list([0.5] * 4, dtypes.float32, (4,))
    planned = compile(work, x, backend=backend).planned()
    return invocations * steps * CHAINS * 4 * 2 / seconds_on_device(backend, planned, [x])


def product(backend: Any, dtype: str, n: int, tune: bool) -> float:
    """Seconds of a product of two n × n matrices that stay on the device."""
    from emberlet import dtypes
    from emberlet.wgpu_backend.compiled import compile

    host = backend.host
    a, b = (host.from_bytes(x.tobytes(), dtypes.BY_NAME[dtype], x.shape) for x in matrices(n, dtype))
    compiled = compile(lambda a, b: a @ b, a, b, backend=backend, tune=tune)
    planned = compiled.planned()
    try:
        return seconds_on_device(backend, planned, [a, b])
    finally:
        planned.program.release()


def model(backend: Any, path: Path, tune: bool) -> tuple[Callable[[], float], dict[str, int]]:
    """(a function that measures a call of the model with its result on the host, the summary of its plan)."""
    import onnx
    from emberlet import dtypes
    from emberlet.codegen import load
    from emberlet.wgpu_backend.compiled import compile

    value = model_input(path)[1]
    x = backend.host.from_bytes(value.tobytes(), dtypes.float32, value.shape)
    compiled = compile(load(onnx.load(path), backend, name=path.stem), x, backend=backend, tune=tune)
    compiled(x)
    return lambda: best(lambda: compiled(x)), compiled.plan().summary()
