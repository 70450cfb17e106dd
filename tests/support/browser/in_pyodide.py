"""Tests whose body runs inside a browser tab, under Pyodide.

    @in_pyodide
    def test_something():
        import wgpu  # imports belong inside: only the function's own source travels

        assert wgpu.gpu.request_adapter_sync().info["vendor"]

A plain function may wait synchronously (Python can be suspended), an `async def` one may await. A failure shows the
traceback with the test's own lines. `@on_both_sides` runs the same body a second time on this machine, on wgpu-py's
native backend, so that it shows on what portable code may rely.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import pytest


def in_pyodide(function: Callable[[], Any]) -> Callable[..., None]:
    run = _runner(function)

    def test(pyodide_page: Any) -> None:
        __tracebackhide__ = True
        run(pyodide_page)

    return _named_after(function, test)


def on_both_sides(function: Callable[[], Any]) -> Callable[..., None]:
    run = _runner(function)

    @pytest.mark.parametrize("side", ["browser", "desktop"])
    def test(side: str, request: pytest.FixtureRequest) -> None:
        __tracebackhide__ = True
        if side == "browser":
            run(request.getfixturevalue("pyodide_page"))
            return
        if not _native_adapters():
            pytest.skip("needs wgpu and a Vulkan, Metal or D3D12 adapter (Mesa's lavapipe will do)")
        done = function()
        if inspect.iscoroutine(done):
            asyncio.run(done)

    return _named_after(function, test)


def _runner(function: Callable[[], Any]) -> Callable[[Any], None]:
    lines, first = inspect.getsourcelines(function)
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def ")))
    source = textwrap.dedent("".join(lines[start:]))
    file = inspect.getsourcefile(function) or "<test>"

    def run(page: Any) -> None:
        __tracebackhide__ = True
        code = "([source, file, line, name]) => runPython(source, file, line, name)"
        failure = page.evaluate(code, [source, file, first + start, function.__name__])
        if failure:
            pytest.fail(f"in the browser:\n{failure}", pytrace=False)

    return run


def _named_after(function: Callable[..., Any], test: Callable[..., None]) -> Callable[..., None]:
    test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
    return test


@functools.cache
def _native_adapters() -> int:
    try:
        import wgpu

        return len(wgpu.gpu.enumerate_adapters_sync())
    except (ImportError, OSError, RuntimeError):
        return 0
