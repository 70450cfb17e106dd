"""The models under this folder, for tests to iterate: `for case in cases(): run(case.model, case.inputs())`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Case:
    """One set of inputs of one model, and onnxruntime's outputs for them."""

    name: str
    """Of the model, its path under this folder: `vit`, `contrib/bias_gelu`."""
    file: Path
    """The inputs and outputs, an npz."""
    opset: dict[str, int]
    operators: tuple[str, ...]
    """Those of the main graph; `domain:Operator` outside the standard's domain."""
    atol: float
    rtol: float
    literal: bool
    """The outputs were made without fusing anything; quantized ones can be met exactly or off by one level."""

    @property
    def model(self) -> Path:
        return self.file.with_name("model.onnx")

    @property
    def id(self) -> str:
        """The name of the case in a test, such as `vit-batch1`."""
        label = self.file.stem.removeprefix("case").removeprefix("_")
        return f"{self.name}-{label}" if label else self.name

    def inputs(self) -> dict[str, np.ndarray]:
        return self._arrays("in_")

    def outputs(self) -> dict[str, np.ndarray]:
        """By name, in the model's order."""
        return self._arrays("out_")

    def check(self, found: Mapping[str, Any], exact: bool = False) -> None:
        """Compare outputs by name with the recorded ones. exact: also those that are quantized, which otherwise may
        round to the next level, since a sum was computed in another order. Raises AssertionError."""
        for name, want in self.outputs().items():
            got = found[name]
            assert (got.dtype, got.shape) == (want.dtype, want.shape), name
            atol = self.atol if exact or want.dtype.kind == "f" else 1 if want.dtype.itemsize == 1 else 0
            given, wanted = got.astype(np.float64), want.astype(np.float64)
            np.testing.assert_allclose(given, wanted, atol=atol, rtol=self.rtol, err_msg=name)

    def _arrays(self, prefix: str) -> dict[str, np.ndarray]:
        with np.load(self.file) as arrays:
            return {key.removeprefix(prefix): arrays[key] for key in arrays.files if key.startswith(prefix)}


def cases(*, contrib: bool | None = None) -> Iterator[Case]:
    """Every case; with `contrib` given, only those of single com.microsoft operators, or only the others."""
    for name, entry in json.loads((HERE / "index.json").read_text(encoding="utf-8")).items():
        if contrib in (None, name.startswith("contrib/")):
            for file in entry["cases"]:
                yield Case(
                    name=name,
                    file=HERE / name / file,
                    opset=entry["opset"],
                    operators=tuple(entry["operators"]),
                    atol=entry["atol"],
                    rtol=entry["rtol"],
                    literal=entry["literal"],
                )
