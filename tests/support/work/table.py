"""The recorded tables, `gpu.txt` and `wasm.txt`: below a program's name a row for each device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import edge_products, edge_programs, more_programs  # noqa: F401 (they add to PROGRAMS)
from .counting import DIGEST, Row, digest, in_wasm, on_gpu
from .programs import PROGRAMS, Program

FOLDER = Path(__file__).parent
KINDS: dict[str, Callable[[Program], dict[str, Row]]] = {"gpu": on_gpu, "wasm": in_wasm}


def lines(found: dict[str, Row], columns: list[str]) -> list[str]:
    """A program's rows as lines of the table. "as above" stands for the numbers of the row before. The last line is a
    digest of the plans of all devices."""
    out = []
    before = ""
    for device, row in found.items():
        said = row["error"] if "error" in row else " ".join(str(row.get(name, 0)) for name in columns)
        out.append(f"{device}: {'as above' if said == before else said}")
        before = said
    return [*out, f"digest: {digest([row.get(DIGEST) for row in found.values()])}"]


def recorded(kind: str) -> dict[str, list[str]]:
    """The table of a kind: program -> its lines; "columns" -> the names of the numbers in a line."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in (FOLDER / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            found[name].append(line[2:])
        else:
            name = line
            found[name] = []
    return found


def compared(kind: str, table: dict[str, list[str]], name: str) -> tuple[list[str], list[str]]:
    """(the lines of a program for the kernels of this tree, those of the table), with the columns' names above."""
    columns = table["columns"][0].split()
    return [*table["columns"], *lines(KINDS[kind](PROGRAMS[name]), columns)], [*table["columns"], *table[name]]


def write() -> None:
    """Write the tables for the kernels of this tree."""
    for kind, counted in KINDS.items():
        rows = {
            n: counted(program)
            for n, program in PROGRAMS.items()
            if kind == "gpu" or not (program.dims or program.tile)
        }
        columns = list(dict.fromkeys(key for found in rows.values() for row in found.values() for key in row))
        columns = [name for name in columns if name not in ("error", DIGEST)]
        out = ["columns", "  " + " ".join(columns)]
        for name, found in rows.items():
            out += [name, *("  " + line for line in lines(found, columns))]
        (FOLDER / f"{kind}.txt").write_text("\n".join(out) + "\n", encoding="utf-8")
