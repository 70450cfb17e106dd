"""What the caches of plans and of compiled kernels keep, and for how long. Needs no device."""

from __future__ import annotations

from typing import Any

from emberlet.wgpu_backend.run.caches import FIXED, LRUCache, Pipelines


def test_a_cache_beyond_its_limit_keeps_the_latest_used_three_quarters() -> None:
    cache = LRUCache(100)
    for name in "abcd":
        cache.put(name, name.upper(), 25)
    assert len(cache) == 4  # exactly its limit
    assert cache.get("a") == "A" and cache.get("x") is None
    cache.put("e", "E", 1)
    assert sorted(cache.items()) == [("a", "A"), ("d", "D"), ("e", "E")]  # 51 bytes: with c it would be 76
    cache.put("f", "F", 24)
    cache.put("f", "G", 49)  # in place of 24: 100 bytes
    assert len(cache) == 4 and cache.get("f") == "G"
    cache.put("h", "H", 1000)
    assert cache.items() == [("h", "H")]  # a larger value is kept alone
    assert cache.pop("h") == "H" and cache.pop("h") is None and len(cache) == cache._nbytes == 0
    cache.put("i", "I", 75)
    cache.clear()
    assert cache.items() == [] and cache._nbytes == 0


def test_trimming_leaves_three_quarters_exactly() -> None:
    cache = LRUCache(100)
    for name in "abcde":
        cache.put(name, name, 25)
    assert [key for key, _ in cache.items()] == ["c", "d", "e"] and cache._nbytes == 75


def pipelines() -> tuple[Pipelines, Any]:
    found = Pipelines(4 * (FIXED + 1))
    return found, [object() for _ in range(5)]


def test_kernels_of_living_programs_are_kept() -> None:
    found, made = pipelines()
    found.put("a", made[0])
    assert found.get("a") is made[0] and found.get("b") is None and len(found) == 1
    found.hold("a", made[0])
    found.hold("a", made[0])
    assert len(found) == 1 and found.get("a") is made[0]
    found.put("a", made[1])  # held already
    for name, pipeline in zip("bcdef", made, strict=True):
        found.put(name, pipeline)
    assert found.get("a") is made[0]
    found.release("a", None)
    assert found.get("a") is made[0]
    found.release("a", None)
    assert found.get("a") is None
    found.release("a", None)  # nothing to release


def test_the_last_kernel_of_an_owner_is_kept_until_the_owner_is_gone() -> None:
    found, made = pipelines()
    owner, other = object(), object()
    found.hold("a", made[0])
    found.release("a", owner)
    found.put("b", made[1], other)
    found.put("c", made[2])
    assert found.get("a") is made[0]
    found.forget(owner)
    assert [found.get(name) for name in "abc"] == [None, made[1], made[2]]
    found.clear()
    assert len(found) == 0 and found.get("b") is None


def test_a_plan_too_large_for_the_cache_keeps_its_kernels_until_the_next() -> None:
    found, made = pipelines()
    small = dict.fromkeys("abc", made[0])
    found.ran(small)  # three of four: what trimming leaves
    assert found.get("a") is None
    large = dict.fromkeys("abcd", made[1])
    found.ran(large)
    assert found.get("d") is made[1]
    found.put("d", made[2])
    assert found.get("d") is made[2]
    found.ran(small)
    assert found.get("a") is made[1]  # still those of the last large one
    found.clear()
    assert found.get("a") is None
