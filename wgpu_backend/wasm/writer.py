"""Writes a model as a WebAssembly module (file.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from emberlet import dtypes
from emberlet.errors import ModelError
from emberlet.sizes.questions import known_equal
from emberlet.sizes.size import Size, is_open, most

from ..plan import narrowing
from ..plan.counts import count, counts_of
from ..plan.data import Buffer
from ..plan.make import make_plan
from ..plan.narrowing import SIGNED
from ..plan.opened import number_of, planned_for, sizes_of
from ..plan.storing import encoded
from ..plan.traced import checked_indices, port_names, traced_for
from ..record.host_evaluation import words_of
from ..record.index_ranges import index_ranges
from ..record.node import Node, topological
from .file import NAME, SIMD, VERSION, VERSION_OPEN
from .image import Image
from .kernels.contraction import PANEL_ORDER as FLOAT_ORDER
from .kernels.integers import ORDER, WIDTH, is_offset
from .kernels.table import Options
from .prepare import materialize, prepare
from .sections import checksum

MOST = 1 << 30  # the most bytes of a module that browsers accept


def save(
    path: str,
    model: Any,
    *examples: Any,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    weights: str | None = None,
    dims: dict[str, Any] | None = None,
    relaxed: bool | None = None,
) -> Any:
    """Trace model(*examples) for their dtypes and shapes and write its module to `path`; returns the Plan.

    inputs, outputs, weights, dims, relaxed: as in plan/writer.py. Raises ModelError if the model is not a single plan
    or is too large.
    """
    from emberlet.host.files import atomic_write

    from .backend import WasmBackend

    backend = WasmBackend(planning=True)
    relaxed = None if relaxed is None else bool(relaxed)
    kinds = (True, False) if relaxed is None else (relaxed,)
    traced, results, checks, plans = planned_for(model, examples, backend, dims, partial(_planned, kinds))
    plan, externals = plans[kinds[0]]
    given = {node.arg: number for number, node in zip(plan.externals, externals) if node.op == "input"}
    constants = {number: node for number, node in zip(plan.externals, externals) if node.op != "input"}
    data, stored = _constants(constants, traced.narrow, backend, weights)
    for node in traced.inputs:
        if node.arg not in given:  # no result uses it, but callers still pass it
            given[node.arg] = len(plan.buffers)
            for one, _ in plans.values():
                one.buffers.append(Buffer("external", count(node.nbytes)))
    counts = plan.counts
    scope = next((d.scope for n in traced.inputs for d in n.shape if is_open(d)), None)

    def laid_out(one: Any, relaxed: bool) -> Image:
        return Image(one, stored, len(counts.block) if counts else 0, lambda n: _highest(n, scope), relaxed)

    image = laid_out(plan, kinds[0])
    names, labels = port_names(model, len(examples), len(results), inputs, outputs)
    roots = {id(r): plan.outputs[i] for i, r in enumerate(traced.roots)}

    def place(number: int, nbytes: Any) -> list[int]:
        """The address of a buffer and the bytes of it that hold an input or a result, at most."""
        return [image.addresses[number], _highest(nbytes, scope)]

    lengths = index_ranges(traced.roots)
    content = {
        "version": VERSION if counts is None else VERSION_OPEN,
        "threads": image.threads,
        "checksum": "crc32",
        "inputs": [
            [names[n.arg], n.dtype.name, [number_of(d) for d in n.shape], *place(given[n.arg], n.nbytes)]
            for n in traced.inputs
        ],
        "outputs": [
            [labels[i], r.dtype.name, [number_of(d) for d in r.shape], *place(roots[id(r)], r.count * 4)]
            for i, r in enumerate(results)
        ],
        "indices": [[at, number_of(lengths[n.arg])] for at, n in enumerate(traced.inputs) if n.arg in lengths],
    }
    if checks:
        content["computed_indices"] = [
            [r.dtype.name, place(roots[id(r)], 8)[0], number_of(end), not known_equal(lowest, 0), message, axis]
            for r, (_, lowest, end, message, axis) in checks
        ]
    if relaxed is not None:
        content["relaxed"] = relaxed
    if counts is not None:
        content["sizes"] = sizes_of(counts)
    custom = [(NAME, json.dumps(content).encode())]
    custom += [(SIMD, laid_out(plans[kind][0], kind).code()) for kind in kinds[1:]]
    whole = image.file(custom, data)
    whole += checksum(whole)
    if len(whole) > MOST:
        raise ModelError("the module would have {} bytes; browsers accept {}".format(len(whole), MOST))
    with atomic_write(path) as file:
        file.write(whole)
    return plan


def _constants(
    nodes: dict[int, Any], narrow: dict[int, Any], backend: Any, weights: str | None
) -> tuple[dict[int, Any], dict[int, Any]]:
    """(the bytes of each constant, or their parts; how the encoded ones are stored, as stored.py takes it), by the
    numbers of their buffers."""
    data, stored = {}, {}
    for number, node in nodes.items():
        data[number], how = _constant(node, narrow.get(id(node)), backend, weights)
        if how:
            stored[number] = how
    return data, stored


def _constant(node: Any, narrow: Any, backend: Any, weights: str | None) -> tuple[Any, Any]:
    """The bytes of a constant, or their parts, and how they are stored, None for as they are."""
    if node.word != "f32":
        return words_of(node), None
    exact = narrowing.encoded(narrow, backend.host) if narrow else None
    if exact:
        return [exact[0], exact[2]], exact[1]
    words = words_of(node)
    parts = encoded(weights, words)
    return [part.tobytes() for part in parts] or words, weights if parts else None


def _planned(
    kinds: Sequence[bool], model: Any, examples: Sequence[Any], backend: Any, opening: Any = None
) -> tuple[Any, list[Any], list[Any], dict[bool, Any]]:
    """The Trace, the nodes of its results, its `checked_indices`, and (Plan, externals) with relaxed SIMD (True) and
    without (False), of these kinds. opening: an Opening. Raises SizeNeeded if a size cannot be left open."""
    scope = opening.scope if opening else None
    traced, results = traced_for(model, examples, backend, opening.shapes if opening else None)
    checks = checked_indices(traced, backend)
    materialize(traced.roots, backend.host)
    prepare(traced.roots)
    _order_weights(traced.roots, traced.narrow)
    plans = {kind: make_plan(traced.roots, Options(kind), False, sizes=scope) for kind in kinds}
    if scope is not None:
        for plan, _ in plans.values():
            counts_of(plan, scope)
    return traced, results, checks, plans


def _highest(n: Any, scope: Any) -> int:
    """An upper bound of a number, a Size or a Polynomial in the atoms of a Scope."""
    return n if type(n) is int else most(Size(scope, n.terms))


# -- weights of products in the order in which the kernels read them --------------------------------------------------


def _order_weights(roots: Sequence[Any], narrow: dict[int, Any]) -> None:
    """Replace constant matrices of products, (terms, columns), by panels of WIDTH columns: term by term
    (kernels/contraction/), or by pairs of terms those of 8-bit integers (kernels/integers.py); and 8-bit weights of
    convolutions by some with the channels last. The weight becomes a view of them, so that nothing else changes.
    narrow: what is known of floats that the file holds in 8 bits."""
    order = topological(roots)
    readers: dict[int, int] = {}
    for node in order:
        for s in node.srcs:
            readers[id(s)] = readers.get(id(s), 0) + 1
    for r in roots:
        readers[id(r)] = 2
    for node in order:
        if node.op not in ("matmul", "conv"):
            continue
        chain = [node, node.srcs[1]]
        while readers[id(chain[-1])] == 1 and (chain[-1].op == "cast" or is_offset(chain[-1])):
            chain.append(chain[-1].srcs[0])
        weight = chain[-1]
        while readers[id(weight)] == 1 and weight.op == "reshape":
            weight = weight.srcs[0]
        if weight.op == "data" and readers[id(weight)] == 1 and id(weight) not in narrow:
            _replace(node, weight, chain)


def _replace(node: Any, weight: Any, chain: list[Any]) -> None:
    """Replace a product's weight by a view. chain: the product, casts and offsets, and the weight or its reshape."""
    offsets = [n for n in chain[1:-1] if is_offset(n)]
    is_middle = weight.word == "u8" and [(n.srcs[1].arg, n.dtype.name) for n in offsets] == [(128, "int32")]
    if is_middle:  # less its offset, it is int8
        data = bytes(words_of(weight)).translate(SIGNED)
        weight = Node("data", (), data, dtypes.int8, weight.shape, "i8")
    view = _view(node, weight, chain[-1].shape, len(chain) == 2)
    if view is None:
        return
    if is_middle:
        (old,) = offsets
        view = Node("cast", (view,), True, old.dtype, old.shape)
    else:
        old = chain[-1]
    reader = chain[chain.index(old) - 1]
    reader.srcs = tuple(view if s is old else s for s in reader.srcs)


def _view(node: Any, weight: Any, shape: tuple[int, ...], plain: bool) -> Node | None:
    """A view of this shape of a product's weight in the order in which its kernel reads it; None if that is the order
    it has. plain: whether nothing is computed of its elements."""
    kind, bits = node.dtype.name, weight.word in ("i8", "u8")
    if node.op == "conv":
        return _channels_last(weight, shape) if kind == "int32" and bits else None
    if kind == "float32" and plain and weight.word == "f32":
        return _panels(weight, shape, FLOAT_ORDER)
    return _panels(weight, shape, ORDER) if not plain and kind == "int32" and bits else None


def _panels(weight: Any, shape: tuple[int, ...], order: tuple[int, ...]) -> Node | None:
    """A matrix as a view of panels; None if these are not whole."""
    together = 1 if order == FLOAT_ORDER else 2  # terms that lie side by side
    if len(shape) != 2 or not weight.count or shape[0] % together or shape[1] % WIDTH:
        return None
    terms, columns = shape
    paneled = (_floats_paneled if together == 1 else _bytes_paneled)(words_of(weight), terms, columns)
    return _moved(weight, paneled, (columns // WIDTH, terms // together, WIDTH, together)[: len(order)], order, shape)


def _channels_last(weight: Any, shape: tuple[int, ...]) -> Node | None:
    """A convolution's weight (channels out, channels, *taps) as a view of (channels out, *taps, channels); None if
    there are few channels or one tap."""
    outer, channels, rank = shape[0], shape[1], len(shape)
    taps = weight.count // max(1, outer * channels)
    if channels < WIDTH or taps < 2:
        return None
    data, out = memoryview(words_of(weight)).cast("B"), bytearray(weight.count)
    for n in range(outer):
        line = data[n * channels * taps : (n + 1) * channels * taps]
        for tap in range(taps):
            at = (n * taps + tap) * channels
            out[at : at + channels] = line[tap::taps]
    order = (0, rank - 1, *range(1, rank - 1))
    return _moved(weight, bytes(out), (outer, *shape[2:], channels), order, shape)


def _moved(
    weight: Any, data: bytes, stored_shape: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]
) -> Node:
    """A view with the elements of a weight: those of `data`, of the first shape, with the axes in another order."""
    stored = Node("data", (), data, weight.dtype, stored_shape, weight.word)
    moved = Node("permute", (stored,), order, weight.dtype, tuple(stored_shape[a] for a in order), weight.word)
    return moved if moved.shape == shape else Node("reshape", (moved,), None, weight.dtype, shape, weight.word)


# The bytes of a matrix in the order of panels. It is done by slices, as plain Python is slow with single elements.


def _floats_paneled(data: Any, terms: int, columns: int) -> bytes:
    data, line, width = bytes(data), 4 * columns, 4 * WIDTH

    def panel(first: int) -> bytes:
        return b"".join([data[at : at + width] for at in range(first, terms * line, line)])

    return b"".join([panel(first) for first in range(0, line, width)])


def _bytes_paneled(data: Any, terms: int, columns: int) -> bytes:
    data = memoryview(data).cast("B")
    across = bytearray(2 * columns)  # two rows, with the terms of a column side by side
    row = memoryview(across).cast("Q")
    out = bytearray(terms * columns)
    words = memoryview(out).cast("Q")
    each = 2 * WIDTH // 8  # words of 64 bits that a panel has for a pair
    step = terms // 2 * each
    for pair in range(terms // 2):
        at = 2 * pair * columns
        across[0::2] = data[at : at + columns]
        across[1::2] = data[at + columns : at + 2 * columns]
        for n in range(each):
            words[pair * each + n :: step] = row[n::each]
    return bytes(out)
