"""From a model to Python: `generate` writes files, `load` gives a model that is ready to run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from emberlet.errors import EmberletError, ModelError

from . import checkpoint_names, weights
from .budget import model_budget
from .emit.instance import instantiate
from .emit.module import ModuleWriter, Written
from .emit.names import file_stem
from .hierarchy import writer as hierarchy
from .ir.graph import Model, State
from .ir.problem import Problem, bug, origin_of, refusing, report
from .passes import run_passes
from .reader import read_model

if TYPE_CHECKING:
    from emberlet.backend import Backend
    from emberlet.model import Model as GeneratedModel
    from onnx import ModelProto

    from .reader.freezing import Frozen


@dataclass(frozen=True, slots=True)
class Generated:
    """What `generate` wrote: the module, its burnpack (None if it is embedded or there are no weights), the name of the
    class, and what the passes did."""

    module: Path
    weights: Path | None
    class_name: str
    notes: tuple[str, ...]


def translate(
    source: str | os.PathLike[str] | bytes | ModelProto,
    name: str | None = None,
    passes: Iterable[str] | None = None,
    weights_name: str | None = None,
    top_comment: str = "",
    folder: Path | None = None,
    flat: bool = False,
    freeze: Frozen | None = None,
    state: Iterable[str] = (),
) -> tuple[Model, Written, tuple[str, ...]]:
    """(typed IR after the passes, the class's source and weights, what the passes did). Raises ModelError.

    folder: where the external data of bytes or of a ModelProto lies. freeze, state: as in `generate`.
    """
    with refusing(source), model_budget():
        model = read_model(source, name, folder, freeze)
        named = _states(model, tuple(state))
        graph, notes = run_passes(model.graph, passes)
        model = replace(model, graph=graph, states=named)
        written = None if flat else _in_modules(model, weights_name, top_comment)
        if written is None:
            written = ModuleWriter(model).write(weights_name, top_comment)
        if written.problems:
            raise ModelError(report(origin_of(source), written.problems))
        return model, written, notes


def _in_modules(model: Model, weights_name: str | None, top_comment: str) -> Written | None:
    """The source with a class for each module; None, with a warning, where finding these fails."""
    try:
        return hierarchy.write(model, weights_name, top_comment)
    except (Problem, EmberletError):
        raise
    except Exception as error:
        warnings.warn(f"{bug(error)} Its modules are not found: the model becomes one class.", stacklevel=4)
        return None


def _states(model: Model, words: tuple[str, ...]) -> tuple[State, ...]:
    if not words and min(len(model.graph.inputs), len(model.graph.outputs)) < 2:
        return ()  # a step must have other inputs and other outputs
    from . import states

    return states.given(model, words, states.find(model))


def generate(
    source: str | os.PathLike[str] | bytes | ModelProto,
    out_dir: str | os.PathLike[str],
    name: str | None = None,
    embed: bool = False,
    half: bool = False,
    passes: Iterable[str] | None = None,
    top_comment: str = "",
    force: bool = False,
    flat: bool = False,
    freeze: Frozen | None = None,
    state: Iterable[str] = (),
) -> Generated:
    """Write `name.py`, and beside it `name.bpk` unless the weights are embedded, into `out_dir` (made if missing).

    source: the path of an ONNX file, its bytes, or a ModelProto. name: that of the class and the files; by default the
    file's. half: store floats as float16 (computation stays at full width). passes: the names of those to run, by
    default all. force: overwrite a module that was edited or generated from another model. flat: one class for the
    whole model, instead of one for each distinct module of the source model. freeze: values of inputs by their names in
    the file ({"sr": 16000}): these become constants instead of inputs, and what depends only on them is computed now.
    state: inputs that return as outputs, in addition to those that are found: "h=hn", "past=present:2" if the output is
    longer along axis 2, or "none" to use only the given ones. Raises ModelError, which lists every problem found,
    OverwriteError if such a module is in the way, and OSError; the folder is then unchanged.
    """
    from emberlet.host.together import synced, together

    from .overwriting import check_overwrite, signed

    stem = file_stem(name or _stem(source))
    weights_name = None if embed else stem + ".bpk"
    model, written, notes = translate(
        source, name, passes, weights_name, top_comment, flat=flat, freeze=freeze, state=state
    )
    metadata = {"generator": "emberlet", "model": model.name, **checkpoint_names.metadata_entry(written.record)}
    if model.producer:
        metadata["producer"] = model.producer
    text = written.source
    if embed:
        with refusing(source):
            data = weights.dumps(written.record, half, metadata)
        text += f"\n\n{written.class_name}.EMBEDDED = {bytes_literal(data)}\n"
    out = Path(out_dir)
    module, pack = out / (stem + ".py"), out / (stem + ".bpk")
    if not force:
        check_overwrite(module, text, None if embed else pack)
    text = signed(text)
    with refusing(source), made_folder(out), together(out) as draft:
        # Both files are complete before either replaces an old one.
        with synced(draft / module.name) as file:
            file.write(text.encode())
        if not embed:
            weights.save(draft / pack.name, written.record, half, metadata)
    return Generated(module, None if embed else pack, written.class_name, notes)


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Make the folder and its parents; the new ones are removed if the block fails."""
    made = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # something else was put there meanwhile
            for p in made:
                p.rmdir()
        raise


def load(
    source: str | os.PathLike[str] | bytes | ModelProto,
    backend: Backend | str | None = None,
    name: str | None = None,
    passes: Iterable[str] | None = None,
    flat: bool = False,
    freeze: Frozen | None = None,
    state: Iterable[str] = (),
) -> GeneratedModel:
    """The model as an instance of its generated class, with its weights, and without writing any file. flat, freeze,
    state: as in `generate`.

    Raises ModelError, which lists every problem found.
    """
    with refusing(source), model_budget():
        model, written, _ = translate(source, name, passes, flat=flat, freeze=freeze, state=state)
        instance = instantiate(written, model.name, backend)
        instance.load_record(weights.tensors(written.record, backend), layout="burn")
        (type(instance).SOURCES,) = checkpoint_names.metadata_entry(written.record).values()  # type: ignore[attr-defined]
        return instance


def _stem(source: object) -> str:
    return Path(source).stem if isinstance(source, str | os.PathLike) else "model"


def bytes_literal(data: bytes) -> str:
    """`data` as Python source with the quotes a formatter prefers."""
    text = repr(data)
    if text[1] == '"' or b'"' not in data:
        return 'b"' + text[2:-1] + '"'
    if data.count(b'"') <= data.count(b"'"):
        return 'b"' + text[2:-1].replace("\\'", "'").replace('"', '\\"') + '"'
    return text
