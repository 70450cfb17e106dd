"""Writes the tables anew."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

if __name__ == "__main__":
    from plans.counting import BACKENDS
    from plans.table import FOLDER, lines

    for backend in BACKENDS:
        (FOLDER / f"{backend}.txt").write_text("\n".join(lines(backend)) + "\n", encoding="utf-8")
