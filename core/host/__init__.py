"""Code for CPython only: files, NumPy, the command line, generated stubs."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  (an older Python gets this message)
    raise ImportError("emberlet needs Python 3.11 or newer, this is {}.{}".format(*sys.version_info[:2]))
