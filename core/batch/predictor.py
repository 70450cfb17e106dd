"""Predictor: a model as a callable on batches, for any engine that runs callables on many machines."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import EmberletError
from ..host.cli.model import Input
from ..host.listing import names
from . import columns as cols
from .opened import Opened, Preprocess, chosen, function, opened, path_of


class Predictor:
    """A model that is called with batches: dicts of NumPy arrays, Arrow tables or pandas frames. It returns the same
    type.

    model: the path of an ONNX file or of a generated module; a generated class, which is pickled as the path of its
    file; or ONNX in memory or a Module, which are pickled whole. backend: "auto" is the GPU that Ray assigned to the
    process, else numpy, else python. compile: compile the model, on numpy, native, wgpu and wasm. outputs: a list of
    names, or a dict of output -> column. inputs: input -> column, or a list of numeric columns to stack; an input
    without an entry uses the column of its name. keep: columns of the batch to return as well. preprocess: a function
    from the batch, a dict of arrays, to the model's inputs; or "module:function", which is imported where it runs.
    batch_size: how many rows are computed at once; batches of any size are split into such pieces.

    A column with the bytes or the paths of image files is decoded (pictures.decode) for a numeric input. columns.fit
    describes the other conversions.

    A pickle holds the path, not the weights. A process opens a model once, even if it unpickles several Predictors.
    Threads may share a Predictor. Raises EmberletError if an argument does not match the model; FormatError and OSError
    for its file.
    """

    def __init__(
        self,
        model: Any,
        backend: str = "auto",
        compile: bool = True,
        outputs: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        inputs: Mapping[str, str | Sequence[str]] | None = None,
        keep: Sequence[str] = (),
        preprocess: Preprocess | str | None = None,
        batch_size: int | None = None,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise EmberletError(f"batch_size is {batch_size}, expected 1 or more")
        path = path_of(model)
        self._source = model if path is None else path
        # The model's key among those open in a process: the current version of its file, or the object itself.
        self._key: Any = _file_key(path) if path is not None else uuid.uuid4().hex
        self._backend, self._compile = backend, compile
        self._renamed = dict(outputs) if isinstance(outputs, Mapping) else {}
        self._outputs = [outputs] if isinstance(outputs, str) else None if outputs is None else list(outputs)
        self._inputs = dict(inputs or {})
        self._keep, self._preprocess, self._batch_size = tuple(keep), preprocess, batch_size
        self._call: Preprocess | None = None
        self._model: Opened | None = None
        self._check(self.opened)

    def __repr__(self) -> str:
        name = self._source if isinstance(self._source, str) else type(self._source).__name__
        return f"Predictor({name!r}, backend={self._backend!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None, "_call": None}

    @property
    def opened(self) -> Opened:
        """The model, opened in this process if it is not yet."""
        if self._model is None:
            backend = chosen(self._backend)
            key = (self._key, backend, self._compile, tuple(self._outputs or ["*"]), self._batch_size)

            def make() -> Opened:
                return Opened(self._source, backend, self._compile, self._outputs, self._batch_size)

            self._model = opened(key, make)
        return self._model

    def _check(self, model: Opened) -> None:
        known = {name for i in model.inputs for name in (i.name, i.parameter)}
        unknown = [name for name in self._inputs if name not in known]
        if unknown:
            raise EmberletError(f"the model has no input {unknown[0]!r}; it has {'; '.join(map(str, model.inputs))}")
        if isinstance(self._preprocess, str):
            function(self._preprocess)

    def __call__(self, batch: Any) -> Any:
        """The outputs for the rows of a batch, and the kept columns. Raises EmberletError."""
        given = cols.of_batch(batch)
        out = {}
        for name in self._keep:
            if name not in given:
                raise EmberletError(f"there is no column {name!r} to keep; the columns are {names(given)}")
            out[name] = given[name]
        for name, x in self.results(given).items():
            if name in out:
                raise EmberletError(
                    f"the column {name!r} is kept, and an output has that name too; rename the output: outputs={{…: …}}"
                )
            out[name] = x
        return cols.like(out, batch)

    def resolve(self) -> str | None:
        """Import a function given by name, so that it is pickled itself; returns the name of its module, or None."""
        if isinstance(self._preprocess, str):
            self._preprocess = function(self._preprocess)
        return getattr(self._preprocess, "__module__", None)

    def columns_of(self, i: Input, columns: Sequence[str]) -> list[str]:
        """The names of the columns that are read for an input of the model, as far as they are known."""
        try:
            return cols.names_of(i, self._inputs, columns, len(self.opened.inputs) == 1)
        except EmberletError:
            if self._preprocess is None:
                raise
            return []

    def results(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for the rows of columns, by their result names."""
        found = self._results(given)
        return {self._renamed.get(name, name): x for name, x in found.items()}

    def _results(self, given: Mapping[str, Any]) -> dict[str, Any]:
        model = self.opened
        if self._preprocess is None:
            kept = {} if self._inputs else dict.fromkeys(self._keep)
            return model({name: x for name, x in given.items() if name not in kept}, self._inputs)
        columns = dict(given)
        for i in model.inputs:
            said = self._inputs.get(i.name, self._inputs.get(i.parameter))
            if said is not None:
                column = cols.joined(columns, cols.names_of(i, self._inputs, list(columns), False))
                columns[i.name] = cols.pictures(column, i) if cols.is_picture(column, i) else column
        if self._call is None:
            self._call = function(self._preprocess) if isinstance(self._preprocess, str) else self._preprocess
        made = self._call(columns)
        if not isinstance(made, Mapping):
            raise EmberletError(f"preprocess returned a {type(made).__name__}, expected a dict of arrays")
        for name, x in made.items():
            if not hasattr(x, "__len__") or getattr(x, "ndim", 1) == 0:
                raise EmberletError(f"preprocess returned a {type(x).__name__} as {name!r}, expected an array of rows")
        return model(made, None)

    def map(self, batches: Iterable[Any]) -> Iterator[Any]:
        """An iterator over the results of many batches, for Spark's `mapInPandas`."""
        for batch in batches:
            yield self(batch)


def _file_key(path: str) -> Any:
    try:
        found = os.stat(path)
    except OSError:
        return path, None, None  # opening it reports the problem
    return path, found.st_mtime_ns, found.st_size
