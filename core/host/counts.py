"""Whether the interpreter's counts of references tell who else has an object."""

import sys

# Without reference counts, or with threads that count apart, nothing is assigned in place.
COUNTS = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
