"""Measures which tile is fastest for each matrix product and convolution of a model on this device."""

from __future__ import annotations

import time
from typing import Any

from ..kernels.matmul import serves
from ..lower.contraction import Problem, problem
from ..lower.tiles import BLOCKS, Tile, candidates, problem_key
from ..plan.make import make_plan
from ..record.node import Node, topological
from ..tuning import save
from .runtime import run_once


def tune(roots: list[Node], backend: Any) -> dict[str, Tile]:
    """Measure the contractions that `roots` depend on, unless measured before; returns the results."""
    options = backend.options
    found = {}
    for node in topological(roots):
        if node.op not in ("matmul", "conv") or not node.count:
            continue
        what = problem(node)
        key = problem_key(node)
        if what.depth() == 0 or key in options.tiles or key in found:
            continue
        found[key] = _best(node, what, backend)
    options.tiles.update(found)
    if found:
        save(backend.device, found)
    return found


def _best(node: Node, what: Problem, backend: Any) -> Tile:
    options = backend.options
    srcs = []
    for s in node.srcs:
        leaf = Node("data", (), bytes(s.nbytes), s.dtype, s.shape, s.word)
        backend.upload(leaf)
        srcs.append(leaf)
    tries = candidates(what, options.device_class)
    if serves(what, options):
        tries += [Tile(0, 0, 0, 0, blocks) for blocks in BLOCKS]
    best: tuple[float, Tile] | None = None
    for tile in tries:
        options.tile = tile
        try:
            alone = Node(node.op, tuple(srcs), node.arg, node.dtype, node.shape, node.word)
            plan, externals = make_plan([alone], options)
        finally:
            options.tile = None
        seconds = _time(backend, plan, [n.buffer for n in externals], best[0] if best else float("inf"))
        if best is None or seconds < best[0]:
            best = (seconds, tile)
    assert best is not None
    return best[1]


def _time(backend: Any, plan: Any, buffers: list[Any], limit: float) -> float:
    """Seconds of the fastest of a few runs; stops early if far slower than `limit`."""
    shortest = float("inf")
    for turn in range(6):
        begin = time.perf_counter()
        (out,) = run_once(backend.device, plan, buffers)
        backend.device.read(out, 4)
        if turn:  # the first one compiles
            shortest = min(shortest, time.perf_counter() - begin)
            if shortest > 2 * limit:
                break
    return shortest
