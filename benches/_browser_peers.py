"""Common code of the browser benchmarks: installed peers, a served folder, a Chromium page, a results file."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
PEERS = ROOT / "benches" / "web" / "node_modules"
sys.path[:0] = [str(ROOT), str(ROOT / "web"), str(ROOT / "benches")]


def are_installed() -> bool:
    """Whether the peers are installed; installs missing ones, and prints the reason if that fails."""
    if (PEERS / "onnxruntime-web").is_dir():
        return True
    print("installing the peers: npm ci in benches/web", flush=True)
    npm = shutil.which("npm")
    done = npm and subprocess.run([npm, "ci"], cwd=PEERS.parent, check=False).returncode == 0
    if not done:
        print("the peers are missing; install them: (cd benches/web && npm ci)", file=sys.stderr)
    return bool(done)


@contextmanager
def opened(
    name: str, site: Path, folder: Path, mounts: Mapping[str, Path] | None = None, flags: Sequence[str] = ()
) -> Iterator[tuple[Any, Any]]:
    """(the Browser, its page benches/web/`name`). The server has `site`, the peers, and `folder` at /work/. flags: of
    Chromium."""
    from serve import start_server

    from tools.chromium import Browser

    served = {
        "/bench/": ROOT / "benches" / "web",
        "/ort/": PEERS / "onnxruntime-web" / "dist",
        "/jax/": PEERS / "@jax-js" / "jax" / "dist",
        "/work/": folder,
        **(mounts or {}),
    }
    server = start_server(site, mounts=served)
    with Browser(flags=flags) as browser:
        page = browser.open(server.url + "bench/" + name)
        page.wait("() => globalThis.loaded")
        yield browser, page
    server.shutdown()


def write_sections(name: str, lines: Sequence[str]) -> None:
    """Print sections of a page, and write them to benches/results/`name` in place of those with the same headings, or
    behind the others."""
    page = RESULTS / name
    found = _sections(page.read_text(encoding="utf-8") if page.is_file() else "")
    text = "\n".join(lines)
    found |= _sections(text)
    page.write_text("\n\n".join(found.values()) + "\n", encoding="utf-8")
    print(text, flush=True)


def _sections(text: str) -> dict[str, str]:
    """The sections of a page of Markdown by heading, in order."""
    parts = re.split(r"(?m)^(?=##? )", text)
    return {part.splitlines()[0]: part.rstrip("\n") for part in parts if part.strip()}


def write(name: str, text: str) -> None:
    """Print the results and write them to benches/results/`name`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / name).write_text(text, encoding="utf-8")
    print(text)
