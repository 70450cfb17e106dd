"""The file of measured tiles: the fastest for each matrix product and convolution, by device.

`compile(model, *examples, tune=True)` measures (run/measure_tiles.py); every later plan on that device uses the
results. The file is `cache_path()`; deleting it, `clear()` or `emberlet devices --forget-tuning` forgets everything.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from .lower.tiles import BLOCKS, COLUMNS, ROWS, SPLITS, Tile

# system -> (environment variable, folder below the home) of caches; Linux and all others follow XDG
_CACHES = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}
OFF = "off"  # the value of $EMBERLET_CACHE that keeps nothing on disk
MOST_SHARED = 8192  # sums of a workgroup whose lanes share tiles: half of them fill the workgroup memory of any WebGPU
VERSION = 2  # of the kernels: increase it when changes to them invalidate old measurements


def cache_path() -> Path | None:
    """The path of the measurements: tiles.json in $EMBERLET_CACHE, else in the platform's cache folder.

    None if $EMBERLET_CACHE is "off" or the user has no home folder; measurements then last as long as the process.
    """
    if given := os.environ.get("EMBERLET_CACHE"):
        return None if given == OFF else Path(given) / "tiles.json"
    variable, below = _CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        try:
            base = str(Path.home() / below)
        except RuntimeError:  # neither HOME nor an entry in the user database
            return None
    return Path(base) / "emberlet" / "tiles.json"


def clear() -> None:
    """Forget every measurement of every device."""
    if path := cache_path():
        path.unlink(missing_ok=True)


def device_name(device: Any) -> str:
    """The key of a device's measurements: the adapter and its driver."""
    info = device.raw.adapter_info
    return " / ".join(str(info.get(k) or "") for k in ("vendor", "device", "description", "backend_type"))


def _stored() -> dict[str, dict[str, list[int]]]:
    """Device name -> problem key -> the numbers of a Tile. A damaged file, one of another version, and entries that are
    not tiles are ignored, since they can be measured again; the next `save` replaces them."""
    path = cache_path()
    if path is None:
        return {}
    from emberlet.host.files import read_regular

    try:
        found = json.loads(read_regular(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or found.get("version") != VERSION or not isinstance(found.get("devices"), dict):
        return {}
    return {
        name: {key: value for key, value in own.items() if _is_tile(value)}
        for name, own in found["devices"].items()
        if isinstance(own, dict)
    }


def _is_tile(value: Any) -> bool:
    """Whether these are the numbers of a Tile that `_best` could have chosen."""
    if not isinstance(value, list) or len(value) != 6 or not all(type(v) is int for v in value):
        return False
    rows, columns, unroll, workgroup, blocks, split = value
    if blocks:
        return blocks in BLOCKS and not (rows or columns or unroll or workgroup) and split == 1
    if split not in SPLITS or workgroup < split:
        return False
    if split > 1 and (workgroup & (workgroup - 1) or rows * columns * workgroup > MOST_SHARED):
        return False
    return rows in ROWS and columns in COLUMNS and 1 <= unroll <= 4 and 1 <= workgroup <= 256


def load(device: Any) -> dict[str, Tile]:
    """{problem key: Tile}, as measured on this device."""
    return {key: Tile(*numbers) for key, numbers in _stored().get(device_name(device), {}).items()}


def save(device: Any, tiles: dict[str, Tile]) -> None:
    """Add measurements to the file. If the file cannot be written, a warning is printed and nothing else happens."""
    devices = _stored()
    devices.setdefault(device_name(device), {}).update({key: tile.numbers() for key, tile in tiles.items()})
    stored = {"version": VERSION, "devices": devices}
    path = cache_path()
    if path is None:
        return
    from emberlet.host.files import atomic_write

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(json.dumps(stored, indent=1, sort_keys=True).encode("utf-8"))
    except OSError as error:
        print(f"emberlet: tile sizes could not be saved to {path}: {error}", file=sys.stderr)
