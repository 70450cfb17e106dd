"""The MicroPython ports of the tests have the assumed properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.micropython import Port

NATIVE = """
import micropython

@micropython.viper
def dot(w: ptr8, x: ptr8, n: int) -> int:
    s = 0
    i = 0
    while i < n:
        s = int(w[i]) * int(x[i]) + s
        i += 1
    return s

@micropython.native
def scale(a, b):
    return a * b + 1

print(dot(bytes([1, 2, 3]), bytes([4, 5, 6]), 3), scale(3, 4.0))
"""


def test_every_port_imports_emberlet_from_the_tree(micropython_port: Port) -> None:
    said = micropython_port.run("import emberlet; print(emberlet.__name__, end='')").check()
    assert said.stdout == "emberlet"


@pytest.mark.parametrize("port", ["unix_port", "armhf_port"])
def test_native_emitters_work(port: str, request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue(port).run(NATIVE).check().stdout == "32 13.0\n"


def test_wasm_port_has_no_native_emitter(wasm_port: Port) -> None:
    result = wasm_port.run(NATIVE)
    assert not result.ok
    assert "SyntaxError" in result.stderr


def test_word_sizes_differ(unix_port: Port, armhf_port: Port) -> None:
    script = "import sys; print(sys.maxsize)"
    assert int(unix_port.run(script).check().stdout) == 2**63 - 1
    assert int(armhf_port.run(script).check().stdout) == 2**31 - 1


@pytest.mark.parametrize("port", ["unix_port", "armhf_port"])
def test_heap_size_is_what_was_asked_for(port: str, request: pytest.FixtureRequest) -> None:
    script = "import gc; print(gc.mem_free() + gc.mem_alloc())"
    total = int(request.getfixturevalue(port).run(script, heap="192K").check().stdout)
    assert 180 * 1024 < total <= 192 * 1024


def test_script_file_sees_its_arguments_and_its_files(micropython_port: Port, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights.bin").write_bytes(b"\x01\x02\xff")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nprint(sys.argv[1:], __name__)\nprint(list(open(sys.argv[2], 'rb').read()))", encoding="utf-8"
    )
    args = ["digits", tmp_path / "data" / "weights.bin"]
    result = micropython_port.run(script, args, files=[tmp_path / "data"]).check()
    assert result.stdout == f"{[str(a) for a in args]} __main__\n[1, 2, 255]\n"


def test_imports_come_from_the_folders_named(micropython_port: Port, tmp_path: Path) -> None:
    (tmp_path / "sensor.py").write_text("READING = 'ünïcode'", encoding="utf-8")
    result = micropython_port.run("import sensor; print(sensor.READING)", micropypath=[tmp_path]).check()
    assert result.stdout == "ünïcode\n"


@pytest.mark.parametrize(
    ("source", "status"),
    [("import sys; sys.exit(3)", 3), ("import sys; sys.exit(0)", 0), ("raise SystemExit", 0), ("1 / 0", 1)],
)
def test_exit_status_is_reported(micropython_port: Port, source: str, status: int) -> None:
    assert micropython_port.run(source).rc == status


def test_an_uncaught_exception_is_shown(micropython_port: Port) -> None:
    result = micropython_port.run("raise ValueError('lost the wire')")
    assert "ValueError: lost the wire" in result.stderr
    with pytest.raises(AssertionError, match="lost the wire"):
        result.check()


def test_a_script_that_never_ends_is_ended(unix_port: Port) -> None:
    result = unix_port.run("print('on')\nwhile True: pass", timeout=1)
    assert result.rc == 124
