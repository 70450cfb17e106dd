"""Small configs, modules and probes for the recorded calls: what they give is one text each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from emberlet import display, nn
from emberlet.backend import sizes
from emberlet.backend.axes import Axes, closed, named, of_model
from emberlet.config import Config
from emberlet.dtypes import alias, decimal, narrow
from emberlet.dtypes import dtype as dtype_of
from emberlet.dtypes.promotion import promoted
from emberlet.module import Module
from emberlet.module.display import DisplaySettings, format_module
from emberlet.module.record import record_of


class Inner(Config):
    size: int = 3


class Outer(Config):
    name: str
    rate: float = 0.5
    on: bool = True
    inner: Inner = Inner(9)
    layers: list[Inner] = []  # noqa: RUF012
    heads: dict[str, Inner] = {}  # noqa: RUF012
    kernel: tuple[int, int] = (3, 3)
    sizes: tuple[int, ...] = ()
    choice: Inner | int | None = None
    anything: object = None


def of_sizes(function: Callable[..., Any]) -> str:
    """What a function makes of sizes n, m, past and k = 4, 8, 12, …: as text, its bounds, and the guards it notes."""
    scope = sizes.Scope()
    of = [scope.symbol("n", 1, 5, 4), scope.symbol("m", 2, 4, 3), scope.symbol("past", 0, 6, 5)]
    of.append(scope.symbol("k", 4, 20, 8, 4))
    before = len(scope.guards)
    found = function(*of)
    parts = [repr(found)]
    if sizes.is_open(found):
        parts.append(f"{scope.bounds(found)} {sizes.typical(found)} {found.symbols()}")
    return "; ".join([*parts, *(f"{x!r} {relation} 0 is {answer}" for x, relation, answer, _ in scope.guards[before:])])


def of_axes(templates: Any, limits: Mapping[str, Any], shapes: Sequence[Any], attempt: int = 0) -> str:
    """The symbols' numbers in these shapes, whether they are within their limits, and the open shapes."""
    axes = Axes(templates, limits)
    found = axes.numbers(shapes)
    if found is None:
        return f"{axes.symbols} do not fit"
    scope, opened = axes.scope([s for s in axes.symbols if s != "fixed"], found, attempt)
    room = {s: (axes.capacity(s, found[s]), axes.within(s, found[s])) for s in axes.symbols}
    return f"{found} {room} {scope.typical} {axes.shapes(opened, shapes)}"


def of_dims(shapes: Sequence[Any], dims: Any, names: Sequence[str] = ("x", "cache")) -> str:
    """What `compile`'s argument `dims` opens in a model with these inputs."""
    axes = of_model(None, list(names), shapes, dims)
    return f"{axes.templates} {axes.limits} {named(dims)}"


def printed(x: Any, **options: Any) -> str:
    with display.print_options(**options):
        return repr(x)


def codes(name: str, low: int = 0, count: int = 256) -> str:
    """The values of a narrow dtype's codes; and what its values, and those between them, are rounded to."""
    dtype = dtype_of(name)
    values = [narrow.decode(dtype, code) for code in range(low, min(low + count, 1 << dtype.bits))]
    finite = [v for v in values if v - v == 0]
    between = [(a + b) / 2 for a, b in pairwise(finite)]
    beyond = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e30, -1e30, 1e-30]
    tried = [*finite, *between, *beyond]
    packed = bytes(narrow.pack(finite, dtype))
    encoded = [narrow.encode(dtype, v, saturate) for v in tried for saturate in (True, False)]
    return repr((values, encoded, packed, narrow.unpack(packed, dtype, len(finite))))


class Tree(Module):
    """A module of modules, lists, dicts, a shared layer and other attributes."""

    def __init__(self) -> None:
        self.first = self.again = nn.Linear(2, 3)
        self.layers = [nn.Relu(), nn.Conv2d(1, 2, (3, 1), padding=[(1, 1), (0, 1)]), nn.LayerNorm(2)]
        self.by_name = {"a": nn.Dropout(0.5), "b": [1, 2], "c": nn.Param.zeros((2, 0), "int32")}
        self.number, self.nothing, self.words = 3, None, ("x", True)


def shown(module: Any, **settings: Any) -> str:
    s = DisplaySettings()
    for name, value in settings.items():
        getattr(s, f"with_{name}")(value)
    default = {"show_all_attributes": False, "new_line_after_attribute": True, "show_num_parameters": True}
    for name, value in {**default, "indentation_size": 2, "show_param_id": False}.items():
        if getattr(s, name) is None:
            setattr(s, name, value)
    return format_module(module, s)


THINGS: dict[str, Any] = {
    "Inner": Inner, "Outer": Outer, "of_sizes": of_sizes, "of_axes": of_axes, "of_dims": of_dims, "printed": printed,
    "codes": codes, "Tree": Tree, "shown": shown, "sizes": sizes, "closed": closed, "alias": alias.alias,
    "dtype_of": dtype_of, "promoted": promoted, "shortest": decimal.shortest, "closeness": display.closeness,
    "check_closeness": display.check_closeness, "record_of": record_of,
}  # fmt: skip
