"""Many threads that use the library for the first time at once: each gets what a single thread gets, on one backend."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.every_backend import WGPU

SCRIPT = """
import sys, threading
import numpy as np
import emberlet

name = sys.argv[1]
values = np.linspace(-2, 2, 24).reshape(4, 6).astype("float32")
CALLS = {
    "shared": lambda F, x: shared.append(x) or shared[0] + x,  # one backend, whoever opened it
    "randint": lambda F, x: F.randint(0, 9, (5,), seed=3, backend=x.backend),
    "uniform": lambda F, x: F.uniform((5,), seed=3, backend=x.backend),
    "erf": lambda F, x: F.erf(x),
    "pow": lambda F, x: F.abs(x) ** 1.5,
    "integers": lambda F, x: x.astype("int32") // 2 % 3,
    "softmax": lambda F, x: F.softmax(x, 1),
    "product": lambda F, x: x @ x.T,
    "sort": lambda F, x: F.sort(x, axis=1),
    "float16": lambda F, x: F.exp(x.astype("float16")),
}
shared, wrong = [], []
sys.setswitchinterval(1e-6)
for call, function in CALLS.items():
    together, found = threading.Barrier(8), []

    def work():
        together.wait()
        try:
            from emberlet import functional as F

            found.append(function(F, emberlet.asarray(values, backend=name)).tolist())
        except Exception as error:
            wrong.append(call + ": " + repr(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    if any(f != found[0] for f in found):
        wrong.append(call + ": the threads' results differ")
print("\\n".join(wrong))
"""


@pytest.mark.parametrize("name", ["python", "numpy", WGPU])
def test_threads_may_make_the_first_call_together(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, name], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stdout.strip(), done.stdout[-3000:]
