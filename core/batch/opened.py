"""A model opened in this process, called with lists of arrays."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import dtypes
from ..backend import Backend, get_backend
from ..errors import EmberletError, ShapeError
from ..host.cli.model import Input, Loaded, load
from ..host.cli.results import parts
from ..host.models.inputs import parameters_of
from ..host.numpy_backend.compile import Compiled
from ..host.sharing.arrays import to_array, to_tensor
from . import columns as cols
from .pieces import Arrays, Pieces

MOST = 4  # the maximum number of models open in a process

Preprocess = Callable[[dict[str, Any]], Mapping[str, Any]]


class Opened:
    """A model with its plans.

    source: the path of an .onnx file or a generated module, or any argument of `emberlet.codegen.load`, or a Module.
    backend: a name, or "auto". compile: whether to compile it. outputs: the names of the outputs to return; None: all.
    """

    def __init__(
        self, source: Any, backend: str, compile: bool, outputs: Sequence[str] | None, batch_size: int | None
    ) -> None:
        loaded = _load(source, None if backend == "auto" else backend)
        self.inputs = loaded.inputs
        self.names = loaded.outputs
        unknown = [name for name in outputs or () if name not in self.names]
        if unknown and self.names:
            raise EmberletError(f"the model has no output {unknown[0]!r}; it has {', '.join(self.names)}")
        self._loaded = loaded
        self._wanted = None if outputs is None else list(outputs)
        home = _home(loaded.model, backend)
        self.backend = home
        self._compiled: Any = None
        if compile and home.name in ("numpy", "wgpu", "wasm", "native") and hasattr(loaded.model, "compile"):
            self._compiled = loaded.model.compile(backend=home)
        fixed = {i.shape[0] for i in self.inputs if i.shape}
        rows = next(iter(fixed)) if len(fixed) == 1 else None
        self._pieces = Pieces(
            self._planned if self._compiled is not None else self._plain,
            self._plain,
            rows if isinstance(rows, int) else None,
            self._compiled is not None,
            batch_size,
        )
        self._whole = Pieces(self._one_row, self._one_row, 1, False)
        self._found: list[str] = []

    def __call__(self, columns: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, NDArray[Any]]:
        """The outputs, by name, for the rows of `columns`. Raises EmberletError if they do not match the model."""
        fitted = []
        for i in self.inputs:
            column = cols.joined(dict(columns), cols.names_of(i, given, list(columns), len(self.inputs) == 1))
            fitted.append(cols.fit(cols.pictures(column, i) if cols.is_picture(column, i) else column, i))
        arrays, shared = [f.array for f in fitted], [f.shared for f in fitted]
        if all(shared):
            raise ShapeError("none of the model's inputs has a batch axis: it computes the same for every row")
        whole = any(f.whole for f in fitted)
        if whole and not all(f.whole or f.shared for f in fitted):
            raise ShapeError("some of the model's inputs have a batch axis and others have none")
        found = (self._whole if whole else self._pieces).run(arrays, shared)
        return dict(zip(self._found, found, strict=True))

    def _planned(self, inputs: Arrays) -> list[Any]:
        if isinstance(self._compiled, Compiled):
            found = self._compiled.arrays(inputs)
            if found is not None and len(found) == len(self.names):
                return self._chosen(dict(zip(self.names, found, strict=True)))
        return self._named(self._compiled(*[to_tensor(x, self.backend) for x in inputs]))

    def _plain(self, inputs: Arrays) -> list[Any]:
        return self._named(self._loaded.model(*[to_tensor(x, self.backend) for x in inputs]))

    def _one_row(self, inputs: Arrays) -> list[Any]:
        rows = [x[0] if x.ndim and len(x) == 1 else x for x in inputs]
        call = self._planned if self._compiled is not None else self._plain
        return [np.asarray(x)[None] for x in call(rows)]

    def _named(self, value: Any) -> list[Any]:
        results = list(value) if isinstance(value, tuple) else [value]
        names = self.names
        if len(names) != len(results):
            names = ("output",) if len(results) == 1 else tuple(f"output_{i}" for i in range(len(results)))
        found = {}
        for name, x in zip(names, results, strict=True):
            if hasattr(x, "shape"):
                found[name] = x
            elif self._wanted is None or name in self._wanted:
                table = isinstance(x, list | tuple) and len(x) > 0 and isinstance(x[0], dict)
                for part, held in parts(name, x).items():
                    if not (table and part == f"{name}.keys"):  # the same for all rows
                        found[part] = held
        return self._chosen(found)

    def _chosen(self, found: dict[str, Any]) -> list[Any]:
        """The requested outputs as arrays, by name."""
        wanted = list(found) if self._wanted is None else self._wanted
        lacking = [name for name in wanted if name not in found]
        if lacking:
            raise EmberletError(f"the model has no output {lacking[0]!r}; it has {', '.join(found)}")
        if not self._found:
            self._found = wanted
        return [to_array(x) if not isinstance(x, np.ndarray) else x for x in (found[name] for name in wanted)]


_open: OrderedDict[Any, Opened] = OrderedDict()
_lock = RLock()


def opened(key: Any, make: Callable[[], Opened]) -> Opened:
    """The model of this key, opened once per process, because a pool unpickles a Predictor for each task."""
    with _lock:
        found = _open.pop(key, None)
        if found is None:
            found = make()
        _open[key] = found
        while len(_open) > MOST:
            _open.popitem(last=False)
        return found


def _home(model: Any, backend: str) -> Backend:
    if backend != "auto":
        return get_backend(backend)
    found = model.backends() if hasattr(model, "backends") else []
    return found[0] if found else get_backend(None)


def chosen(backend: str) -> str:
    """The backend for "auto": the GPU that Ray assigned to this process, else numpy, else python."""
    ray = sys.modules.get("ray")
    if backend != "auto" or ray is None or not ray.is_initialized():
        return backend
    gpus = ray.get_runtime_context().get_accelerator_ids().get("GPU") or []
    if not gpus:
        return backend
    return f"wgpu:{gpus[0]}" if str(gpus[0]).isdigit() else "wgpu"


def _load(source: Any, backend: str | None) -> Loaded:
    """A Loaded of a path, of anything codegen reads, or of a Module."""
    if isinstance(source, str):
        return load(source, backend)
    if hasattr(source, "forward"):
        model = source if backend is None else source.fork(backend)
    else:
        from emberlet.codegen import load as generate

        model = generate(source, backend)
    parameters = parameters_of(model)
    entries = getattr(model, "INPUTS", None) or tuple((p, "", None) for p in parameters)
    inputs = [
        Input(label, parameter, dtypes.BY_NAME.get(kind), shape)
        for parameter, (label, kind, shape) in zip(parameters, entries, strict=False)
    ]
    return Loaded(model, tuple(inputs), tuple(entry[0] for entry in getattr(model, "OUTPUTS", None) or ()))


def function(named: str) -> Preprocess:
    """The function of "module:function"; the current folder is searched too. Raises EmberletError."""
    module, _, name = named.partition(":")
    if not module or not name:
        raise EmberletError(f"preprocess {named!r}: expected module:function")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise EmberletError(f"preprocess {named!r}: there is no module {error.name!r}") from None
    except AttributeError:
        raise EmberletError(f"preprocess {named!r}: {module} has no {name}") from None
    except Exception as error:  # anything the module raises on import
        raise EmberletError(f"preprocess {named!r}: {module} fails: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise EmberletError(f"preprocess {named!r}: {name} is not a function")
    called: Preprocess = found
    return called


def path_of(model: Any) -> str | None:
    """The file of a path or a generated class, as an absolute path; None for anything else."""
    if isinstance(model, str | os.PathLike):
        return str(Path(model).expanduser().absolute())
    if isinstance(model, type):
        file = getattr(sys.modules.get(model.__module__), "__file__", None)
        if file is None:
            raise EmberletError(
                f"{model.__name__} is not in a file that another process could read; pass the model's path"
            )
        return str(Path(file).absolute())
    return None
