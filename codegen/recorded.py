"""Models whose weights are a file of one of Burn's recorders instead of a burnpack: `ModelGen().record_type(…)`."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from emberlet import store
from emberlet.host.together import synced, together

from .generation import Generated, made_folder
from .generation import generate as as_burnpack
from .overwriting import DIGEST, check_overwrite, signed

BASE = "from emberlet.model import Model\n"
RECORDED = "from emberlet.store.recorded_model import Model\n"


def generate(
    source: str | os.PathLike[str], out_dir: str | os.PathLike[str], recorder: str, half: bool = False
) -> Generated:
    """Write the module and its weights into `out_dir`; weights that are there are replaced. recorder: the name of one
    in emberlet.store. half: store floats as float16. Raises what `codegen.generate` raises."""
    settings = store.HalfPrecisionSettings if half else store.FullPrecisionSettings
    with TemporaryDirectory() as folder:
        made = as_burnpack(source, folder)
        assert made.weights is not None
        written = Path(
            getattr(store, recorder)(settings).record(store.open(made.weights), made.weights.with_suffix(""))
        )
        lines = made.module.read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith(DIGEST)).replace(BASE, RECORDED, 1)
        text = text.replace(f'"{made.weights.name}"', f'"{written.name}"', 1)
        data = written.read_bytes()
    out = Path(out_dir)
    check_overwrite(out / made.module.name, text)
    with made_folder(out), together(out) as draft:
        for name, held in ((made.module.name, signed(text).encode()), (written.name, data)):
            with synced(draft / name) as file:
                file.write(held)
    return Generated(out / made.module.name, out / written.name, made.class_name, made.notes)
