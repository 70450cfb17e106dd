"""Loading models from ONNX or a Python module for the commands that run them, with descriptions of their inputs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ... import dtypes
from ...backend import Backend, get_backend
from ...errors import DTypeError, EmberletError, LoadError, ShapeError
from ...tensor import Tensor
from .. import npy
from ..extras import EXTRAS, require
from ..other_formats import refusal
from .options import Named, frozen_values
from .results import parts

Dims = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Input:
    """name: in the file; parameter: in `forward`; dtype and shape: None if unknown."""

    name: str
    parameter: str
    dtype: dtypes.DType | None
    shape: Dims | None

    def __str__(self) -> str:
        shape = "" if self.shape is None else " (" + ", ".join("?" if d is None else str(d) for d in self.shape) + ")"
        return f"{self.name}{'' if self.dtype is None else f': {self.dtype}'}{shape}"


@dataclass(frozen=True)
class Loaded:
    """A model on a backend, ready to run."""

    model: Any
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    frozen: Mapping[str, Tensor] = field(default_factory=dict)
    """The inputs that were given a value when the model was read; `inputs` does not hold them."""

    def compiled(self) -> Loaded:
        """The same model for many calls: compiled, on the numpy backend."""
        return self._compiled("numpy")

    def compiled_anywhere(self) -> Loaded:
        """The same model compiled on its backend; itself where that has no plans."""
        return self._compiled("numpy", "wgpu", "wasm", "native")

    def backend(self) -> Backend | None:
        """The backend that the model is on; None where there are several, or it is no module."""
        if not hasattr(self.model, "backends"):
            return None
        found = self.model.backends() or [getattr(self.model, "backend", None)]  # a model without weights
        return found[0] if len(found) == 1 else None

    def _compiled(self, *names: str) -> Loaded:
        backend = self.backend()
        if backend is None or backend.name not in names:
            return self
        return replace(self, model=self.model.compile(backend=backend))

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The outputs by name; a list of dicts or tensors has several names (results.parts)."""
        return {part: x for name, value in self.raw(inputs).items() for part, x in parts(name, value).items()}

    def raw(self, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
        """The outputs by name, as the model returns them."""
        found = self.model(*[inputs[i.name] for i in self.inputs])
        results = list(found) if isinstance(found, tuple) else [found]
        names = self.outputs
        if len(names) != len(results):
            names = ("output",) if len(results) == 1 else tuple(f"output_{i}" for i in range(len(results)))
        return dict(zip(names, results, strict=True))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the model, the backend and the inputs."""
    add_inputs(parser)
    parser.add_argument("--backend", help=f"{backends()} (default: numpy, else python)")


def backends() -> str:
    """The values of --backend, for its help."""
    from emberlet.backend import names

    return f"{', '.join(names())} or wgpu:N"


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a model's inputs."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="an input from an .npy file, or all from an .npz; repeat for more",
    )


def add_freeze(parser: argparse.ArgumentParser) -> None:
    """Add the argument that fixes inputs when an ONNX file is read."""
    parser.add_argument(
        "--freeze",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="make an input a constant: a number, a list ([1, 2]), a string or an .npy file; repeat for more",
    )


def load(path: str, backend: str | None, freeze: Sequence[str] = (), flat: bool = False) -> Loaded:
    """The model in an .onnx or .py file, with its weights. freeze: the words of --freeze; flat: whether an ONNX file
    becomes a single class, which is sooner written: for those who do not look at the modules.

    Raises EmberletError, OSError.
    """
    kind = os.path.splitext(path)[1]
    name = (backend or "").partition(":")[0]
    require(path, *([name] if name in EXTRAS else []))
    if name == "wgpu":
        get_backend(backend).open_early()
    if kind == ".onnx":
        return _load_onnx(path, get_backend(backend), freeze, flat)
    if kind == ".py":
        if freeze:
            anew = f"generate {path} anew with `emberlet codegen --freeze`"
            raise EmberletError(Named("freeze", [], f" takes an ONNX file: {anew}"))
        return _load_module(path, get_backend(backend))
    raise EmberletError(refusal(path, "an .onnx file, or a generated module (.py)"))


def _load_onnx(path: str, backend: Backend, freeze: Sequence[str], flat: bool) -> Loaded:
    from emberlet.codegen import weights
    from emberlet.codegen.emit.instance import instantiate
    from emberlet.codegen.generation import translate
    from emberlet.codegen.ir.types import TensorType

    model, written, _ = translate(path, freeze=frozen_values(freeze), flat=flat)
    instance = instantiate(written, model.name, backend)
    instance.load_record(weights.tensors(written.record, backend), layout="burn")
    inputs = []
    for argument, parameter in zip(model.graph.inputs, written.inputs, strict=True):
        known = argument.type if isinstance(argument.type, TensorType) else None
        inputs.append(Input(argument.name, parameter, known.dtype if known else None, known.shape if known else None))
    frozen = {name: value.tensor(backend) for name, value in model.frozen.items()}
    return Loaded(instance, tuple(inputs), model.outputs, frozen)


def _load_module(path: str, backend: Backend) -> Loaded:
    import importlib.util

    from ...model import Model
    from ..models.inputs import parameters_of

    # A unique name, because a model may be called numpy.
    name = "emberlet_model_" + os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise EmberletError(f"{path}: not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (SyntaxError, ImportError, ValueError) as error:
        del sys.modules[name]
        raise LoadError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Model)]
    classes = [c for c in classes if c.__module__ == name]
    if len(classes) != 1:
        found = ", ".join(c.__name__ for c in classes) or "none"
        raise LoadError(f"{path}: expected one class derived from emberlet.model.Model, found {found}")
    parameters = parameters_of(classes[0])
    entries = getattr(classes[0], "INPUTS", None) or tuple((p, "", None) for p in parameters)
    inputs = []
    for parameter, (label, kind, shape) in zip(parameters, entries, strict=False):
        inputs.append(Input(label, parameter, dtypes.BY_NAME.get(kind), shape))
    outputs = tuple(entry[0] for entry in getattr(classes[0], "OUTPUTS", None) or ())
    return Loaded(classes[0].default(backend), tuple(inputs), outputs)


def read_inputs(loaded: Loaded, given: list[str], backend: str | None) -> dict[str, Tensor]:
    """The tensors of NAME=FILE.npy pairs and of .npz files, by the inputs' names.

    Raises EmberletError for an unknown name, and if a file's dtype or shape does not match the model's.
    """
    found: dict[str, Tensor] = {}
    for word in given:
        name, equals, path = word.partition("=")
        if not equals and not word.endswith(".npz"):
            raise EmberletError(f"--input {word}: expected NAME=FILE.npy or FILE.npz")
        file = path if equals else word

        def check(name: str, dtype: dtypes.DType, shape: tuple[int, ...], file: str = file) -> None:
            i = _input(loaded, name)
            if i.name in found:
                raise EmberletError(f"--input {name}: given twice")
            _check_fits(dtype, shape, i, file)

        named = {name: npy.load(file, backend, check, name)} if equals else npy.load_archive(file, backend, check)
        for name, x in named.items():
            i = _input(loaded, name)
            if i.name in found:
                raise EmberletError(f"--input {name}: given twice")
            found[i.name] = x if i.dtype is None or x.dtype is i.dtype else x.backend.cast(x, i.dtype)
    return found


def _input(loaded: Loaded, name: str) -> Input:
    for i in loaded.inputs:
        if name in (i.name, i.parameter):
            return i
    if name in loaded.frozen:
        raise EmberletError(f"the input {name!r} is frozen; leave out either --freeze or --input")
    raise EmberletError(f"there is no input {name!r}; the model has {list_inputs(loaded)}")


def _check_fits(dtype: dtypes.DType, shape: tuple[int, ...], i: Input, file: str) -> None:
    """Raise if a file's array does not match the input, before its elements are read."""
    if i.dtype is not None and dtype is not i.dtype and dtype is not npy.stored_dtype(i.dtype):
        raise DTypeError(f"{file} holds {dtype} {shape}, the model takes {i}; convert the file")
    if i.shape is not None:
        fits = len(shape) == len(i.shape)
        if not fits or any(isinstance(d, int) and d != n for n, d in zip(shape, i.shape, strict=True)):
            raise ShapeError(f"{file} holds {dtype} {shape}, the model takes {i}")


def add_sizes(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add the argument for the sizes of symbolic dimensions. more: further help text."""
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=N",
        help="size of a dimension by its name, or by the input and the axis: length=512, input:1=512 (default: 1)"
        + more,
    )


def list_inputs(loaded: Loaded) -> str:
    return "; ".join(map(str, loaded.inputs)) or "none"
