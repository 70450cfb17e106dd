"""`@in_micropython`: a test whose body runs inside a browser tab, under MicroPython's Wasm build.

The function is an `async def` whose own source travels, as with in_pyodide; each runs in a fresh interpreter.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from tools.chromium import BrowserError


def in_micropython(function: Callable[[], Any]) -> Callable[..., None]:
    lines, _ = inspect.getsourcelines(function)
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith("async def "))
    source = textwrap.dedent("".join(lines[start:])) + f"\nawait {function.__name__}()\nprint('done')\n"

    def test(micropython_page: Any) -> None:
        __tracebackhide__ = True
        try:
            printed = micropython_page.evaluate("(source) => runMicroPython(source)", source)
        except BrowserError as error:
            numbered = "\n".join(f"{i:4d}  {line}" for i, line in enumerate(source.splitlines(), 1))
            pytest.fail(f"in the browser:\n{error}\n{numbered}", pytrace=False)
        assert printed.splitlines()[-1] == "done", printed

    test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
    return test
