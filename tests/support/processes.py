"""Programs that tests run to their end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def ran(*command: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """A program with what it wrote, as text. options: those of subprocess.run."""
    given = {"text": True, "encoding": "utf-8", "capture_output": True, "check": False, **options}
    return subprocess.run([*map(str, command)], **given)


def python(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """This interpreter with these words, run to its end."""
    return ran(sys.executable, *words, **options)
