"""Built modules written for MicroPython to import."""

from __future__ import annotations

from pathlib import Path

from emberlet.micro.builder.build import BuildResult


def importable(folder: Path, *results: BuildResult, bytecode: bool = False) -> str:
    """Write the modules; the lines of a script that make them importable. bytecode: without their machine code."""
    for result in results:
        files = {**{name: text.encode() for name, text in result.sources.items()}, **result.extra}
        if bytecode and f"{result.program.name}_bytecode.py" in files:
            del files[f"{result.program.name}_kernels.py"]
        for name, data in files.items():
            (folder / name).write_bytes(data)
    return f"import sys\nsys.path.insert(0, {str(folder)!r})\n"
