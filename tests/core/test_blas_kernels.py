"""Choosing OpenBLAS's kernels before NumPy is loaded, and reporting those in use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from emberlet.host import blas_kernels

FLAGS = "fpu avx avx2 avx512f avx512cd avx512bw avx512dq avx512vl"
ZEN5 = ("AuthenticAMD", 26, True)


def said(vendor: str, family: int, flags: str) -> str:
    core = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 2\nflags\t\t: {flags}\n"
    return f"{core}\n{core.replace('avx512f', '')}"


def test_cpuinfo_is_read_for_the_first_core() -> None:
    assert blas_kernels.by_cpuinfo(said("AuthenticAMD", 26, FLAGS)) == ZEN5
    assert blas_kernels.by_cpuinfo(said("AuthenticAMD", 23, "fpu avx2")) == ("AuthenticAMD", 23, False)
    assert blas_kernels.by_cpuinfo("CPU implementer\t: 0x41\nFeatures\t: fp asimd\n") == ("", 0, False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD", ZEN5),
        ("Intel64 Family 6 Model 183 Stepping 1, GenuineIntel", ("GenuineIntel", 6, False)),
        ("ARMv8 (64-bit) Family", ("", 0, False)),
        ("", ("", 0, False)),
    ],
)
def test_the_identifier_of_windows_is_read(text: str, found: blas_kernels.Processor) -> None:
    assert blas_kernels.by_identifier(text) == found


@pytest.mark.parametrize(
    ("given", "found", "after"),
    [
        ({}, ZEN5, "SkylakeX"),
        ({"OPENBLAS_CORETYPE": "Haswell"}, ZEN5, "Haswell"),
        ({"OPENBLAS_CORETYPE": ""}, ZEN5, ""),
        ({}, ("AuthenticAMD", 26, False), None),
        ({}, ("AuthenticAMD", 25, True), None),  # OpenBLAS knows it
        ({}, ("GenuineIntel", 6, True), None),
    ],
)
def test_kernels_are_asked_for_where_nobody_did(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], found: blas_kernels.Processor, after: str | None
) -> None:
    monkeypatch.delitem(sys.modules, "numpy", raising=False)
    environment = dict(given)
    blas_kernels.choose(environment, found)
    assert environment.get("OPENBLAS_CORETYPE") == after


def test_nothing_is_asked_for_once_numpy_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", sys)
    environment: dict[str, str] = {}
    assert blas_kernels.choose(environment, ZEN5) is None and environment == {}


def test_advice_is_given_where_the_processor_could_do_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert "OPENBLAS_CORETYPE=SkylakeX" in str(blas_kernels.advice("Haswell", ZEN5))
    assert blas_kernels.advice("SkylakeX", ZEN5) is None
    assert blas_kernels.advice(None, ZEN5) is None
    assert blas_kernels.advice("Zen", ("AuthenticAMD", 23, False)) is None
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert "OPENBLAS_CORETYPE=Zen asks" in str(blas_kernels.advice("Zen", ZEN5))


def test_the_command_line_chooses_and_devices_says_what_runs() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    command = [sys.executable, "-c", "import sys\nfrom emberlet.host import cli, blas_kernels as b\n"
               "sys.argv = ['emberlet', 'devices']\ncli.main()\nprint(b.advice(b.running()))"]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=True)
    assert "  blas: " in done.stdout
    assert done.stdout.splitlines()[-1] == "None", "faster kernels than those that run: they were not chosen"


def test_choosing_loads_next_to_nothing() -> None:
    code = "import sys\nfrom emberlet.host import blas_kernels\nblas_kernels.choose()\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert not {"numpy", "ctypes"} & set(done.stdout.split())
