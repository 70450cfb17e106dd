"""Files for older firmware, and the compiler's messages for code that it cannot compile."""

from __future__ import annotations

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
    with pytest.raises(UnsupportedError, match=r"no compiler for MicroPython 0\.1"):
        compile_mpy(KERNEL, "k", "armv6m", "0.1")


MODULE = (
    f'{KERNEL}\n\n@micropython.viper\ndef g():\n    pass\n\n\ndef h(x):\n    return ["a", (1, 2.5, b"b"), f(x), g()]\n'
)


@pytest.mark.parametrize("release", ["1.20", "1.22", "1.24", None])
@pytest.mark.parametrize("arch", ["armv6m", "armv7emsp", "xtensa", "xtensawin"])
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
        with_machine_code(plain, ["f", "g", "h"], {"h": b"code"})
    with pytest.raises(FormatError, match="has 3 functions, expected 2"):
        with_machine_code(plain, ["f", "g"], {"g": b"code"})
    with pytest.raises(FormatError, match="version 6"):
        with_machine_code(b"C\x06\x00\x1f", ["f"], {})
    with pytest.raises(FormatError, match="ends at byte"):
        with_machine_code(plain[:40], ["f", "g", "h"], {"g": b"code"})
