"""The memory of results on the numpy backend."""

import os
import platform
import subprocess
import sys

import emberlet
import ml_dtypes
import numpy as np
import pytest

FAULTS = """
import resource
import emberlet
from emberlet import functional as F

x = emberlet.zeros((64, 111, 111), backend="numpy")
for _ in range(3):
    F.relu(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    F.relu(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how glibc keeps freed memory")
def test_a_large_result_takes_the_memory_of_the_last_one():
    # 3 MB are 770 pages: a page fault for each of them, each time, if the memory had gone back to the system.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert int(done.stdout) < 770


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_a_scalar_takes_no_reference_from_its_dtype(name):
    """NumPy before 2.1.3 took one at each call, and the process crashed when none was left."""
    held = np.dtype(getattr(ml_dtypes, name))
    before = sys.getrefcount(held)
    for _ in range(200):
        emberlet.full((), 1, dtype=getattr(emberlet, name), backend="numpy")
    assert abs(sys.getrefcount(held) - before) < 100
