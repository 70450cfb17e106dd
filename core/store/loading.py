"""Loading a store into a module: everything is checked before anything changes, and every problem is listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import EmberletError, LoadError
from ..module import Module
from ..module.burn_names import burn_names
from ..module.layouts import KEY, LAYOUTS
from ..tensor import Tensor
from . import torch_modules
from .checkpoints import Checkpoint
from .filters import Filtering, filter_of
from .naming import Renaming, aligned, without_variants
from .quantized_layers import fitted
from .snapshot import Snapshot
from .sources import Place, places, store_of
from .stored import Store, similar


@dataclass
class LoadResult:
    """The result of a load, by the module's names (`unused` by the file's).

    applied: loaded; skipped: excluded by the filter; kept: constants of a generated model, which are not in
    checkpoints; missing: not in the file; unused: in the file but not in the module; wrong: name -> why its value does
    not match; sources: applied name -> name in the file; suggestions: missing name -> similar unused names; transposed:
    dense weights that were transposed.
    """

    applied: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    suggestions: dict[str, list[str]] = field(default_factory=dict)
    transposed: list[str] = field(default_factory=list)
    quantized: dict[str, float] = field(default_factory=dict)

    @property
    def errors(self) -> list[str]:
        """The reasons in `wrong`, each after its name."""
        return [f"{name}: {why}" for name, why in self.wrong.items()]

    def __str__(self) -> str:
        lines = [
            f"{len(self.applied)} applied, {len(self.skipped)} skipped, {len(self.missing)} missing, "
            f"{len(self.unused)} unused, {len(self.wrong)} wrong"
        ]
        for name in self.missing:
            near = self.suggestions.get(name)
            lines.append(f"  missing {name}" + (f" (in the file: {', '.join(near)}?)" if near else ""))
        lines += [f"  unused {name}" for name in self.unused]
        lines += [f"  quantized {name}: {lost:.2%} lost" for name, lost in self.quantized.items()]
        lines += [f"  wrong {name}: {why}" for name, why in self.wrong.items()]
        return "\n".join(lines)


class RefusedError(LoadError):
    """A refused load; `result` is its LoadResult."""

    def __init__(self, message: str, result: LoadResult) -> None:
        super().__init__(message)
        self.result = result


def load(  # noqa: C901
    module: Module,
    source: Any,
    *,
    filter: Filtering = None,
    rename: Renaming | None = None,
    layout: str | None = None,
    contiguous: bool | None = None,
    skip_enum_variants: bool | None = None,
    partial: bool = False,
    validate: bool = True,
) -> LoadResult:
    """See Module.load_from."""
    store = store_of(source)
    if rename is not None:
        store = store.rename(rename)
    pytorch = store.format == "pytorch"
    lying = _layout(store, layout)
    checkpoint = Checkpoint.of(module, lying)
    keep = filter_of(filter)
    all_places = list(places(module))
    if store.nameless:
        store = _in_order(module, store)
    names, taken, wrong, narrowed = _names(
        module, store, all_places, lying, checkpoint,
        pytorch if contiguous is None else contiguous, pytorch if skip_enum_variants is None else skip_enum_variants,
    )  # fmt: skip
    result = LoadResult()
    values: dict[int, tuple[Any, Tensor, int | None]] = {}
    absent: list[Place] = []
    used: set[str] = set()
    for place in all_places:
        snapshot = names.get(place.name)
        if snapshot is not None:
            used.update(taken.get(place.name, (snapshot.name,)))
        if not keep(place.name, place.container):
            result.skipped.append(place.name)
        elif place.name in wrong:
            result.wrong[place.name] = wrong[place.name]
        elif snapshot is None and checkpoint.is_constant(place):
            result.kept.append(place.name)
        elif snapshot is None:
            absent.append(place)
        else:
            try:
                value, turned = _value(place, snapshot, lying, checkpoint.is_transposed(place))
            except EmberletError as error:
                result.wrong[place.name] = str(error)
                continue
            values[id(place.param)] = (place.param, value, snapshot.param_id)
            result.applied.append(place.name)
            result.sources[place.name] = snapshot.original
            if turned:
                result.transposed.append(place.name)
    # A parameter with several names in the module needs only one of them in the file.
    result.missing = [p.name for p in absent if id(p.param) not in values]
    result.unused = _unused(store, used, all_places)
    near = {name: similar(name, result.unused) for name in result.missing}
    result.suggestions = {name: found for name, found in near.items() if found}
    norms = [n for n in result.unused if n.endswith(".running_var")]
    if validate and checkpoint.known and norms:
        result.wrong[norms[0].rpartition(".")[0]] = checkpoint.FUSED
    if result.unused and not partial:  # one of them may belong there
        result.missing += result.kept
        result.kept = []
    if (validate and result.wrong) or (result.missing and not partial):
        raise RefusedError(_refusal(module, store, result, partial), result)
    for param, value, identity in values.values():
        param.set(value, identity)
    applied = set(result.applied)
    result.quantized = {name: lost() for name, lost in narrowed.items() if name + ".values" in applied}
    return result


def _unused(store: Store, used: set[str], all_places: list[Place]) -> list[str]:
    """The names that no parameter took, without the counters of batch norms, which emberlet has none of."""
    own = {p.name.rpartition("running_var")[0] + "num_batches_tracked" for p in all_places}
    return [n for n in store if n not in used and n not in own and not n.endswith(".num_batches_tracked")]


def _in_order(module: Module, store: Store) -> Store:
    """A store without names under those of the module's parameters, one after the other."""
    all_places = list(places(module, burn=True))
    if len(store) != len(all_places):
        ours = [f"{p.name} {p.param.shape}" for p in all_places] + ["nothing"]
        theirs = [str(s.shape) for s in store.values()] + ["nothing"]
        pairs = zip(all_places, store.values(), strict=False)
        unlike = (i for i, (p, s) in enumerate(pairs) if p.param.shape != s.shape)
        at = next(unlike, min(len(store), len(all_places)))
        raise LoadError(
            f"{store.origin} holds no names, so its tensors are taken in the order of the module's parameters. It "
            f"holds {len(store)}, and {type(module).__name__} has {len(all_places)}. The first difference is number "
            f"{at}: the module has {ours[at]}, the file {theirs[at]}"
        )
    return store.rename({name: p.name for name, p in zip(store, all_places, strict=True)})


def _layout(store: Store, given: str | None) -> str | None:
    for one in (given, store.layout):
        if one not in (None, *LAYOUTS):
            raise LoadError(f"layout is one of {', '.join(LAYOUTS)}, found {one!r}")
    said = store.metadata.get(KEY)
    if given and said and given != said:
        raise LoadError(f"{store.origin}: the file's layout is {said!r}, but layout={given!r} was given")
    return given or store.layout


def _names(
    module: Module,
    store: Store,
    all_places: list[Place],
    layout: str | None,
    checkpoint: Checkpoint,
    contiguous: bool,
    variants: bool,
) -> tuple[dict[str, Snapshot], dict[str, tuple[str, ...]], dict[str, str], dict[str, Callable[[], float]]]:
    """Parameter name -> (its value in the store, the names it is read from, why it cannot be read); and what the
    weights lose that are quantized."""
    wanted = [p.name for p in all_places]
    named: dict[str, Snapshot] = dict(store)
    at = named
    if contiguous:
        moved = aligned(store, wanted)
        at = {moved[name]: s for name, s in store.items()}
    at = {**torch_modules.split(module, at), **at}
    others = {} if layout == "pytorch" else _burn(module, at)
    found, taken, wrong, narrowed = fitted(module, at, layout)
    for place in all_places:
        if place.name in found or place.name in wrong:
            continue
        try:
            said = checkpoint.find(place, named)
        except LoadError as error:
            wrong[place.name] = str(error)
            continue
        if said is not None:
            found[place.name], taken[place.name] = said
            continue
        theirs = getattr(place.holder, "BURN_NAMES", {}).get(place.key)
        old = place.name[: -len(str(place.key))] + theirs if theirs else ""  # its name in old PyTorch files
        for name in (others.get(place.name), place.name, old):
            if name and name in at:
                found[place.name] = at[name]
                break
    if variants:
        _match_variants(all_places, at, found)
    return found, taken, wrong, narrowed


def _burn(module: Module, at: Mapping[str, Snapshot]) -> dict[str, str]:
    """Our names -> Burn's, if the store has those."""
    pairs = burn_names(module)
    if any(burn in at and burn != own and burn not in pairs for own, burn in pairs.items()):
        return {own: burn for own, burn in pairs.items() if burn in at}
    return {}


def _match_variants(all_places: list[Place], at: Mapping[str, Snapshot], found: dict[str, Snapshot]) -> None:
    """Match the remaining names by their paths without enum variants; of several, the first with the right shape."""
    used = {s.name for s in found.values()}
    short: dict[str, list[Snapshot]] = {}
    for name, s in at.items():
        if s.name not in used:
            short.setdefault(without_variants(name), []).append(s)
    for place in all_places:
        if place.name not in found:
            shapes = [place.param.shape] + [place.param.shape[::-1]] * place.transposed_in_pytorch
            for s in short.get(without_variants(place.name), ()):
                if s.shape in shapes:
                    found[place.name] = s
                    break


def _value(place: Place, snapshot: Snapshot, layout: str | None, turned: bool | None) -> tuple[Tensor, bool]:
    """(the parameter's new value, whether it was transposed). turned: whether a generated model declares it transposed,
    or None."""
    shape = place.param.shape
    turn = False
    if turned is not None and (layout is not None or shape[0] == shape[1]):
        turn = turned
    elif place.transposed_in_pytorch or turned:
        turn = layout == "pytorch"
        if layout is None and shape[0] == shape[1]:
            raise LoadError(
                "is square, so its shape does not tell whether it is stored (d_input, d_output) or, as PyTorch does, "
                "transposed; pass layout='burn' or layout='pytorch'"
            )
        if layout is None:
            turn = snapshot.shape == shape[::-1]
    expected = shape[::-1] if turn else shape
    if snapshot.shape != expected and getattr(place.param, "_on_load", None) is None:
        raise LoadError(f"shape {snapshot.shape} where the module has {expected}" + (" (transposed)" if turn else ""))
    value = snapshot.tensor(place.param.backend)
    return place.param.loaded(value.mT if turn else value), turn


def _refusal(module: Module, store: Store, result: LoadResult, partial: bool) -> str:
    lines = [f"{store.origin} does not fit {type(module).__name__}; nothing was loaded"]
    for name in [] if partial else result.missing[:20]:
        near = result.suggestions.get(name)
        lines.append(f"  missing: {name}" + (f" (in the file: {', '.join(near)}?)" if near else ""))
    if len(result.missing) > 20 and not partial:
        lines.append(f"  and {len(result.missing) - 20} more missing")
    lines += [f"  {name}: {why}" for name, why in list(result.wrong.items())[:20]]
    if len(result.wrong) > 20:
        lines.append(f"  and {len(result.wrong) - 20} more that do not fit")
    if result.unused:
        shown = ", ".join(result.unused[:8])
        lines.append(f"  not used: {shown}" + (f" and {len(result.unused) - 8} more" if len(result.unused) > 8 else ""))
    if result.missing and not partial:
        lines.append("  rename=[(pattern, replacement), ...] maps names; partial=True loads what there is")
    return "\n".join(lines)
