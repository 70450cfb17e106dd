"""Orders the parts of a region, and finds those that depend on each other."""

from __future__ import annotations

import heapq

from .scopes import Path


def sorted_by(edges: dict[Path | int, set[Path | int]], first: dict[Path | int, int]) -> list[Path | int]:
    """The keys in topological order; among those that could come next, the one with the smallest `first`."""
    missing = {key: len(reads) for key, reads in edges.items()}
    readers: dict[Path | int, list[Path | int]] = {}
    for key, reads in edges.items():
        for r in reads:
            readers.setdefault(r, []).append(key)
    ready = [(first[key], n, key) for n, key in enumerate(edges) if not missing[key]]
    heapq.heapify(ready)
    number = {key: n for n, key in enumerate(edges)}
    out = []
    while ready:
        _, _, key = heapq.heappop(ready)
        out.append(key)
        for reader in readers.get(key, []):
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, (first[reader], number[reader], reader))
    return out


def circles(edges: dict[Path | int, set[Path | int]]) -> list[list[Path | int]]:
    """The cycles: strongly connected components of two keys or more (Tarjan)."""
    index: dict[Path | int, int] = {}
    low: dict[Path | int, int] = {}
    stack: list[Path | int] = []
    on_stack: set[Path | int] = set()
    out = []
    for start in edges:
        if start in index:
            continue
        work = [(start, iter(edges[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            key, reads = work[-1]
            for r in reads:
                if r not in index:
                    index[r] = low[r] = len(index)
                    stack.append(r)
                    on_stack.add(r)
                    work.append((r, iter(edges[r])))
                    break
                if r in on_stack:
                    low[key] = min(low[key], index[r])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[key])
                if low[key] == index[key]:
                    group = []
                    while True:
                        k = stack.pop()
                        on_stack.discard(k)
                        group.append(k)
                        if k == key:
                            break
                    if len(group) > 1:
                        out.append(group)
    return out
