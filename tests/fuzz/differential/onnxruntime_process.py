"""onnxruntime in its own process, since some models that the standard does not define crash it."""

from __future__ import annotations

import atexit
import pickle
import struct
import subprocess
import sys
from typing import Any

from support.exact_sums import exact, saturates

_PROGRAM = """
import pickle, struct, sys
import onnxruntime
def exactly(n):
    data = sys.stdin.buffer.read(n)
    if len(data) < n:
        sys.exit()
    return data
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.intra_op_num_threads = 1
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
while True:
    model, fed = pickle.loads(exactly(*struct.unpack("<Q", exactly(8))))
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        found = list(session.run(None, fed))
    except Exception:
        found = None
    data = pickle.dumps(found)
    sys.stdout.buffer.write(struct.pack("<Q", len(data)) + data)
    sys.stdout.buffer.flush()
"""
_running: subprocess.Popen[bytes] | None = None


def outputs(model: bytes, fed: dict[str, Any]) -> list[Any] | None:
    """onnxruntime's results without graph optimization; None if it refuses the model or crashes."""
    global _running
    if _running is None:
        _running = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(_stop, _running)
    try:
        data = pickle.dumps((exact(model) if saturates() else model, fed))
        assert _running.stdin is not None and _running.stdout is not None
        _running.stdin.write(struct.pack("<Q", len(data)) + data)
        _running.stdin.flush()
        head = _running.stdout.read(8)
        body = _running.stdout.read(*struct.unpack("<Q", head)) if len(head) == 8 else b""
        if body:
            found: list[Any] | None = pickle.loads(body)
            return found
    except OSError:
        pass
    process, _running = _running, None
    _stop(process)
    return None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process, and its pipes."""
    process.kill()
    process.communicate()
