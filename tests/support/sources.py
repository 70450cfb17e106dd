"""Generated sources in a line each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import onnx
from emberlet.codegen.generation import translate
from emberlet.errors import EmberletError

CLASS = "\nclass "


def described(model: onnx.ModelProto) -> str:
    """The size of a model's source, and its digest."""
    try:
        source = translate(model, "net", weights_name="w.bpk")[1].source
    except EmberletError:
        return "refused"
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return f"{len(source.splitlines())} lines, classes: {source.count(CLASS)}, {digest}"


def listed(models: Iterable[tuple[object, onnx.ModelProto]]) -> str:
    """A line for each labeled model."""
    return "\n".join(f"{label}: {described(model)}" for label, model in models)
