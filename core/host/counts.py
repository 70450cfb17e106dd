"""Whether reference counts show if an object is shared."""

import sys

# Without reference counts, or in free-threaded Python, no element is assigned in place.
COUNTS = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
