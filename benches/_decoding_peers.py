"""Decoding on WebGPU: onnxruntime-web and emberlet in Chromium, and tinygrad (DEV=WEBGPU) in its own process.

Each returns the tokens and the milliseconds of each: at least four, and fewer than requested if time runs out.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

Decoded = tuple[list[int], list[float]]
REPLAYS = 3
COMPILING = 1200  # seconds that tinygrad may take to compile its kernels


def in_chromium(engine: str, model: bytes, sizes: Any, prompt: list[int], count: int, seconds: float) -> Decoded:
    """Decode on WebGPU in Chromium with "onnxruntime" (onnxruntime-web) or "emberlet" (in Pyodide). The caches stay in
    the GPU's memory."""
    import _browser_peers

    if not _browser_peers.are_installed():
        raise RuntimeError("onnxruntime-web is not installed")
    import build_page

    with tempfile.TemporaryDirectory() as temporary:
        site, folder = Path(temporary, "site"), Path(temporary, "work")
        site.mkdir()
        folder.mkdir()
        if engine == "emberlet":
            build_page.build_runtimes(site)
            build_page.build_packages(site / "packages")
        (folder / "decoder.onnx").write_bytes(model)
        job = {"engine": engine, "model": "/work/decoder.onnx", "prompt": prompt, "count": count, "seconds": seconds}
        job |= {"layers": sizes.layers, "heads": sizes.heads, "size": sizes.width // sizes.heads}
        limit = int(1000 * (seconds + 300))
        with _browser_peers.opened("decoding.html", site, folder) as (_, page):
            found = page.evaluate("(x) => decode(x)", job, timeout=limit)
    return found["tokens"], found["times"]


def tinygrad(model: bytes, sizes: Any, prompt: list[int], count: int, seconds: float, notes: list[str]) -> Decoded:
    """Decode on tinygrad's WebGPU. The caches stay in the GPU's memory. TinyJit compiles each length before it is
    timed; `notes` says how long that took."""
    from _gpu_peers import tinygrad_environment

    if not shutil.which("clang"):
        raise RuntimeError("tinygrad compiles with clang; install it: apt-get install clang")
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "decoder.onnx"
        path.write_bytes(model)
        job = {"model": str(path), "prompt": prompt, "count": count, "seconds": seconds, "layers": sizes.layers}
        job |= {"heads": sizes.heads, "size": sizes.width // sizes.heads}
        command = [sys.executable, __file__, json.dumps(job)]
        environment = {**os.environ, **tinygrad_environment()}
        limit = seconds + COMPILING
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"four tokens took more than {limit:.0f} seconds, with compiling") from None
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a message"])[-1])
        found = json.loads(done.stdout.splitlines()[-1])
    compiling = statistics.median(found["compiling"])
    notes.append(f"tinygrad: {compiling:.0f} s to compile the kernels of one length, not in its figures")
    return found["tokens"], found["times"]


def _mat_mul_n_bits(x: Any, packed: Any, scales: Any, *, K: int, N: int, bits: int, block_size: int, **_: Any) -> Any:
    """The operator that tinygrad's reader lacks, by its tensors: dequantized within the product's kernel."""
    from tinygrad import dtypes

    assert bits == 4
    blocks = packed.reshape(N, K // block_size, block_size // 2)
    levels = blocks.bitwise_and(15).unsqueeze(-1).cat(blocks.rshift(4).unsqueeze(-1), dim=-1)
    levels = levels.reshape(N, K // block_size, block_size).cast(dtypes.float32) - 8
    return x @ (levels * scales.reshape(N, K // block_size, 1)).reshape(N, K).transpose()


def _tinygrad(job: dict[str, Any]) -> None:
    from tinygrad import Tensor, TinyJit, dtypes  # type: ignore[attr-defined]
    from tinygrad.nn.onnx import OnnxRunner

    runner = OnnxRunner(job["model"])
    runner.onnx_ops = {**runner.onnx_ops, "MatMulNBits": _mat_mul_n_bits}
    names = [f"past_key_values.{i}.{what}" for i in range(job["layers"]) for what in ("key", "value")]

    def step(tokens: Any, *caches: Any) -> list[Any]:
        """The most likely next token, and the caches."""
        found = runner({"tokens": tokens, **dict(zip(names, caches, strict=True))})
        results = [found["logits"][0, -1].argmax()]
        results += [found[name.replace("past_key_values", "present")] for name in names]
        return [t.contiguous().realize() for t in results]

    def forget_lengths() -> None:
        """Otherwise the runner would require the first step's lengths of every step."""
        runner.variable_dims.clear()
        runner._python_const_cache.clear()

    empty = [Tensor.zeros(1, job["heads"], 0, job["size"]) for _ in names]
    token, *caches = step(Tensor([job["prompt"]], dtype=dtypes.int64), *empty)
    tokens: list[int] = []
    times, compiling = [], []
    end = time.perf_counter() + job["seconds"]
    while len(tokens) < job["count"] and (len(tokens) < 4 or time.perf_counter() < end):
        tokens.append(int(token.item()))
        given = Tensor([tokens[-1:]], dtype=dtypes.int64).contiguous().realize()
        forget_lengths()
        compiled = TinyJit(step)
        begin = time.perf_counter()
        for _ in range(2):  # TinyJit runs a function once, and records it at the second call
            compiled(given, *caches)[0].item()
        compiling.append(time.perf_counter() - begin)
        replays = []
        for _ in range(REPLAYS):
            begin = time.perf_counter()
            token, *grown = compiled(given, *caches)
            token.item()
            replays.append(1e3 * (time.perf_counter() - begin))
        times.append(min(replays))
        token, *caches = [t.clone().realize() for t in (token, *grown)]  # TinyJit's results are its own memory
    print(json.dumps({"tokens": tokens, "times": times, "compiling": compiling}))


if __name__ == "__main__":
    _tinygrad(json.loads(sys.argv[1]))
