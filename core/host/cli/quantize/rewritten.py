"""Models whose activations are quantized, too, as codegen writes them of a rewritten ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from emberlet.codegen.emit.names import file_stem
from emberlet.codegen.ir.problem import refusing
from emberlet.codegen.quantized.levels import Levels
from emberlet.codegen.quantized.writing import Scheme, quantizing, sign
from numpy.typing import NDArray

from ....errors import UnsupportedError
from ....store.quantizing import channel_axis, multiplying
from ....store.weight_methods.ranges import grids as observed_grids
from ...quantization.calibration import OF_EXTREMES, Observed, range_of
from ..model import Input
from .models import Arrays, Source, calls, layers_of, origin_of, prepared


class Rewritten(Source):
    """A float model whose activations are quantized too: variants are what codegen writes of a rewritten ONNX model."""

    writes_onnx = True

    def __init__(self, path: str, name: str | None, equalize: bool) -> None:
        self.proto, self.stored = prepared(path, equalize, "activations")
        super().__init__(path, name)
        self._initializers = {key: origin_of(value) for key, value in self.record.items()}
        self._biases: dict[str, tuple[str, NDArray[Any]]] = {}  # layer -> its initializer, and the corrected values
        self._levels: dict[tuple[str, int], Levels] = {}  # initializer, its axis of outputs -> the integers chosen
        self._factors: dict[str, NDArray[Any]] = {}  # initializer -> what AWQ multiplies the inputs of its products by

    def rewritten(self, proto: Any, keep: Collection[str], others: bool) -> Any:
        """The ONNX model in 8 bits. keep: weights that stay floats; others: whether operators without weights are
        quantized, too."""
        raise NotImplementedError

    def grids(self, samples: Arrays, tell: Callable[[str], None]) -> str | Mapping[str, Any]:
        """By what the layers of the module quantize their inputs while their weights are chosen."""
        raise NotImplementedError

    def _of_onnx(self, path: str, name: str | None, equalize: bool) -> None:
        self.stem = file_stem(name or Path(path).stem)
        self._take_onnx(self.proto)

    def choose(self, scheme: Scheme, correct_bias: bool, samples: Arrays, tell: Callable[[str], None]) -> None:
        """Choose the weights, and correct the biases, of the ONNX model."""
        if scheme.method == "rtn" and not correct_bias:
            return
        by_inputs = scheme.input_scales  # of AWQ, by which inputs are multiplied before they are quantized
        given = scheme if by_inputs else scheme.with_activations(self.grids(samples, tell))
        super().choose(given, correct_bias, samples, tell)
        from emberlet.codegen.quantized import graph_names

        read = graph_names.readers(self.proto.graph)
        several: dict[str, list[NDArray[Any]]] = {}  # one for each layer that reads the initializer
        for name, values in self.chosen.items():
            held = self._initializers.get(f"{name}.bias")
            if held is not None and "bias" in values and len(read.get(held, ())) == 1:
                self._biases[name] = held, np.asarray(values["bias"], np.float32)
            held = self._initializers.get(f"{name}.weight")
            if by_inputs and held is not None and "weight.input_scale" in values:
                several.setdefault(held, []).append(np.asarray(values["weight.input_scale"], np.float32))
            elif scheme.method != "rtn" and held is not None and "weight.values" in values:
                axis = channel_axis(layers_of(self.model)[name]) or 0
                own = 1 - axis if hasattr(self.record[f"{name}.weight"].source, "matrix") else axis
                self._levels[held, own] = Levels.of(values["weight.values"], values["weight.scale"])
        self._factors = {
            held: found[0] for held, found in several.items()
            if (found[0] != 1).any() and all(np.array_equal(found[0], other) for other in found)
        }  # fmt: skip

    def _proto(self, keep: Collection[str], others: bool) -> Any:
        from emberlet.codegen.quantized import activations, input_scales, tables

        biases = dict(both for name, both in self._biases.items() if name not in keep)
        floats = self._held(keep)
        with refusing(self.files[0]):
            proto = input_scales.scaled(activations.with_values(self.proto, biases), self._factors)
            proto = self.rewritten(proto, floats, others)
            proto = tables.quantized(proto, self._held(self.layers) - floats, self._levels)
        sign(proto)
        return proto

    def _held(self, names: Collection[str]) -> set[str]:
        """The initializers of these layers' weights."""
        return {held for name in names if (held := self._initializers.get(f"{name}.weight")) is not None}

    def _made(self, scheme: Scheme, proto: Any, keep: Collection[str]) -> tuple[Any, str]:
        """(the model of a quantized ONNX model, the source of its module): as codegen writes it. keep: layers of the
        float model that stay as they are; the weights of others that the file has as floats, as those of recurrent
        layers, are quantized at the end of its `__init__`."""
        loaded, text, record = self.translated(proto)
        floats = self._held(keep)
        weights = {name: record.get(f"{name}.weight") for name in layers_of(loaded.model)}
        origins = {name: origin_of(value) for name, value in weights.items() if value is not None}
        kept = [name for name, held in origins.items() if held in floats or (held is None and name in keep)]
        rest = scheme.to_nearest(kept)
        names = rest.apply(loaded.model)
        return loaded.model, quantizing(text, rest) if names else text

    def variant(self, scheme: Scheme, only: Collection[str] | None = None) -> Any:
        keep: Collection[str] = scheme.keep
        if only is not None:  # layers that read the same weight are quantized together
            held, of = self._held(only), self._initializers
            keep = tuple(n for n in self.layers if n not in only and of.get(f"{n}.weight") not in held)
        return self._made(scheme, self._proto(keep, only is None), keep)[0]

    def final(self, scheme: Scheme) -> tuple[Any, str, dict[str, bytes]]:
        from emberlet.codegen.quantized import activations

        proto = self._proto(scheme.keep, True)
        model, text = self._made(scheme, proto, scheme.keep)
        return model, text, {self.stem + ".onnx": activations.serialized(self.in_form(proto))}

    def in_form(self, proto: Any) -> Any:
        """The ONNX model as it is written."""
        return proto


class Static(Rewritten):
    """A float model whose activations have ranges from samples. onnx: the form of the file, "qdq" or "qoperator"."""

    def __init__(
        self, path: str, name: str | None, samples: Callable[[Sequence[Input]], Arrays], method: str, percentile: float,
        tell: Callable[[str], None], equalize: bool = False, onnx: str = "qdq",
    ) -> None:  # fmt: skip
        super().__init__(path, name, equalize)
        self._percentile, self._onnx = percentile, onnx
        self.activations = method
        self._observe(samples(self.inputs), tell)
        if not self.ranges:
            raise UnsupportedError(
                f"{path}: no float32 activation can be quantized by samples; leave out activations, or, if products "
                'have float32 weights, let each call find its ranges: activations="dynamic", --activations dynamic; '
                "for products in branches, quantize the module that emberlet codegen writes"
            )

    def rewritten(self, proto: Any, keep: Collection[str], others: bool) -> Any:
        from emberlet.codegen.quantized import activations

        return activations.quantized(proto, self.ranges, keep, others, self._levels)

    def grids(self, samples: Arrays, tell: Callable[[str], None]) -> Mapping[str, Any]:
        rows = calls(self.inputs, samples, 1)
        layers = dict(multiplying(self.model))
        return observed_grids(self.model, layers, rows, self.activations or "minmax", self._percentile, tell)[0]

    def in_form(self, proto: Any) -> Any:
        if self._onnx != "qoperator":
            return proto
        from emberlet.codegen.quantized import operators

        return operators.of_integers(proto)

    def choose(self, scheme: Scheme, correct_bias: bool, samples: Arrays, tell: Callable[[str], None]) -> None:
        super().choose(scheme, correct_bias, samples, tell)
        if self._factors:  # other inputs have other ranges
            self._observe(samples, tell)

    def _observe(self, samples: Arrays, tell: Callable[[str], None]) -> None:
        """Find the ranges of the activations."""
        from emberlet.codegen import load
        from emberlet.codegen.quantized import activations, input_scales

        with refusing(self.files[0]):
            scaled = input_scales.scaled(self.proto, self._factors)
            tensors = activations.tensors(scaled)
            proto = activations.observed(scaled, tensors)
        method = self.activations or "minmax"
        model = load(proto, "numpy")
        names = [o.name for o in proto.graph.output]
        rows = calls(self.inputs, samples, 1)  # as `emberlet micro build` shows them
        seen = {name: Observed(len(rows), method not in OF_EXTREMES) for name in tensors}
        infinite: set[str] = set()
        for k, given in enumerate(rows):
            tell(f"calibrating: {k + 1} of {len(rows)}")
            results = model(*given)
            values = dict(zip(names, results if isinstance(results, tuple) else (results,), strict=True))
            values.update({i.name: x for i, x in zip(self.inputs, given, strict=True)})
            for name, found in seen.items():
                x = np.asarray(values[name])
                if x.dtype != np.float32:  # scales are float32, and QuantizeLinear takes no other with them
                    continue
                if np.isfinite(x).all():
                    found.add(x)
                else:  # it has no range
                    infinite.add(name)
        self.notes = tuple(
            f"{name} becomes NaN or infinite on a sample and stays in float" for name in sorted(infinite)
        )
        self.ranges = {
            name: range_of(found, method, self._percentile) for name, found in seen.items()
            if found.average is not None and name not in infinite
        }  # fmt: skip


class Dynamic(Rewritten):
    """A float model whose products quantize their inputs by the range of each call."""

    activations = "by the range of each call"

    def __init__(self, path: str, name: str | None, equalize: bool = False) -> None:
        super().__init__(path, name, equalize)
        had = {t.name for t in self.proto.graph.initializer}
        if all(t.name in had for t in self.rewritten(self.proto, (), True).graph.initializer):
            raise UnsupportedError(
                f"{path}: no product or convolution with a constant float32 weight multiplies each number of its input "
                "four times or more; leave out activations"
            )

    def rewritten(self, proto: Any, keep: Collection[str], others: bool) -> Any:
        from emberlet.codegen.quantized import dynamic

        return dynamic.quantized(proto, keep, self._levels)

    def grids(self, samples: Arrays, tell: Callable[[str], None]) -> str:
        return "dynamic"
