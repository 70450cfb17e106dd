"""Words for the modules and values of a model, from their paths and names."""

from __future__ import annotations

import keyword

from ..emit.names import class_name, identifier
from ..ir.argument import Argument
from .scopes import Path


def attribute(text: str) -> str:
    """A module's name as an attribute name."""
    name = text if text.isidentifier() and not text.startswith("__") else identifier(text, "layer")
    return name + "_" if keyword.iskeyword(name) else name


def class_from(path: Path) -> str:
    """A class name for a module at a path: "Layer" for ("encoder", "layers", "0")."""
    words = [p for p in path if not p.isdigit()]
    if not words:
        return "Block"
    name = words[-1]
    if path[-1].isdigit():
        name = _SHORT.get(name, name)
        if len(name) > 3 and name.endswith("s") and not name.endswith("ss"):
            name = name[:-1]
    name = _SHORT.get(name, name)
    return class_name(name)


_SHORT = {
    "attn": "attention",
    "self": "self_attention",
    "self_attn": "self_attention",
    "ff": "feed_forward",
    "ffn": "feed_forward",
    "h": "block",
    "blk": "block",
}


def word_of(a: Argument) -> str:
    """A word for a region's input, from its name."""
    name = a.name.rstrip("0123456789_.")
    if "mask" in name.lower():
        return "mask"
    for word in ("cos", "sin", "bias", "state", "key", "value"):
        if name.lower() == word:
            return word
    return ""
