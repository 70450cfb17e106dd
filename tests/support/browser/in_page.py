"""Runs test functions inside Pyodide: `start` defines one, `run_sync` or `run_async` calls it."""

import inspect
import linecache
import traceback

_function = None


def start(source, file, line, name):
    """Define the function from its source, at its own file and line; True for a coroutine function, else None."""
    global _function
    linecache.cache[file] = (len(source), None, ["\n"] * (line - 1) + source.splitlines(keepends=True), file)
    namespace = {"__name__": "in_page_test", "raised": raised}
    exec(compile("\n" * (line - 1) + source, file, "exec"), namespace)
    _function = namespace[name]
    return True if inspect.iscoroutinefunction(_function) else None


def raised(kind, call):
    """The error of this kind that a call raises; tests there have it without an import, since pytest is not there."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind} was not raised")


def run_sync():
    """Call it; returns None, or the traceback of its exception."""
    try:
        _function()
    except BaseException as error:
        return _told(error)


async def run_async():
    """The same for a coroutine function."""
    try:
        await _function()
    except BaseException as error:
        return _told(error)


def _told(error):
    return "".join(traceback.format_exception(type(error), error, error.__traceback__.tb_next))  # without this file
