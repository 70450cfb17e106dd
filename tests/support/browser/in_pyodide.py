"""`@in_pyodide`: a test whose body runs inside a browser tab, under Pyodide.

    @in_pyodide
    def test_something():
        import wgpu  # imports belong inside: only the function's own source travels

        assert wgpu.gpu.request_adapter_sync().info["vendor"]

A plain function may wait synchronously (Python can be suspended), an `async def` one may await. A failure shows the
traceback with the test's own lines.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest


def in_pyodide(function: Callable[[], Any]) -> Callable[..., None]:
    lines, first = inspect.getsourcelines(function)
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def ")))
    source = textwrap.dedent("".join(lines[start:]))
    file = inspect.getsourcefile(function) or "<test>"

    def test(pyodide_page: Any) -> None:
        __tracebackhide__ = True
        code = "([source, file, line, name]) => runPython(source, file, line, name)"
        failure = pyodide_page.evaluate(code, [source, file, first + start, function.__name__])
        if failure:
            pytest.fail(f"in the browser:\n{failure}", pytrace=False)

    test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
    return test
