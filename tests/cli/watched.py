"""Runs in a process of its own: `watched.py FOLDER TRAP` reads every file of a folder in every way, and prints what an
audit hook saw that no reader may do. https://docs.python.org/3/library/audit_events.html"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.fork",
             "pty.spawn", "socket.connect", "webbrowser.open", "urllib.Request")  # fmt: skip
PROGRAMS = ("mpy-cross", "ldconfig", "gcc", "cc", "ld", "objdump", "uname", "lscpu")  # of set-up, and of micro build

seen: list[str] = []
now = ["start"]
folder, trap = Path(sys.argv[1]), sys.argv[2]


def hook(event: str, args: tuple[Any, ...]) -> None:
    if event in FORBIDDEN:
        seen.append(f"{now[0]}: {event} {str(args)[:200]}")
    elif event == "subprocess.Popen" and (os.path.basename(str(args[0])) not in PROGRAMS or trap in str(args[1])):
        seen.append(f"{now[0]}: {event} {str(args[:2])[:200]}")
    elif event == "exec" and str(folder) in str(getattr(args[0], "co_filename", "")):
        seen.append(f"{now[0]}: {event} {args[0]}")
    elif event in ("compile", "exec") and _from_outside(args[0]):
        seen.append(f"{now[0]}: {event} of text from outside")


def _from_outside(source: Any) -> bool:
    """Whether code that is compiled holds the files' code as code; generated modules hold it in literals."""
    if isinstance(source, (str, bytes)):
        text = source if isinstance(source, str) else source.decode("utf-8", "replace")
        return text.lstrip().startswith("__import__('os')")
    return "system" in getattr(source, "co_names", ()) and getattr(source, "co_filename", "").startswith("<")


def ways(path: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    from emberlet.host.cli import main

    digits = sys.argv[3]
    out = f"{folder.parent}/out"
    commands = [f"inspect {path}", f"inspect {path} --weights", f"graph {path} --out {out}.svg", f"diff {path} {path}",
                f"convert {path} {out}.safetensors --overwrite", f"codegen {path} --out {out} --force",
                f"verify {path}", f"compile {path} --out {out}.plan", f"micro build {path} --out {out}/m",
                f"run {digits} --backend numpy --input image={path}", f"micro deploy {path.parent} --dry-run",
                f"micro build {digits} --calibration {path} --out {out}/c",
                f"quantize {digits} --calibration {path} --out {out}/q --time none --force",
                f"train-report {path.parent} --out {out}.html"]  # fmt: skip
    if path.suffix != ".py":
        commands += [f"run {path} --backend numpy", f"run {digits} --backend numpy --input {path}"]
    if path.suffix == ".onnx":
        commands += [f"run {made} --backend numpy" for made in Path(out).glob("*.py")]
        commands.append(
            f"quantize {path} --activations --calibration {folder.parent}/zeros.npy --out {out}/q --time none"
        )
    for command in commands:
        yield command, partial(main, command.split())

    def scored() -> None:
        job = _imported("emberlet.batch.scoring").prepare(digits, [str(path)], f"{out}/scores", skip_bad=True)
        for part in job.parts:
            list(_imported("emberlet.batch.rows").tables(part, job.reading))

    yield f"score {path}", scored
    if path.suffix in (".arrow", ".arrows"):
        yield f"Arrow {path}", lambda: list(_imported("emberlet.data").ArrowDataset(path))
    elif path.suffix == ".parquet":
        yield f"Parquet {path}", lambda: list(_imported("emberlet.data").ParquetDataset(path))
    yield f"decode {path}", lambda: _imported("emberlet.batch.pictures").decode(str(path))
    yield f"image {path}", lambda: _imported("emberlet.host.images").decode(path.read_bytes(), "RGB")
    yield f"store {path}", lambda: [s.tensor() for s in _imported("emberlet.store").open(path).values()]
    yield f"config {path}", lambda: _imported("emberlet.store.opening").config_from_file(path)
    yield f"burnpack {path}", lambda: _imported("emberlet.burnpack").Burnpack.from_file(path).verify()
    yield f"plan {path}", lambda: _imported("emberlet.wgpu_backend.plan_file").load(path.read_bytes())
    yield f"wasm {path}", lambda: _imported("emberlet.wgpu_backend.wasm.file").load(path.read_bytes())
    yield f"session {path}", lambda: _imported("emberlet.onnxruntime").InferenceSession(str(path))
    yield f"load {path}", lambda: _imported("emberlet.codegen").load(path.read_bytes(), "python")


def _imported(name: str) -> Any:
    return importlib.import_module(name)


def everything() -> None:
    _imported("numpy").save(folder.parent / "zeros.npy", _imported("numpy").zeros((4, 64), "float32"))
    for path in sorted(folder.iterdir()):
        for what, way in ways(path):
            now[0] = what
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    way()
                except (SystemExit, Exception):
                    pass  # refusals, whose words other tests check
            if os.path.exists(trap):
                seen.append(f"{what}: made {trap}")
                os.unlink(trap)


if __name__ == "__main__":
    os.environ["XDG_CACHE_HOME"] = f"{folder.parent}/cache"
    sys.addaudithook(hook)
    if "--careless" in sys.argv:  # shows that the hook sees what it looks for
        import pickle

        pickle.loads((folder / "pickle1.pkl").read_bytes())
        os.unlink(trap)
        exec(compile(f"__import__('os').system('touch {trap}')", "<text>", "exec"))
    else:
        everything()
    print("\n".join([*dict.fromkeys(seen), "done"]))
