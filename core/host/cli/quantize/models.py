"""The float model of `emberlet quantize` and its quantized variants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from emberlet.codegen.emit.names import file_stem
from emberlet.codegen.ir.problem import refusing
from emberlet.codegen.quantized.writing import Scheme, quantizing, sign, unsigned
from numpy.typing import NDArray

from ....backend import get_backend
from ....errors import EmberletError, UnsupportedError
from ....store.quantizing import is_large, layers_with_weights
from ...extras import require
from ...other_formats import refusal
from .. import model as models
from ..model import Input, Loaded

Arrays = Mapping[str, NDArray[Any]]


class Source:
    """A float model. model: with its weights, on NumPy; text: the source of its module; stem: the name of its files;
    files: those it was read from; layers: those whose weights can be quantized, with their numbers of weights;
    activations: how they are calibrated; integers: by what the layers of the module quantize their inputs, as
    `Module.quantize_weights` takes it; writes_onnx: whether there is an ONNX file of the result; planless: why the
    model has no plan on NumPy, once it ran there; stored: the bytes of the file's tensors, where the model has weights
    computed from them.
    """

    activations: str | None = None
    integers: str | Mapping[str, Any] | None = None
    writes_onnx = False
    notes: tuple[str, ...] = ()
    planless = ""
    stored: int | None = None
    text: str
    stem: str
    files: tuple[str, ...]

    def __init__(self, path: str, name: str | None, equalize: bool = False, form: str | None = None) -> None:
        """form: of the ONNX file that is written, too, None for none (codegen/quantized/packing.py)."""
        self.files = (path,)
        self.form = form
        self.writes_onnx = self.writes_onnx or form is not None
        if form and not path.endswith(".onnx"):
            raise EmberletError("onnx needs the ONNX file: quantize that instead of the generated module")
        self.chosen: dict[str, dict[str, Any]] = {}
        if equalize and not path.endswith(".onnx"):
            raise EmberletError("equalize needs the ONNX file: quantize that instead of the generated module")
        if path.endswith(".onnx"):
            self._of_onnx(path, name, equalize)
        elif path.endswith(".py"):
            loaded = models.load(path, "numpy")
            self._take(loaded, unsigned(Path(path).read_text("utf-8")))
            self.stem = file_stem(name) if name else Path(path).stem
            held = type(self.model).WEIGHTS
            if f'"{held}"' not in self.text:
                raise EmberletError(f"{path} does not name the file of its weights; generate it without --embed")
            self.text = self.text.replace(f'"{held}"', f'"{self.stem}.bpk"', 1)
            self.files = (path, str(Path(path).parent / held))
        else:
            raise EmberletError(refusal(path, "an .onnx file, or a generated module (.py)"))
        large = {
            name.removesuffix("."): layer.weight
            for name, _, layer, axis in layers_with_weights(self.model)
            if is_large(layer.weight.shape, axis)
        }
        self.layers = {name: int(prod(w.shape)) for name, w in large.items() if not hasattr(w, "scheme")}
        if large and not self.layers:
            raise UnsupportedError(f"{path} is quantized already; quantize the float model that it was made from")
        if not self.layers:
            raise UnsupportedError(f"{path}: no layer has weights that can be quantized, 3 or more a channel")

    def _of_onnx(self, path: str, name: str | None, equalize: bool) -> None:
        require(path)
        self.stem = file_stem(name or Path(path).stem)
        if equalize or self.form:
            self.proto, self.stored = prepared(path, equalize, "onnx" if self.form else "equalize")
        self._take_onnx(self.proto if equalize or self.form else path)

    def _take_onnx(self, source: Any) -> None:
        loaded, text, self.record = self.translated(source)
        self._take(loaded, text)

    def translated(self, source: Any) -> tuple[Loaded, str, Mapping[str, Any]]:
        """(the model of an ONNX file or ModelProto with its weights, the source of its module, the weights' values by
        name)"""
        from emberlet.codegen import weights
        from emberlet.codegen.emit.instance import instantiate
        from emberlet.codegen.generation import translate
        from emberlet.codegen.ir.types import TensorType

        model, written, _ = translate(source, self.stem, weights_name=self.stem + ".bpk")
        instance = instantiate(written, model.name, get_backend("numpy"))
        instance.load_record(weights.tensors(written.record, "numpy"), layout="burn")
        inputs = []
        for argument, parameter in zip(model.graph.inputs, written.inputs, strict=True):
            known = argument.type if isinstance(argument.type, TensorType) else None
            inputs.append(
                Input(argument.name, parameter, known.dtype if known else None, known.shape if known else None)
            )
        return Loaded(instance, tuple(inputs), model.outputs), written.source, written.record

    def _take(self, loaded: Loaded, text: str) -> None:
        self.loaded, self.model, self.text = loaded, loaded.model, text
        self.inputs = loaded.inputs

    def check(self, names: Sequence[str], worst: int) -> None:
        """Raise EmberletError unless these are layers of the model, and some are left without `worst` more."""
        for name in names:
            if name not in self.layers:
                raise EmberletError(f"keep {name}: there is no such layer; the layers are {', '.join(self.layers)}")
        left = len(self.layers) - len(set(names))
        if left <= worst:
            how = f"the worst {worst}" if left else "these"
            many = len(self.layers)
            raise EmberletError(
                f"keeping {how} leaves none of the {many} layers to quantize; keep {many - 1} at most in all"
            )

    def before(self) -> int:
        """The bytes of the model's weights, or of the file's tensors where it computes floats from smaller ones."""
        own = nbytes(self.model)
        return own if self.stored is None else min(own, self.stored)

    def scheme(self, scheme: Scheme) -> Scheme:
        """The scheme with what it says of activations."""
        return scheme.with_activations(self.integers)

    def choose(self, scheme: Scheme, correct_bias: bool, samples: Arrays, tell: Callable[[str], None]) -> None:
        """Choose the weights by samples, once for all variants."""
        if scheme.method == "rtn" and not correct_bias:
            return
        made = self.model.clone()
        names = scheme.choose(made, calls(self.inputs, samples, 8), correct_bias, tell)
        self.chosen = {
            name: {key: value for key, value in values.items() if correct_bias or key != "bias"}
            for name, values in _params(made).items() if name in names
        }  # fmt: skip

    def variant(self, scheme: Scheme, only: Collection[str] | None = None) -> Any:
        """A copy of the model with its weights quantized, or those of some layers only."""
        made = self.model.clone()
        names = scheme.apply(made, only=None if only is None else list(only))
        self._choose_in(made, names)
        return made

    def _choose_in(self, made: Any, names: Collection[str]) -> None:
        """Set the chosen weights and biases of layers."""
        if self.chosen:
            for name, layer in layers_of(made).items():
                for key, param in layer.named_params():
                    if name in names and key in self.chosen.get(name, {}):
                        param.set(self.chosen[name][key])

    def final(self, scheme: Scheme) -> tuple[Any, str, dict[str, bytes]]:
        """(the quantized model, the source of its module, more files by name)"""
        made = self.variant(scheme)
        more = {self.stem + ".onnx": self._packed(made)} if self.form else {}
        return made, quantizing(self.text, scheme), more

    def _packed(self, made: Any) -> bytes:
        """The ONNX file with the weights of the quantized module."""
        from emberlet.codegen.quantized import activations, graph_names, packing

        weights: dict[str, Any] = {}
        biases: dict[str, Any] = {}
        packed = {name: layer for name, layer in layers_of(made).items() if hasattr(layer.weight, "scheme")}
        initializers, read = {t.name for t in self.proto.graph.initializer}, graph_names.readers(self.proto.graph)
        users: dict[str | None, list[str]] = {}  # of each initializer
        lacking: list[str] = []
        for key, each in self.record.items():
            users.setdefault(origin_of(each), []).append(key.removesuffix(".weight"))
        for name, layer in packed.items():
            value = self.record.get(f"{name}.weight")
            held = None if value is None else origin_of(value)
            if value is None or held is None or held not in initializers:
                lacking.append(name)
                continue
            placed = packing.Placed(layer.weight, hasattr(value.source, "matrix"))
            self._check_shared(held, users[held], packed, placed.is_same(weights.setdefault(held, placed)))
            tied = [copy for copy in packing.copies_of_table(self.proto, read, held) if copy not in users]
            weights.update(dict.fromkeys(tied, placed._replace(turned=True)))
            if "bias" in self.chosen.get(name, {}):
                biases[origin_of(self.record[f"{name}.bias"]) or ""] = np.asarray(layer.bias.val(), np.float32)
        if lacking and not weights:
            raise UnsupportedError(
                f"onnx: the file has no initializer that is the weight of {' or '.join(lacking)}, as of gates of "
                "recurrent layers and of weights that are computed; leave out onnx"
            )
        if lacking:
            said = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
            self.notes = (f"no initializer of the ONNX file is the weight of {said}; there they stay in float",)
        with refusing(self.files[0]):
            if any(len(read.get(held, ())) != 1 for held in biases):
                raise UnsupportedError("a corrected bias is no initializer of its own; leave the bias uncorrected")
            proto = packing.packed(activations.with_values(self.proto, biases), weights, self.form or "")
        sign(proto)
        return activations.serialized(proto)

    def _check_shared(self, held: str, users: Sequence[str], packed: Collection[str], alike: bool) -> None:
        """Raise UnsupportedError unless the module has one value for an initializer. users: what has its value; packed:
        the quantized layers; alike: whether those of them met so far have the same packed weight."""
        from emberlet.codegen.quantized.floats import PRODUCTS
        from emberlet.codegen.quantized.graph_names import readers

        layers = [name for name in users if name in packed]
        floats = len(layers) < len(users)
        if floats and any(o.name == held for o in self.proto.graph.output):  # it is returned in float
            kept = any(name in self.layers and name not in packed for name in users)
            floats = kept or any(n.op_type not in PRODUCTS for n in readers(self.proto.graph)[held])
        if floats or not alike:
            how = "read as floats, too" if floats else "quantized in other ways in each"
            keep = " ".join(f"--keep {name}" for name in layers)
            raise UnsupportedError(
                f"onnx: {held}, the weight of {' and '.join(layers)}, is {how}; leave it in float with {keep}"
            )


def layers_of(model: Any) -> dict[str, Any]:
    return {name.removesuffix("."): layer for name, _, layer, _ in layers_with_weights(model)}


def _params(model: Any) -> dict[str, dict[str, Any]]:
    """The values of each layer's parameters."""
    return {name: {key: param.val() for key, param in layer.named_params()} for name, layer in layers_of(model).items()}


def prepared(path: str, equalize: bool, option: str) -> tuple[Any, int]:
    """(an ONNX file as a ModelProto with batch norms folded, equalized if asked for, the bytes of the file's tensors).
    option: what needs that."""
    require(option, "onnx")
    from emberlet.codegen.quantized import equalization, preparing
    from emberlet.codegen.reader.with_data import model_with_data, tensors

    with refusing(path):
        given = model_with_data(path)
        found = preparing.prepared(given)
        return equalization.equalized(found) if equalize else found, sum(t.ByteSize() for t in tensors(given))


def origin_of(value: Any) -> str | None:
    held = getattr(value.source, "matrix", value)
    return held.origin if isinstance(held.origin, str) else None


def calls(inputs: Sequence[Input], samples: Arrays, rows: int) -> list[list[NDArray[Any]]]:
    """The arguments of calls for all samples, several rows in each as far as the inputs' batch axes allow. Rows that do
    not fill a fixed batch are left out."""
    fixed = {i.shape[0] for i in inputs if i.shape and isinstance(i.shape[0], int)}
    step = fixed.pop() if len(fixed) == 1 else rows
    whole = any(i.shape is not None and samples[i.name].ndim == len(i.shape) + 1 for i in inputs)
    count = max((len(x) for x in samples.values() if x.ndim), default=0)
    found = []
    for start in range(0, count, 1 if whole else step):
        given = []
        for i in inputs:
            x = samples[i.name]
            row = whole and (i.shape is None or x.ndim == len(i.shape) + 1)
            given.append(x if not x.ndim else x[start] if row else x[start : start + (1 if whole else step)])
        if whole or not fixed_short(inputs, given):
            found.append(given)
    return found


def fixed_short(inputs: Sequence[Input], given: Sequence[NDArray[Any]]) -> bool:
    """Whether a call has fewer rows than an input's fixed batch."""
    return any(
        i.shape and isinstance(i.shape[0], int) and x.ndim and len(x) != i.shape[0]
        for i, x in zip(inputs, given, strict=True)
    )


def nbytes(model: Any) -> int:
    """The bytes of a model's weights."""
    from emberlet.codegen.quantized.writing import content

    return sum(
        int(t.dtype.nbytes(t.size)) for t in {content(t): t for t in model.to_record().tensors.values()}.values()
    )
