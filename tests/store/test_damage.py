"""Damaged weight files of every format are read or refused, in little memory; killed saves lose nothing."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
from emberlet import store
from emberlet.errors import EmberletError, FormatError
from hypothesis import given, settings
from hypothesis import strategies as st
from support import weight_files
from support.processes import python

SEEDS = weight_files.seeds()
FLAT = [(kind, format, data) for kind, found in SEEDS.items() for format, data in found]
INTERESTING = [0, 1, 0x7F, 0x80, 0xFF]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, str | None, bytes]:
    """A file with bytes replaced, a part cut out or doubled, numbers made large, and an end cut off."""
    kind, format, data = draw(st.sampled_from(FLAT))
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        if not out:
            break
        # Tables of contents lie in front or, in archives, at the end.
        at = draw(st.one_of(st.integers(0, len(out) - 1), st.integers(max(0, len(out) - 200), len(out) - 1)))
        what = draw(st.integers(0, 4))
        if what == 0:
            out[at] = draw(st.one_of(st.integers(0, 255), st.sampled_from(INTERESTING)))
        elif what == 1:
            out[at : at + 8] = draw(st.sampled_from([b"\xff" * 8, bytes(8), b"\xff" * 7 + b"\x7f", b"\0\0\0\x80"]))
        elif what == 2:
            del out[at : at + draw(st.integers(1, 16))]
        elif what == 3:
            out[at:at] = out[at : at + draw(st.integers(1, 32))]
        else:
            del out[at:]
    return kind, format, bytes(out)


def read(data: bytes, format: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            weight_files.read_whole(data, format)
        except EmberletError as error:
            assert str(error)


@settings(max_examples=400)
@given(damaged())
def test_damaged_files_are_read_or_refused(found):
    _, format, data = found
    read(data, format)


@settings(max_examples=150)
@given(st.sampled_from(sorted(SEEDS)), st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(kind, data, headed):
    read(SEEDS[kind][0][1][:24] + data if headed else data, kind)


@pytest.mark.parametrize("kind", sorted(SEEDS))
def test_every_cut_and_changed_byte_is_refused_or_read(kind):
    for format, data in SEEDS[kind]:
        for at in range(0, len(data), max(1, len(data) // 150)):
            read(data[:at], format or kind)
            read(bytes([*data[:at], (data[at] + 1) % 256, *data[at + 1 :]]), format or kind)


def u32(n: int) -> bytes:
    return n.to_bytes(4, "little")


def u64(n: int) -> bytes:
    return n.to_bytes(8, "little")


BOMBS = {
    "many empty dicts": ("pytorch", b"\x80\x02" + b"}" * 300_000 + b"."),
    "many memos": ("pytorch", b"\x80\x04]" + b"\x94" * 300_000 + b"."),
    "long integer": ("pytorch", b"\x80\x02\x8b" + (200_000).to_bytes(4, "little") + b"\x7f" * 200_000 + b"."),
    "deep json": ("safetensors", (200_000).to_bytes(8, "little") + b'{"a":' + b"[" * 199_995),
    "wide json": ("safetensors", (200_000).to_bytes(8, "little") + b'{"a":[' + b"[]," * 66_664 + b"0]"),
    "array of arrays": (
        "gguf",
        b"GGUF" + u32(3) + u64(0) + u64(1) + u64(1) + b"k" + u32(9) + u32(9) + u64(20_000) + bytes(250_000),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_reading_takes_no_more_memory_than_its_length_allows(name):
    format, data = BOMBS[name]
    read(data, format)  # imports are not counted
    tracemalloc.start()
    try:
        read(data, format)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < (16 << 20) + 40 * len(data)


SAVE = textwrap.dedent(
    """
    import sys
    import numpy as np
    from emberlet import store
    path, value = sys.argv[1], 0
    print("ready", flush=True)
    while True:
        value += 1
        array = np.full(200_000, value, np.float32)
        store.store_of({"a": array, "b": array + 0}).save(path)
    """
)


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by signals")
@pytest.mark.parametrize("ending", [".bpk", ".safetensors"])
def test_killed_saves_leave_a_whole_file(ending, tmp_path):
    """A process that saves again and again is killed at random moments: there is always one whole file."""
    path = tmp_path / ("w" + ending)
    store.store_of({"a": np.zeros(3, np.float32), "b": np.zeros(3, np.float32)}).save(path)
    choose = random.Random(1)
    for _ in range(int(os.environ.get("EMBERLET_KILLS", "4"))):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE, str(path)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(choose.uniform(0.0, 0.05))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        opened = store.open(path)
        a, b = np.asarray(opened["a"]), np.asarray(opened["b"])
        assert np.array_equal(a, b)
        assert len(set(a.tolist())) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read as Linux gives them")
def test_saving_takes_the_memory_of_one_tensor(tmp_path):
    script = textwrap.dedent(
        """
        import resource, sys
        import numpy as np
        from emberlet import dtypes, store
        each, count = 8 << 20, 24
        def make(backend):
            return backend.from_bytes(np.ones(each // 4, np.float32).data.cast("B"), dtypes.float32, (each // 4,))
        many = {str(i): store.Snapshot(str(i), dtypes.float32, (each // 4,), make=make) for i in range(count)}
        store.save(store.Store({"0": many["0"]}, format="x"), sys.argv[1])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        store.save(store.Store(many, format="x"), sys.argv[1])
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 4 * each)
        """
    )
    for ending in (".bpk", ".safetensors"):
        ended = python("-c", script, str(tmp_path / ("w" + ending)), check=True)
        assert ended.stdout.strip() == "True"


@pytest.mark.parametrize("shape", [(0, 1 << 60), (1 << 40, 0, 1 << 40)])
def test_an_empty_tensor_of_sizes_that_nothing_addresses_is_refused(shape: tuple[int, ...]) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    with pytest.raises(FormatError, match="too large to address"):
        weight_files.read_whole(len(header).to_bytes(8, "little") + header, "safetensors")
    line = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line)
    with pytest.raises(FormatError, match=r"too large to address|beyond"):
        weight_files.read_whole(file.getvalue(), "npz")
