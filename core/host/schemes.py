"""Quantization schemes of a burnpack in words, for people."""

from __future__ import annotations

from typing import Any


def in_words(found: Any) -> str:
    """ "Q4F in u32, blocks of 32, scales F16": for both generations of schemes; an unknown scheme is shown as it is
    stored."""
    if not isinstance(found, dict) or not isinstance(found.get("value"), str):
        return f"unknown scheme {found!r}"
    store = found.get("store")
    packed = store == "U32" or (isinstance(store, dict) and "PackedU32" in store)
    axis = next(iter(store.values())) if isinstance(store, dict) and len(store) == 1 else 0
    words = [found["value"] + (" in u32" if packed else " packed" if isinstance(store, dict) else "")]
    if axis:
        words.append(f"packed along axis -{1 + axis}" if isinstance(axis, int) else f"packed along {axis!r}")
    if "level" in found:
        level, scale, whole = found["level"], found.get("param"), None
        block = level.get("Block") if isinstance(level, dict) else None
    else:
        block, whole = found.get("block"), found.get("tensor")
        scale = block.get("dtype") if isinstance(block, dict) else whole
        block, whole = (block.get("size"), whole) if isinstance(block, dict) else (block, None)
    if block is not None:
        words.append("blocks of " + _size(block))
    words.append(f"scales {scale}" + (f" times one {whole}" if whole else ""))
    if found.get("mode", "Symmetric") != "Symmetric":
        words.append(f"mode {found['mode']}")
    return ", ".join(words)


def _size(block: Any) -> str:
    if (
        isinstance(block, dict)
        and isinstance(block.get("storage"), (list, bytes))
        and isinstance(block.get("len"), int)
    ):
        block = list(block["storage"])[: block["len"]]
    if isinstance(block, (list, bytes)):
        return "×".join("all" if n == 0 else str(n) for n in block)
    return repr(block)
