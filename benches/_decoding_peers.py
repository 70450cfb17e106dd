"""What else decodes tokens on WebGPU: onnxruntime-web in Chromium, and tinygrad (DEV=WEBGPU) in a process of its own.

Each gives the tokens and the milliseconds of each, fewer where its seconds are over, but four at least.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Decoded = tuple[list[int], list[float]]


def onnxruntime_web(model: bytes, sizes: Any, prompt: list[int], count: int, seconds: float) -> Decoded:
    """On onnxruntime-web's WebGPU in Chromium; the caches stay in the GPU's memory."""
    import _browser_peers

    if not _browser_peers.are_installed():
        raise RuntimeError("onnxruntime-web is not installed")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "decoder.onnx").write_bytes(model)
        job = {"model": "/work/decoder.onnx", "prompt": prompt, "count": count, "seconds": seconds}
        job |= {"layers": sizes.layers, "heads": sizes.heads, "size": sizes.width // sizes.heads}
        limit = int(1000 * (seconds + 300))
        with _browser_peers.opened("decoding.html", folder, folder) as (_, page):
            found = page.evaluate("(x) => decode(x)", job, timeout=limit)
    return found["tokens"], found["times"]


def tinygrad(model: bytes, sizes: Any, prompt: list[int], count: int, seconds: float) -> Decoded:
    """On tinygrad's WebGPU; the caches stay in the GPU's memory. Each length compiles kernels of its own."""
    from _gpu_peers import tinygrad_environment

    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "decoder.onnx"
        path.write_bytes(model)
        job = {"model": str(path), "prompt": prompt, "count": count, "seconds": seconds, "layers": sizes.layers}
        job |= {"heads": sizes.heads, "size": sizes.width // sizes.heads}
        command = [sys.executable, __file__, json.dumps(job)]
        environment = {**os.environ, **tinygrad_environment()}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=seconds + 300
        )
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
        found = json.loads(done.stdout.splitlines()[-1])
    return found["tokens"], found["times"]


def _tinygrad(job: dict[str, Any]) -> None:
    from tinygrad import Tensor, dtypes  # type: ignore[attr-defined]
    from tinygrad.nn.onnx import OnnxRunner

    runner = OnnxRunner(job["model"])
    names = [f"past_key_values.{i}.{what}" for i in range(job["layers"]) for what in ("key", "value")]
    caches: dict[str, Any] = {}

    def step(tokens: list[int]) -> int:
        given = {"tokens": Tensor([tokens], dtype=dtypes.int64), **caches}
        if not caches:
            given.update({name: Tensor.zeros(1, job["heads"], 0, job["size"]) for name in names})
        found = runner(given)
        for name in names:
            caches[name] = found[name.replace("past_key_values", "present")].realize()
        return int(found["logits"].numpy()[0, -1].argmax())

    token = step(job["prompt"])
    tokens, times = [], []
    end = time.perf_counter() + job["seconds"]
    while len(tokens) < job["count"] and (len(tokens) < 4 or time.perf_counter() < end):
        tokens.append(token)
        begin = time.perf_counter()
        token = step([token])
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"tokens": tokens, "times": times}))


if __name__ == "__main__":
    _tinygrad(json.loads(sys.argv[1]))
