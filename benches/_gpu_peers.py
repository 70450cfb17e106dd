"""tinygrad and torch, each in its own process, which reads a task per line and answers with its best seconds.

Works: "matmul N" (float32, the result on the host), "product DTYPE N" (a product whose operands and result stay on the
device, many in a row), or the path of an ONNX model (the result on the host). torch runs a model's graph operator by
operator, for which its Python needs onnx too.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _gpu_models import matrices, model_input


def best(call: Callable[[], Any], seconds: float = 1.5, at_least: int = 4) -> float:
    """The best time of as many calls as fit into `seconds`."""
    shortest = float("inf")
    end = time.perf_counter() + seconds
    count = 0
    while count < at_least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        shortest = min(shortest, time.perf_counter() - start)
        count += 1
    return shortest


def in_a_row(times: Callable[[int], Any]) -> float:
    """Seconds of one run, of many in a row. times(n): does n runs and waits for the last."""
    times(1)
    begin = time.perf_counter()
    times(2)
    count = max(1, min(500, int(0.4 / (time.perf_counter() - begin))))
    return best(lambda: times(count), 1.0) / count


class Tinygrad:
    """tinygrad on the device that DEV names."""

    def __init__(self) -> None:
        from tinygrad import Device  # type: ignore[attr-defined]

        self.device = str(Device.DEFAULT)

    def prepare(self, work: str) -> Callable[[], float]:
        from tinygrad import Device, Tensor, TinyJit  # type: ignore[attr-defined]

        kind, *rest = work.split()
        if kind in ("matmul", "product"):
            a, b = (Tensor(x).realize() for x in matrices(int(rest[-1]), rest[0] if kind == "product" else "float32"))
            product = TinyJit(lambda a, b: (a @ b).realize())
            if kind == "matmul":
                return lambda: best(lambda: product(a, b).numpy())

            def times(n: int) -> None:
                for _ in range(n):
                    product(a, b)
                Device[Device.DEFAULT].synchronize()

            return lambda: in_a_row(times)
        from tinygrad.nn.onnx import OnnxRunner

        label, value = model_input(Path(work))
        runner = OnnxRunner(work)
        forward = TinyJit(lambda x: next(iter(runner({label: x}).values())).realize())
        x = Tensor(value).realize()
        return lambda: best(lambda: forward(x).numpy())


class Torch:
    """torch on CUDA or Apple's GPU, else on the processor."""

    def __init__(self) -> None:
        import torch  # type: ignore[import-not-found]

        cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
        self.kind = "cuda" if cuda else "mps" if mps else "cpu"
        self.device = torch.cuda.get_device_name() if cuda else self.kind

    def _wait(self) -> None:
        import torch

        if self.kind != "cpu":
            getattr(torch, self.kind).synchronize()

    def prepare(self, work: str) -> Callable[[], float]:
        import torch

        kind, *rest = work.split()
        if kind == "product":
            a, b = (torch.from_numpy(x).to(self.kind) for x in matrices(int(rest[1]), rest[0]))

            def times(n: int) -> None:
                for _ in range(n):
                    a @ b
                self._wait()

            return lambda: in_a_row(times)
        from _torch_graph import Graph

        graph = Graph(work, self.kind)
        x = torch.from_numpy(model_input(Path(work))[1]).to(self.kind)

        def forward() -> Any:
            with torch.inference_mode():
                return graph(x).cpu()

        return lambda: best(forward)


PEERS: dict[str, Any] = {"tinygrad": Tinygrad, "torch": Torch}


def serve(name: str) -> None:
    """Answer every line of standard input until it ends."""
    peer = PEERS[name]()
    prepared: dict[str, Callable[[], float]] = {}
    print(json.dumps(peer.device), flush=True)
    for line in sys.stdin:
        work = line.rstrip("\n")
        try:
            if work not in prepared:
                prepared[work] = peer.prepare(work)
            print(json.dumps(prepared[work]()), flush=True)
        except Exception as error:
            print(json.dumps(f"{type(error).__name__}: {error}"[:200].replace("\n", " ")), flush=True)


class Peer:
    """A peer in its own process. device: where it computes. Raises RuntimeError if it does not start."""

    def __init__(self, name: str, python: str, environment: dict[str, str]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [python, __file__, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **environment},
            encoding="utf-8",
        )  # fmt: skip
        self.device = str(self._read())

    def _read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {self.name} process ended with status {self.process.wait()}")
        return json.loads(line)

    def time(self, work: str) -> float | str:
        """The peer's best seconds, or what went wrong."""
        assert self.process.stdin
        self.process.stdin.write(work + "\n")
        self.process.stdin.flush()
        found: float | str = self._read()
        return found

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def tinygrad_environment(device: str = "WEBGPU") -> dict[str, str]:
    """The environment variables that make tinygrad compute on a device; "WEBGPU" is Dawn's."""
    environment = {"DEV": device}
    if device == "WEBGPU":
        import pydawn  # type: ignore[import-untyped]

        folder = Path(pydawn.__file__).parent / "lib"
        suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
        found = sorted(folder.glob(f"*{platform.machine()}*.{suffix}")) or sorted(folder.glob(f"*.{suffix}"))
        environment["WEBGPU_PATH"] = str(found[0])
    return environment


def tinygrad_peer(device: str = "WEBGPU") -> Peer:
    """tinygrad with DEV=device."""
    import importlib.metadata

    environment = tinygrad_environment(device)
    peer = Peer("tinygrad", sys.executable, environment)
    peer.name = f"tinygrad {importlib.metadata.version('tinygrad')}"
    return peer


if __name__ == "__main__":
    serve(sys.argv[1])
