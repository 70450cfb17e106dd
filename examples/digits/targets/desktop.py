"""CPython on this machine: with nothing installed, with NumPy, and on its GPU through wgpu-py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from tools.layout import package_folders

from .target import CLASSIFY, Answer, Kit, Target, TargetError

TIME_LIMIT = 300


def run_plain(kit: Kit) -> Answer:
    """Run isolated and without site-packages, so that only the standard library, emberlet and the model can be
    imported."""
    alone = kit.scratch / "alone"
    alone.mkdir(exist_ok=True)
    if not (alone / "emberlet").exists():
        (alone / "emberlet").symlink_to(package_folders()["emberlet"], target_is_directory=True)
    job = kit.job("python", path=[str(alone), str(kit.folder)])
    return _run(kit, "plain", job, ("-I", "-S"))


def run_numpy(kit: Kit) -> Answer:
    return _run(kit, "numpy", kit.job("numpy"))


def run_wgpu(kit: Kit) -> Answer:
    return _run(kit, "wgpu", kit.job("wgpu"))


def _run(kit: Kit, name: str, job: dict[str, object], options: Sequence[str] = ()) -> Answer:
    command = [sys.executable, *options, str(CLASSIFY), str(kit.write(name, job))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False, encoding="utf-8")
    if done.returncode != 0:
        raise TargetError(done.stderr[-3000:] or f"exit status {done.returncode}")
    return Answer.from_json(done.stdout, job)


TARGETS = [
    Target("python", "CPython, nothing installed", run_plain),
    Target("numpy", "CPython, NumPy", run_numpy, modules=("numpy",)),
    Target("wgpu", "CPython, wgpu-py", run_wgpu, needs=("gpu-driver",), modules=("wgpu",)),
]
