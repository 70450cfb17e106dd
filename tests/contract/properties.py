"""The contract for one case: values, errors, results and inputs that belong to the caller, independent calls."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import emberlet
import numpy as np
from emberlet.errors import EmberletError
from emberlet.host.thresholds import lowered, poisoned

from .case import COUNTED, Case
from .reference import Expected, Refused, choice, differs, expected, leaves, outcome, quiet, refused
from .ways import SHARE, Broken, Run, Unavailable, Way, available

BYTES = (0xFF, 0x7F)
# How the names of ways begin that run no plan.
EAGER = ("eager", "copied", "load, forked", "load, pickled")
CALLS = 6  # of each of two threads
# The backends whose ways run; the others are left out without changing what is drawn for these. None: all.
ONLY: tuple[str, ...] | None = None


def broken(
    case: Case, ways: Iterable[Way] | None = None, wanted: list[Expected] | None = None, lowering: str = "half"
) -> str:
    """Empty where all of the chosen ways keep the contract, else the first that does not. wanted: the reference of each
    call; None computes it. lowering: which thresholds are lowered, in most cases: those of half of the modules, all
    ("together") or in every second case also a random "half"; or "none"."""
    choose = choice(case.seed, "ways")
    if ways is None:
        ways = [w for w in available() if choose.random() < SHARE[w.backend]]
    if wanted is None:
        wanted = [expected(case, arrays) for arrays in case.calls]
    COUNTED[case.kind] += 1
    for way in ways:
        with ExitStack() as stack:
            if choose.random() < 0.7 and lowering != "none":
                stack.enter_context(lowered(case.seed, lowering == "together" or case.seed % 2 == 1))
            if choose.random() < 0.7:
                stack.enter_context(poisoned(choose.choice(BYTES)))
            choices = random.Random(choose.random())
            said = "" if ONLY is not None and way.backend not in ONLY else _on(case, way, wanted, choices)
        if said:
            return f"{way.name}, {said}"
    return ""


def _on(case: Case, way: Way, wanted: list[Expected], choose: random.Random) -> str:
    if way.backend in ("wgpu", "wasm", "native"):
        wanted = [_coarse(w) for w in wanted]
        if not way.name.startswith(EAGER):
            wanted = [_within_words(w) for w in wanted]
    try:
        with quiet():
            run = way.open(case, _fresh(case.calls[0]))
    except Unavailable as reason:
        COUNTED[f"left out: {reason}"] += 1
        return ""
    except EmberletError as error:
        said = differs(refused(error), wanted[0])
        return said and f"before any call: {said}"
    except Exception as error:
        return f"before any call: raises {type(error).__name__}: {error}"
    COUNTED[f"on {way.name}"] += 1
    try:
        return _calls(case, way, run, wanted, choose) or _at_once(case, run, wanted, choose)
    except Unavailable as reason:
        COUNTED[f"left out: {reason}"] += 1
        return ""
    except Broken as error:
        return str(error)
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _coarse(want: Expected) -> Expected:
    """What to expect where float64 is computed in float32."""
    if isinstance(want, Refused):
        return want
    return [x._replace(limit=np.maximum(x.limit, x.coarse)) for x in want]


def _within_words(want: Expected) -> Expected:
    """What to expect of plans, whose 64-bit integers wrap at 32 bits (docs/wgpu.md)."""
    if isinstance(want, Refused):
        return want
    words = {"int64": np.int32, "uint64": np.uint32}
    return [
        x._replace(sure=x.sure & (x.array.astype(words[x.dtype]) == x.array)) if x.dtype in words else x for x in want
    ]


def _fresh(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.array(a) if isinstance(a, np.ndarray) else a for a in arrays)


def _calls(case: Case, way: Way, run: Run, wanted: list[Expected], choose: random.Random) -> str:
    """One call after the other; then the first again. What was returned is kept or overwritten."""
    kept: list[tuple[int, Any, Expected]] = []
    for number in [*range(len(case.calls)), 0]:
        given = _fresh(case.calls[number])
        try:
            with quiet():
                result = run(given)
        except EmberletError as error:
            COUNTED["calls"] += 1
            if said := differs(refused(error), wanted[number]):
                return f"call {number}: {said}"
            continue
        except Unavailable as reason:  # a saved plan has one set of shapes
            COUNTED[f"calls left out: {reason}"] += 1
            continue
        found = leaves(result)
        COUNTED["calls"] += 1
        if said := differs(found, wanted[number]):
            return f"call {number}{' again' if kept and kept[0][0] == number else ''}: {said}"
        for i, (a, b) in enumerate(zip(given, case.calls[number], strict=True)):
            if isinstance(a, np.ndarray) and a.tobytes() != b.tobytes():
                return f"call {number} changes its input {i}"
            if isinstance(a, np.ndarray):
                _spoil(a)
        if choose.random() < 0.5:
            COUNTED["overwritten results"] += overwrite(result, way.name.startswith(EAGER))
        else:
            kept.append((number, result, found))
    for number, result, before in kept:
        if said := _changed(leaves(result), before):
            return f"a later call, or an overwritten input or result, changes the result of call {number}: {said}"
    return ""


def _changed(now: Expected, before: Expected) -> str:
    assert not isinstance(now, Refused) and not isinstance(before, Refused)
    for i, (a, b) in enumerate(zip(now, before, strict=True)):
        if isinstance(a.array, np.ndarray) and a.array.dtype != object and a.array.tobytes() != b.array.tobytes():
            return f"output {i}"
    return ""


def _spoil(array: Any) -> None:
    if array.flags.writeable and array.size and array.dtype.kind in "fiub":
        array[...] = 113 if array.dtype.kind != "b" else ~array


def overwrite(result: Any, shared: bool = False) -> int:
    """Overwrite every tensor of a result; returns how many there are. shared: its elements may be shared until they are
    assigned to, as docs/tensors.md says of eager results; otherwise their memory is overwritten as well.

    Raises:
        Broken: Overwriting one result changes another.
    """
    if isinstance(result, (list, tuple)):
        before, count = [leaves(x) for x in result], 0
        for number, x in enumerate(result):
            if any(x is earlier for earlier in result[:number]):
                continue
            if said := _changed(leaves(x), before[number]):
                raise Broken(f"overwriting a result changes result {number}, {said}")
            count += overwrite(x, shared)
        return count
    if isinstance(result, dict):
        return sum(overwrite(x, shared) for x in result.values())
    if isinstance(result, np.ndarray):
        _spoil(result)
        return 1
    if not isinstance(result, emberlet.Tensor) or result.dtype.kind not in ("float", "int", "uint") or not result.size:
        return 0
    if not shared:
        _spoil(np.asarray(result))
    result[...] = 77 if result.dtype.bits >= 8 else 1
    return 1


def _at_once(case: Case, run: Run, wanted: list[Expected], choose: random.Random) -> str:
    """From two threads; after an error or an interrupt."""
    kind = choose.random()
    if kind < 0.1 and len(case.calls) > 1:
        return _two_callers(case, run, wanted)
    if kind < 0.2 and not isinstance(wanted[0], Refused):
        return _after_a_failure(case, run, wanted, choose)
    return ""


def _two_callers(case: Case, run: Run, wanted: list[Expected]) -> str:
    said: list[str] = []
    together = threading.Barrier(2)

    def call(number: int) -> None:
        together.wait()
        for _ in range(CALLS):
            try:
                found = outcome(run, _fresh(case.calls[number]))
            except Unavailable:  # a saved plan has one number
                return
            except Exception as error:
                said.append(f"from two threads, call {number} raises {type(error).__name__}: {error}")
                return
            if why := differs(found, wanted[number]):
                said.append(f"from two threads, call {number}: {why}")

    threads = [threading.Thread(target=call, args=(n,)) for n in (0, 1)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that even short calls overlap
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    COUNTED["calls from two threads"] += 2 * CALLS
    return said[0] if said else ""


def _after_a_failure(case: Case, run: Run, wanted: list[Expected], choose: random.Random) -> str:
    """An interrupt at a random function call inside of a call, then the call again."""
    left = choose.randrange(1, 60)

    def stop(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event == "call"
        if not left:
            raise KeyboardInterrupt

    try:
        sys.setprofile(stop)
        with quiet():
            run(_fresh(case.calls[-1]))
    except KeyboardInterrupt:
        COUNTED["interrupted calls"] += 1
    except EmberletError:
        pass
    finally:
        sys.setprofile(None)
    said = differs(outcome(run, _fresh(case.calls[0])), wanted[0])
    return said and f"after an interrupt: {said}"
