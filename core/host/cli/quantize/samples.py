"""The samples that a model is calibrated and compared on: .npz, .npy, Parquet, CSV, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import EmberletError, FormatError
from ... import npy
from ...extras import require
from ..model import Input

Columns = dict[str, Any]


def read(paths: Sequence[str], most: int) -> Columns:
    """The first `most` rows of files, by column. An .npz has a column for each of its arrays; a folder of pictures one
    of paths. Raises FormatError, EmberletError, OSError."""
    if len(paths) == 1 and paths[0].lower().endswith((".npz", ".npy")):
        return _arrays(paths[0], most)
    archive = next((path for path in paths if path.lower().endswith(".npz")), None)
    if archive is not None:
        raise EmberletError(f"{archive}: an .npz file is the only calibration file; put all samples into it")
    require("reading Parquet, CSV and pictures", "pyarrow")
    from ....batch import columns, files, rows

    found = files.find(paths)
    how = rows.Reading(found.system, None, (), min(most, 256))
    parts: list[Columns] = []
    count = 0
    for part in files.parts(found, 256):
        for table in rows.tables(part, how):
            held = columns.of_batch(table.drop_columns(list(rows.PLACE)))
            parts.append({name: x[: most - count] for name, x in held.items()})
            count += len(next(iter(held.values()), ()))
            if count >= most:
                return _joined(parts)
    if not count:
        raise FormatError(f"{', '.join(paths)}: there are no rows")
    return _joined(parts)


def _arrays(path: str, most: int) -> Columns:
    if path.lower().endswith(".npy"):
        found = {"": np.asarray(npy.load(path, "numpy"))}
    else:
        found = {name: np.asarray(x) for name, x in npy.load_archive(path, "numpy").items()}
    lengths = {name: len(x) if x.ndim else 0 for name, x in found.items()}
    if not found or 0 in lengths.values() or len(set(lengths.values())) > 1:
        raise FormatError(f"{path}: expected arrays of equally many samples, found {lengths or 'none'}")
    return {name: x[:most] for name, x in found.items()}


def _joined(parts: list[Columns]) -> Columns:
    out: Columns = {}
    for part in parts:
        if part.keys() != parts[0].keys():
            raise FormatError(
                f"the files have other columns, {', '.join(parts[0])} and {', '.join(part)}; give files of the same"
            )
    for name in parts[0]:
        pieces = [p[name] for p in parts]
        same = all(isinstance(x, np.ndarray) for x in pieces)
        out[name] = np.concatenate(pieces) if same else [row for x in pieces for row in x]
    return out


def taken(columns: Columns, name: str | None) -> tuple[Columns, NDArray[Any] | None]:
    """(the columns without that of the labels, the labels). Raises EmberletError for a name that is not there."""
    if name is None:
        return columns, None
    if name not in columns:
        raise EmberletError(f"--labels {name}: there is no such column; the columns are {', '.join(columns)}")
    labels = columns[name]
    if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "biuf":
        kind = labels.dtype if isinstance(labels, np.ndarray) else "rows of different shapes"
        raise EmberletError(f"--labels {name}: expected numbers of classes, found {kind}")
    return {key: x for key, x in columns.items() if key != name}, labels


def fitted(columns: Columns, inputs: Sequence[Input], given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """The model's inputs from the columns, a row for each sample. Raises EmberletError, DTypeError, ShapeError."""
    from ....batch import columns as cols

    unknown = given.keys() - {name for i in inputs for name in (i.name, i.parameter)}
    if unknown:
        raise EmberletError(f"the model has no input {min(unknown)!r}; it has {'; '.join(map(str, inputs))}")
    out: dict[str, NDArray[Any]] = {}
    for i in inputs:
        column = cols.joined(columns, cols.names_of(i, given, list(columns), len(inputs) == 1))
        held = cols.fit(cols.pictures(column, i) if cols.is_picture(column, i) else column, i)
        x = held.array
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            raise FormatError(f"{i.name}: the samples hold NaN or infinities; leave these rows out")
        out[i.name] = x
    return out
