"""Paths of a checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"
# `dev.py test --python` and `--oldest` name another one: tools/environments.py.
VENV = Path(os.environ.get("EMBERLET_VENV") or ROOT / ".venv")
WEB = ROOT / "web"
BENCHES = ROOT / "benches"
BENCH_WEB = BENCHES / "web"
# Real models and weight files that lie beside some checkouts and belong to none: tests that read them skip without.
SHARED = ROOT.parent / "shared"


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
