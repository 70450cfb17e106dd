"""Files for older firmware, and the compiler's messages for code that it cannot compile."""

from __future__ import annotations

from itertools import product

import pytest
from emberlet.errors import FormatError, UnsupportedError
from emberlet.micro.builder.assembly.mpy import with_machine_code
from emberlet.micro.builder.compile import compile_mpy

KERNEL = "import micropython\n\n@micropython.viper\ndef f(x: ptr8) -> int:\n    return x[3]\n"


def version(mpy: bytes) -> tuple[int, int]:
    """The .mpy format's version and its version of machine code."""
    assert mpy[0] == ord("M")
    return mpy[1], mpy[2] & 3


@pytest.mark.parametrize(("release", "expected"), [("1.20", (6, 1)), ("1.22", (6, 2)), (None, (6, 3))])
def test_a_release_decides_the_format(release: str | None, expected: tuple[int, int]) -> None:
    assert version(compile_mpy(KERNEL, "k", "armv6m", release)) == expected


def test_what_does_not_compile_is_said() -> None:
    with pytest.raises(UnsupportedError, match="SyntaxError"):
        compile_mpy("def f(:\n", "k")
    with pytest.raises(UnsupportedError, match=r"MicroPython 0\.1"):
        compile_mpy(KERNEL, "k", "armv6m", "0.1")


MODULE = (
    f"{KERNEL}\n\ndef h(x):\n    def inner(y):\n        return lambda: (x, y, 'inner')\n\n"
    "    return ['a', (1, 2.5, b'b', (None, True, False, ...), 'nested'), 1099511627776, 1.5, f(x), g(), inner]\n"
    "\n\n@micropython.viper\ndef g():\n    pass\n\n\n@micropython.native\ndef k(x):\n    return x + 1\n"
)


ARM_AND_XTENSA = ("armv6m", "armv7emsp", "xtensa", "xtensawin")
FORMATS = [*product(("1.20", "1.22", "1.24", None), ARM_AND_XTENSA), (None, "rv32imc")]


@pytest.mark.parametrize(("release", "arch"), FORMATS)
def test_machine_code_takes_the_place_of_a_function(release: str | None, arch: str) -> None:
    plain = compile_mpy(MODULE, "k", arch, release)
    code = bytes(range(256)) * 3
    changed = compile_mpy(MODULE, "k", arch, release, {"g": code})
    assert code in changed
    # Nothing else changed: with the old code put back, the file is the same.
    before = changed.index(code)
    assert plain.startswith(changed[: before - 2]) and plain.endswith(changed[before + len(code) :])


def test_code_finds_only_functions_of_viper() -> None:
    plain = compile_mpy(MODULE, "k", "armv6m")
    with pytest.raises(FormatError, match="h is not a separate viper function"):
        with_machine_code(plain, ["f", "h", "g", "k"], {"h": b"code"})
    with pytest.raises(FormatError, match="k is not a separate viper function"):
        with_machine_code(plain, ["f", "h", "g", "k"], {"k": b"code"})
    with pytest.raises(FormatError, match=r"4.*expected 2"):
        with_machine_code(plain, ["f", "g"], {"g": b"code"})
    with pytest.raises(FormatError, match="version 6"):
        with_machine_code(b"C\x06\x00\x1f", ["f"], {})
    with pytest.raises(FormatError, match="ends at byte"):
        with_machine_code(plain[:40], ["f", "h", "g", "k"], {"g": b"code"})


def test_a_file_that_ends_early_is_refused_wherever_it_ends() -> None:
    plain = compile_mpy(MODULE, "k", "armv6m")
    for size in range(len(plain)):
        with pytest.raises(FormatError, match=r"ends at byte|version 6"):
            with_machine_code(plain[:size], ["f", "h", "g", "k"], {"g": b"code"})
    assert b"code" in with_machine_code(plain, ["f", "h", "g", "k"], {"g": b"code"})
