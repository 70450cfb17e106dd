"""The MicroPython ports of the tests have the assumed properties."""

from __future__ import annotations

import pytest

from tools.micropython import Port


def test_word_sizes_differ(unix_port: Port, armhf_port: Port) -> None:
    script = "import sys; print(sys.maxsize)"
    assert int(unix_port.run(script).check().stdout) == 2**63 - 1
    assert int(armhf_port.run(script).check().stdout) == 2**31 - 1


@pytest.mark.parametrize("port", ["unix_port", "armhf_port"])
def test_heap_size_is_what_was_asked_for(port: str, request: pytest.FixtureRequest) -> None:
    script = "import gc; print(gc.mem_free() + gc.mem_alloc())"
    total = int(request.getfixturevalue(port).run(script, heap="192K").check().stdout)
    assert 180 * 1024 < total <= 192 * 1024


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
