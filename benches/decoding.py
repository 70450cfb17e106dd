"""Decoding with a language model of 15 million parameters, compared with other runtimes.

Tokens are chosen greedily, one after the other; the results are milliseconds per token. emberlet keeps the cache in a
session of a given capacity. The caller passes the cache to the others: onnxruntime's CPU, onnxruntime-web's WebGPU in
Chromium, tinygrad's WebGPU. The last two, and emberlet in Chromium, decode --peer-tokens tokens, or as many as
--seconds allow. tinygrad needs clang. Writes benches/results/decoding.md, on a real GPU decoding-NAME.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _gpu_device import results_page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from _decoding_peers import in_chromium, tinygrad  # noqa: E402

from tools.networks.decoder import Reference, Sizes, decoder, parameters  # noqa: E402

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


def decoded(step: Callable[[list[list[int]]], Any], count: int) -> tuple[list[int], list[float]]:
    """(the tokens, milliseconds of each). The prompt comes first and is not timed."""
    logits = np.asarray(step([PROMPT]))
    tokens: list[int] = []
    times = []
    for _ in range(count):
        tokens.append(int(logits[0, -1].argmax()))
        begin = time.perf_counter()
        logits = np.asarray(step([tokens[-1:]]))
        times.append(1e3 * (time.perf_counter() - begin))
    return tokens, times


def ours(backend: str, model: Any, count: int, notes: list[str]) -> tuple[list[int], list[float]]:
    from emberlet.codegen import load

    session = load(model, backend).session(capacity=len(PROMPT) + count)
    if backend != "wgpu":
        return decoded(session.step, count)
    from emberlet.backend import get_backend

    device: Any = get_backend("wgpu")
    made: list[int] = []
    moved: list[int] = []

    def step(tokens: list[list[int]]) -> Any:
        found = np.asarray(session.step(tokens))
        made.append(device.device.created_buffers)
        moved.append(session._engine.moved)
        return found

    result = decoded(step, count)
    compiled = session._engine.compiled
    plans = len(compiled._open) + len(compiled._programs)
    each = (moved[-1] - moved[2]) / max(1, len(moved) - 3)
    notes.append(
        f"{plans} plans, GPU buffers made after the second token: {made[-1] - made[2]}, "
        f"bytes of states written or copied a token: {each:.0f}"
    )
    return result


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=256, metavar="N", help="tokens to decode (default: 256)")
    parser.add_argument("--peer-tokens", type=int, default=16, metavar="N", help="of a peer on WebGPU (default: 16)")
    parser.add_argument("--seconds", type=float, default=120, metavar="S", help="of a peer on WebGPU (default: 120)")
    parser.add_argument("--alone", action="store_true", help="without the peers on WebGPU")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead")
    options = parser.parse_args(argv)
    from emberlet.wgpu_backend.device import open_device

    lines = [
        "# Decoding",
        "",
        f"`python3 dev.py bench decoding`: {options.tokens} greedy tokens after a prompt of {len(PROMPT)}, one by one. "
        "Medians of all tokens, of the first tenth and of the last. Chromium computes on SwiftShader where there is no "
        f"GPU. In Chromium, and on tinygrad, {options.peer_tokens} tokens are decoded, fewer where these take over "
        f"{options.seconds:.0f} seconds; the last column says how many. tinygrad compiles kernels for each length, "
        "before it is timed: its figures are the least of three runs of a step that TinyJit recorded. It has no "
        "MatMulNBits; here it got one that dequantizes within the product. "
        f"GPU: {open_device().raw.adapter_info['device']}. {os.cpu_count()} CPUs, Python {platform.python_version()}; "
        f"load of the machine when it began: {os.getloadavg()[0]:.1f}. Above 1, times say little.",
        "",
        "| weights | | ms a token | first tenth | last tenth | tokens equal onnxruntime's |",
        "|---|---|---:|---:|---:|---|",
    ]
    for label, bits in (("float32", None), ("int4, MatMulNBits", 4)):
        model = decoder(bits=bits)
        notes: list[str] = []
        runs: list[tuple[str, Callable[[], tuple[list[int], list[float]]]]] = [
            ("onnxruntime, CPU", lambda model=model: decoded(Reference(model).step, options.tokens)),
            ("emberlet, wgpu", lambda model=model, notes=notes: ours("wgpu", model, options.tokens, notes)),
            ("emberlet, native", lambda model=model, notes=notes: ours("native", model, options.tokens, notes)),
            ("emberlet, numpy", lambda model=model, notes=notes: ours("numpy", model, options.tokens, notes)),
        ]
        if not options.alone:
            given = (model.SerializeToString(), Sizes(), PROMPT)
            given += (min(options.tokens, options.peer_tokens), options.seconds)
            runs += [
                ("emberlet in Chromium, WebGPU", partial(in_chromium, "emberlet", *given)),
                ("onnxruntime-web, WebGPU", partial(in_chromium, "onnxruntime", *given)),
                ("tinygrad, WebGPU", partial(tinygrad, *given, notes)),
            ]
        wanted: list[int] = []
        for name, call in runs:
            try:
                tokens, times = call()
                times[1]
            except (RuntimeError, OSError, ImportError, IndexError, subprocess.TimeoutExpired) as error:
                said = (str(error).splitlines() or ["it failed"])[0][:200].replace("|", "/")
                lines.append(f"| {label} | {name} | – | – | – | {said} |")
                print(lines[-1], flush=True)
                continue
            wanted = wanted or tokens
            tenth = max(1, len(times) // 10)
            parts = [statistics.median(t) for t in (times[1:], times[1 : tenth + 1], times[-tenth:])]
            same = sum(a == b for a, b in zip(tokens, wanted, strict=False))
            lines.append(
                f"| {label}, {parameters(model) / 1e6:.1f} M | {name} | "
                + " | ".join(f"{p:.1f}" for p in parts)
                + f" | {same} of {len(tokens)} |"
            )
            print(lines[-1], flush=True)
        lines += [f"| | {note} | | | | |" for note in notes]
    (options.out or results_page("decoding", open_device())).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
