"""The module of a quantized model: the float one's, with a line that quantizes its weights; and their burnpack."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emberlet.errors import EmberletError, LoadError
from emberlet.module import Module

from ..overwriting import OverwriteError, check_overwrite, signed
from ..weights import save_sources

if TYPE_CHECKING:
    from onnx import ModelProto

PRODUCER = "emberlet quantize"  # of the ONNX files


def sign(model: ModelProto) -> None:
    """Note in an ONNX model that this command wrote it."""
    model.producer_name, model.producer_version = PRODUCER, ""


class Scheme:
    """How a model is quantized: the arguments of `Module.quantize_weights`. keep: layers that stay floats; method: how
    the weights are chosen by samples; activations: "dynamic", layer -> (scale, zero point), or None for floats."""

    def __init__(
        self, bits: int = 8, mode: str = "symmetric", level: str | int | tuple[int, int] = "channel",
        calibration: str = "min-max", keep: Sequence[str] = (), method: str = "rtn", scale_dtype: str = "float32",
        value_dtype: str | None = None, activations: str | Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        from emberlet.functional.quantized.weights import WeightScheme

        WeightScheme(bits, mode, level, calibration, scale_dtype, value_dtype)  # raises
        self.bits, self.mode, self.level, self.calibration, self.keep = bits, mode, level, calibration, tuple(keep)
        self.method, self.scale_dtype, self.value_dtype = method, scale_dtype, value_dtype
        self.activations = activations

    @property
    def input_scales(self) -> bool:
        """Whether dense layers have a number for each input."""
        return self.method == "awq"

    def apply(self, module: Module, only: Sequence[str] | None = None) -> list[str]:
        """Quantize the module's weights to the nearest, or `only` those of some layers; returns the layers' names."""
        found: list[str] = module.quantize_weights(
            self.bits, self.mode, self.level, self.calibration, filter=_chosen(only), keep=self.keep,
            input_scales=self.input_scales, scale_dtype=self.scale_dtype, value_dtype=self.value_dtype,
            activations=self.activations,
        )  # fmt: skip
        return found

    def choose(
        self, module: Module, samples: Sequence[Sequence[Any]], correct_bias: bool, tell: Callable[[str], None]
    ) -> list[str]:
        """The same for all layers, with weights chosen by samples, and with `correct_bias` biases, too."""
        found: list[str] = module.quantize_weights(
            self.bits, self.mode, self.level, self.calibration, keep=self.keep, method=self.method, samples=samples,
            correct_bias=correct_bias, tell=tell, scale_dtype=self.scale_dtype, value_dtype=self.value_dtype,
            activations=self.activations,
        )  # fmt: skip
        return found

    def keeping(self, names: Sequence[str]) -> Scheme:
        """The same for a model in which these layers, too, stay floats."""
        return self._with(keep=(*self.keep, *names))

    def to_nearest(self, keep: Sequence[str]) -> Scheme:
        """The same for a model of which these layers stay floats, with the other weights rounded to the nearest."""
        return self._with(keep=tuple(keep), method="rtn")

    def with_activations(self, activations: str | Mapping[str, Any] | None) -> Scheme:
        """The same for a model whose layers quantize their inputs so."""
        return self._with(activations=activations)

    def _with(self, **changes: Any) -> Scheme:
        made = copy(self)
        made.__dict__.update(changes)
        return made

    def code(self) -> str:
        """The call, as Python."""
        given = [f"bits={self.bits}"]
        defaults = (
            ("mode", "symmetric"), ("level", "channel"), ("calibration", "min-max"), ("input_scales", False),
            ("scale_dtype", "float32"), ("value_dtype", None),
        )  # fmt: skip
        given += [f"{key}={_literal(getattr(self, key))}" for key, value in defaults if getattr(self, key) != value]
        if isinstance(self.activations, str):
            given.append(f"activations={_literal(self.activations)}")
        elif self.activations is not None:  # a line for each layer
            grids = (f"{_literal(n)}: {grid}" for n, grid in self.activations.items() if n not in self.keep)
            given.append("activations={\n" + "".join(f"                {each},\n" for each in grids) + "            }")
        if self.keep:
            kept = ", ".join(_literal(name) for name in self.keep)
            given.append(f"keep=[{kept}]")
        line = f"self.quantize_weights({', '.join(given)})"
        if len(line) > 80 or "\n" in line:
            line = "self.quantize_weights(\n" + "".join(f"            {each},\n" for each in given) + "        )"
        return line

    def __str__(self) -> str:
        share = {"tensor": "one scale a tensor", "channel": "a scale for each channel"}
        many = self.level if isinstance(self.level, int) else "{} × {}".format(*self.level)
        level = share.get(str(self.level)) or f"a scale for {many} weights"
        how = "" if self.calibration == "min-max" else f", {self.calibration}"
        how += "" if self.scale_dtype == "float32" else f", scales {self.scale_dtype}"
        how += "" if self.value_dtype is None else f", values {self.value_dtype}"
        return f"{self.bits} bits, {self.mode}, {level}{how}"


def _chosen(only: Sequence[str] | None) -> Any:
    return None if only is None else (lambda name, container: name.removesuffix(".weight") in only)


def _literal(value: object) -> str:
    text = repr(value)
    return f'"{text[1:-1]}"' if text[:1] == "'" and '"' not in text else text


def quantizing(source: str, scheme: Scheme) -> str:
    """The source of a generated module whose model quantizes its weights at the end of its `__init__`. Raises LoadError
    for a source without a class derived from Model, or one that quantizes already."""
    tree = ast.parse(source)
    classes = [c for c in tree.body if isinstance(c, ast.ClassDef) and any(_named(b) == "Model" for b in c.bases)]
    if len(classes) != 1:
        raise LoadError(f"expected one class derived from Model, found {', '.join(c.name for c in classes) or 'none'}")
    made = [f for f in classes[0].body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
    if not made:
        raise LoadError(f"{classes[0].name} has no __init__, in which its weights would be quantized")
    calls = (n for n in ast.walk(made[0]) if isinstance(n, ast.Attribute))
    if any(n.attr == "quantize_weights" for n in calls):
        raise LoadError(f"{classes[0].name} quantizes its weights already; quantize the model that it was made from")
    lines = source.split("\n")
    at = made[0].end_lineno or 0
    return "\n".join([*lines[:at], f"        {scheme.code()}", *lines[at:]])


def _named(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def check(out: Path, stem: str, text: str, inputs: Sequence[str], force: bool, onnx: bool) -> None:
    """Raise OverwriteError or EmberletError if one of the files would replace an input, or a user's work, or the folder
    cannot be made. onnx: whether an ONNX file is one of them."""
    from emberlet.host.folders.outputs import is_made, is_same
    from emberlet.host.quantization.page import MARK

    place = next(path for path in (out, *out.parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "no files can be written in it" if place.is_dir() else "it is a file"
        raise EmberletError(f"{place}: {why}; give another folder (out)")
    marks = {stem + ".quantized.html": MARK, **({stem + ".onnx": PRODUCER} if onnx else {})}
    for name in (stem + ".py", stem + ".bpk", *marks):
        for each in inputs:
            if is_same(str(out / name), each):
                raise EmberletError(f"{out / name} is an input; give another folder (out) or name")
        if (out / name).is_dir():
            raise OverwriteError(f"{out / name} is a folder; move it, or give another folder (out) or name")
    if not force:
        check_overwrite(out / (stem + ".py"), text, out / (stem + ".bpk"))
        for name, mark in marks.items():
            if (out / name).is_file() and not is_made(str(out / name), mark.encode()):
                raise OverwriteError(f"{out / name} was not written by this command; force overwrites it")


def write(
    draft: Path, stem: str, text: str, model: Module, metadata: Mapping[str, str], more: Mapping[str, bytes]
) -> int:
    """Write the module, the burnpack of the quantized model's weights and `more` files into a draft folder; returns the
    burnpack's size in bytes. Raises OSError."""
    from emberlet.host.burnpack_writer import Source
    from emberlet.host.together import synced

    shared: dict[Hashable, Source] = {}
    sources = {}
    for name, tensor in model.to_record().items():
        key = content(tensor)
        if key not in shared:
            shared[key] = Source(tensor.dtype, tensor.shape, _reader(tensor))
        sources[name] = shared[key]
    with synced(draft / (stem + ".py")) as file:
        file.write((signed(text) if "# @generated" in text else text).encode())
    for name, data in more.items():
        with synced(draft / name) as file:
            file.write(data)
    return save_sources(draft / (stem + ".bpk"), sources, metadata)


def content(tensor: Any) -> Hashable:
    """What equal tensors have in common: they are stored once."""
    return tensor.dtype.name, tensor.shape, sha256(tensor.backend.to_bytes(tensor)).digest()


def _reader(tensor: Any) -> Any:
    return lambda: tensor.backend.to_bytes(tensor)


def unsigned(source: str) -> str:
    """A module's source without the digest of its text."""
    from ..overwriting import DIGEST

    return "\n".join(line for line in source.split("\n") if not line.startswith(DIGEST))
