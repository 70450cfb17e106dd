"""Files for older firmware, and what the compiler says where it does not understand."""

from __future__ import annotations

import pytest
from emberlet.errors import UnsupportedError
from emberlet.micro.builder.compile import compile_mpy

KERNEL = "import micropython\n\n@micropython.viper\ndef f(x: ptr8) -> int:\n    return x[3]\n"


def version(mpy: bytes) -> tuple[int, int]:
    """Of the .mpy format: the version, and that of machine code."""
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
