"""Writes the tables anew."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

if __name__ == "__main__":
    from support.work.table import write

    write()
