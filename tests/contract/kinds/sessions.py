"""Sessions of drawn models: steps, some of which fail, forks, copies, rewinds, snapshots and resets in a random order,
with results, inputs and initial states overwritten in between, on every backend.

The reference keeps the states itself: it calls the model on NumPy with all states as arguments, one value for each
length that was reached, and truncates or forgets them as docs/sessions.md says.
"""

from __future__ import annotations

import copy as copies
import pickle
import random
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

import emberlet
import numpy as np
from emberlet.errors import EmberletError
from emberlet.host.thresholds import lowered, poisoned

from ..case import COUNTED, HEAD, loaded, shown
from ..properties import overwrite
from ..reference import choice, differs, leaves, quiet
from ..ways import BACKENDS, available

NEEDS: tuple[str, ...] = ()
# {s} the state, {o} another of the replaced states, {x} the input (1, k, 3), {t} and {r} the new states, {y} the result
# before
GROWING = ["F.concat([{s}, {x}], axis=1)", "F.concat([{s}, {x} * 2.0], axis=1)",
           "F.concat([{s}, F.tanh({x})], axis=1)",
           "F.concat([{s}, {x}[:, :-1], {x}[:, -1:] * 2.0], axis=1)",
           "F.concat([{s}, {x} * 0.5 + F.sum({s}, axis=1, keepdims=True) * 0.125], axis=1)"]  # fmt: skip
REPLACED = ["{s} * 0.5 + F.sum({x}, axis=1)", "F.mean({x}, axis=1)", "F.tanh({s} + 1.0)", "{s}",
            "F.zeros((1, 3), dtype=D.float32, device={x}.backend)", "F.max({x}, axis=1) - {s}", "{o}", "{o} + 1.0",
            "{x}[:, 0]", "{x}[:, -1]", "F.flip({s}, 1)", "{s} + 1.0",
            "F.full({s}.shape, 2.0, dtype=D.float32, device={x}.backend)"]  # fmt: skip
RESULTS = ["F.sum({t}, axis=1)", "{x} + 1.0", "F.softmax({t} * 1.0, axis=1)", "F.sum({x}, axis=1) + {r}",
           "{r} * 2.0", "{r}", "{t}", "F.matmul({x}, F.permute_dims({t}, (0, 2, 1)))",
           "F.ones((2,), dtype=D.float32, device={x}.backend)", "{x}[:, :1]", "{t}[:, 1:]", "{r}[:, ::2]", "{y}",
           "{y}[..., ::2]", "F.reshape({y}, (-1,))"]  # fmt: skip
ACTIONS = (
    *["step"] * 8,
    *["switch"] * 4,
    *["fork", "rewind", "snapshot", "state"] * 2,
    "reset",
    "pickle",
    "copy",
    "fail",
)
BACK_AND_FORTH = ("step", "step", "snapshot", "snapshot", "rewind")  # beyond lengths that another past had


class Drawn(NamedTuple):
    """growing, replaced: the lines of the states; results: the lines of the other outputs; actions: (name, number);
    backend; seed. capacity: of the session, or None. initial: how the replaced states begin: "" zeros, "array" or
    "tensor" of the caller's."""

    growing: tuple[str, ...]
    replaced: tuple[str, ...]
    results: tuple[str, ...]
    actions: tuple[tuple[str, int], ...]
    backend: str
    capacity: int | None
    initial: str
    seed: int


def draw(choose: random.Random) -> Drawn | None:
    growing = tuple(choose.choice(GROWING) for _ in range(choose.choice([0, 1, 1, 2])))
    replaced = tuple(choose.choice(REPLACED) for _ in range(choose.choice([0, 0, 1, 1, 2]) or (not growing)))
    fitting = [r for r in RESULTS if _fits(r, growing, replaced)]
    results = tuple(choose.choice(fitting) for _ in range(choose.choice([1, 1, 2, 2, 3])))
    table = BACK_AND_FORTH if choose.random() < 0.15 else ACTIONS
    actions = tuple((choose.choice(table), choose.choice([1, 1, 1, 2, 3])) for _ in range(choose.randint(2, 24)))
    here = sorted({w.backend for w in available()})
    backend = choose.choice([b for b in BACKENDS if b in here and (b != "wgpu" or choose.random() < 0.25)])
    return Drawn(growing, replaced, results, actions, backend, choose.choice([None, 6, 40]),
                 choose.choice(["", "array", "tensor"]) if replaced else "", choose.randrange(1 << 30))  # fmt: skip


def _fits(line: str, growing: tuple[str, ...], replaced: tuple[str, ...]) -> bool:
    return bool(("{t}" not in line or growing) and ("{r}" not in line or replaced))


def names_of(drawn: Drawn) -> list[str]:
    """The names of the states."""
    return [f"g{i}" for i in range(len(drawn.growing))] + [f"h{i}" for i in range(len(drawn.replaced))]


def source(drawn: Drawn) -> str:
    names = names_of(drawn)
    inputs = ['("x", "float32", (1, "new", 3))']
    inputs += [f'("g{i}", "float32", (1, "past", 3))' for i in range(len(drawn.growing))]
    inputs += [f'("h{i}", "float32", (1, 3))' for i in range(len(drawn.replaced))]
    outputs = [f"y{i}" for i in range(len(drawn.results))] + [f"{n}_out" for n in names]
    state = [f'("{n}", "{n}_out", "append", 1)' for n in names if n[0] == "g"]
    state += [f'("{n}", "{n}_out", "replace", None)' for n in names if n[0] == "h"]
    lines = [f"g{i}_out = " + g.format(s=f"g{i}", x="x") for i, g in enumerate(drawn.growing)]
    replaced = len(drawn.replaced)
    lines += [f"h{i}_out = " + h.format(s=f"h{i}", o=f"h{(i + 1) % replaced}", x="x")
              for i, h in enumerate(drawn.replaced)]  # fmt: skip
    grown, last = f"g{len(drawn.growing) - 1}_out", f"h{len(drawn.replaced) - 1}"
    lines += [
        f"y{i} = " + r.format(x="x", t=grown, r=last, y=f"y{i - 1}" if i else "x") for i, r in enumerate(drawn.results)
    ]
    return "\n".join([
        "from emberlet.model import Model", "", "", "class Net(Model):",
        f"    INPUTS = ({', '.join(inputs)},)",
        "    OUTPUTS = (" + ", ".join(f'("{o}", "float32", None)' for o in outputs) + ",)",
        f"    STATE = ({', '.join(state)},)", "", "    def __init__(self, B):",
        "        self.one = nn.Linear(3, 3, backend=B)", "        self.backend = B", "",
        f"    def forward(self, {', '.join(['x', *names])}):", *(f"        {line}" for line in lines),
        f"        return {', '.join(outputs)}", "",
    ])  # fmt: skip


def first_states(drawn: Drawn) -> list[Any]:
    """What the replaced states are in the beginning."""
    draw = np.random.default_rng(drawn.seed + 1)
    wanted = [draw.standard_normal((1, 3)).astype(np.float32) for _ in drawn.replaced]
    return wanted if drawn.initial else [np.zeros_like(w) for w in wanted]


class Kept:
    """The states as the documentation has them. history: the values at each length that a rewind may return to."""

    def __init__(self, drawn: Drawn, model: Any) -> None:
        self.drawn = drawn
        self.model = model
        self.reset()

    def reset(self) -> None:
        self.states: list[Any] | None = None
        self.length = 0
        self.snapshots: dict[int, list[Any]] = {}

    def fork(self) -> Kept:
        other = Kept(self.drawn, self.model)
        other.states = None if self.states is None else list(self.states)
        other.length, other.snapshots = self.length, dict(self.snapshots)
        return other

    def step(self, x: Any) -> Any:
        """The outputs other than states; None where the capacity is exceeded."""
        growing = len(self.drawn.growing)
        first = self.states is None
        states = self.states
        if states is None:
            states = [np.zeros((1, 0, 3), np.float32)] * growing + list(first_states(self.drawn))
        if growing and self.drawn.capacity and self.length + x.shape[1] > self.drawn.capacity:
            return None
        if first:
            self.snapshots[0] = states[growing:]
        given = [emberlet.asarray(a, backend="numpy", copy=True) for a in (x, *states)]
        found = [np.array(np.asarray(y)) for y in self.model.forward(*given)]
        count = len(self.drawn.results)
        self.states = found[count:]
        self.length += x.shape[1] if growing else 1
        return found[:count]

    def snapshot(self) -> None:
        if self.states is not None:
            self.snapshots[self.length] = self.states[len(self.drawn.growing) :]

    def rewind(self, n: int) -> bool:
        """Whether the documentation allows it."""
        growing, target = len(self.drawn.growing), self.length - n
        if target < 0 or (self.drawn.replaced and target not in self.snapshots):
            return False
        if self.states is not None:
            cut = [s[:, : s.shape[1] - n] for s in self.states[:growing]]
            self.states = cut + list(self.snapshots[target] if self.drawn.replaced else [])
        self.length = target
        self.snapshots = {k: v for k, v in self.snapshots.items() if k <= target}
        return True


def difference(drawn: Drawn) -> str:
    COUNTED["sessions"] += 1
    COUNTED[f"sessions on {drawn.backend}"] += 1
    choose = choice(drawn.seed, "session")
    with ExitStack() as stack, quiet():
        if choose.random() < 0.6:
            stack.enter_context(lowered(drawn.seed))
        if choose.random() < 0.6:
            stack.enter_context(poisoned(choose.choice([0xFF, 0x7F])))
        try:
            return _acted(drawn, choose)
        except Exception as error:
            return f"on {drawn.backend}: raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _acted(drawn: Drawn, choose: random.Random) -> str:
    module = loaded(source(drawn))
    options: dict[str, Any] = {"capacity": drawn.capacity} if drawn.growing else {}
    given: dict[str, Any] = {f"h{i}": x for i, x in enumerate(first_states(drawn))} if drawn.initial else {}
    if drawn.initial == "tensor":
        given = {name: emberlet.asarray(x, backend=drawn.backend) for name, x in given.items()}
    pairs = [(module.Net(drawn.backend).session(initial=given, **options), Kept(drawn, module.Net("numpy")))]
    for x in given.values():
        x[...] = 113
    kept: list[tuple[int, Any, Any]] = []
    now = 0
    values = np.random.default_rng(drawn.seed)
    for number, (action, n) in enumerate(drawn.actions):
        session, reference = pairs[now]
        where = f"on {drawn.backend}, action {number}, {action}"
        if action == "fork":
            pairs.append((session.fork(), reference.fork()))
        elif action == "pickle":
            pairs[now] = (pickle.loads(pickle.dumps(session)), reference)
        elif action == "copy":
            pairs.append((copies.deepcopy(session), reference.fork()))
        elif action == "fail":
            if said := _fails(session, n):
                return f"{where}: {said}"
        elif action == "switch":
            now = (now + n) % len(pairs)
        elif action == "reset":
            session.reset()
            reference.reset()
        elif action == "snapshot":
            session.snapshot()
            reference.snapshot()
        elif action == "rewind":
            copy = reference.fork()
            allowed = copy.rewind(n)
            try:
                session.rewind(n)
            except EmberletError as error:
                if allowed:
                    return f"{where} {n}: raises {error}"
                continue
            if not allowed:
                return f"{where} {n}: nothing is refused"
            pairs[now] = (session, copy)
        elif action == "state" and reference.states is not None:
            names = names_of(drawn)
            k = n % len(names)
            found = session.state(names[k])
            if said := _near(leaves(found), [reference.states[k]]):
                return f"{where} {names[k]}: {said}"
            overwrite(found)
        elif action == "step":
            if said := _stepped(session, reference, values.standard_normal((1, n, 3)).astype(np.float32), kept, choose):
                return f"{where} {n}: {said}"
        if pairs[now][0].length != pairs[now][1].length:
            return f"{where}: the length is {pairs[now][0].length}, expected {pairs[now][1].length}"
    for number, (session, reference) in enumerate(pairs):
        for name, state in zip(names_of(drawn), reference.states or (), strict=False):
            if said := _near(leaves(session.state(name)), [state]):
                return f"on {drawn.backend}, in the end, state {name} of session {number}: {said}"
    for _, result, before in kept:
        if any(a.array.tobytes() != b.array.tobytes() for a, b in zip(leaves(result), before, strict=True)):
            return f"on {drawn.backend}: a later action changes the result of an earlier step"
    return ""


def _stepped(session: Any, reference: Kept, x: Any, kept: list[Any], choose: random.Random) -> str:
    wanted = reference.step(x)
    given = np.array(x)
    try:
        result = session.step(given)
    except EmberletError as error:
        return "" if wanted is None else f"raises {type(error).__name__}: {error}"
    COUNTED["steps of sessions"] += 1
    if wanted is None:
        return "the capacity is exceeded, and nothing is refused"
    found = leaves(result)
    if given.tobytes() != x.tobytes():
        return "it changes its input"
    given[...] = 113
    if said := _near(found, wanted):
        return said
    if choose.random() < 0.5:
        COUNTED["overwritten results"] += overwrite(result)
    else:
        kept.append((0, result, found))
    return ""


def _fails(session: Any, n: int) -> str:
    """A step that fails before the model runs, or in the model, without a plan."""
    if n == 1:
        try:
            session.step("nonsense")
        except EmberletError:
            return ""
        return "nothing is refused"
    engine, session._engine = session._engine, False
    forward = session.model.forward

    def broken(*args: Any) -> None:
        forward(*args)
        raise KeyboardInterrupt

    session.model.forward = broken
    try:
        session.step(np.ones((1, n, 3), np.float32))
    except (KeyboardInterrupt, EmberletError):  # an error where the capacity is exceeded
        return ""
    finally:
        del session.model.forward
        if session._engine is False:
            session._engine = engine
    return "an interrupt is lost"


def _near(found: Any, wanted: list[Any]) -> str:
    expected = [leaves(w)[0]._replace(limit=1e-5 * max(1.0, float(np.abs(w).max(initial=0.0)))) for w in wanted]
    return differs(found, expected)


def simpler(drawn: Drawn) -> Iterable[Drawn]:
    for k in range(len(drawn.actions)):
        yield drawn._replace(actions=drawn.actions[:k])
    for k in range(len(drawn.actions)):
        yield drawn._replace(actions=drawn.actions[:k] + drawn.actions[k + 1 :])
    if len(drawn.results) > 1:
        yield drawn._replace(results=drawn.results[:1])
        yield drawn._replace(results=drawn.results[1:])
    for k in range(len(drawn.growing)):
        growing = drawn.growing[:k] + drawn.growing[k + 1 :]
        if growing + drawn.replaced and all(_fits(r, growing, drawn.replaced) for r in drawn.results):
            yield drawn._replace(growing=growing)
    for k in range(len(drawn.replaced)):
        replaced = drawn.replaced[:k] + drawn.replaced[k + 1 :]
        if drawn.growing + replaced and all(_fits(r, drawn.growing, replaced) for r in drawn.results):
            yield drawn._replace(replaced=replaced)
    if drawn.capacity:
        yield drawn._replace(capacity=None)
    if drawn.initial:
        yield drawn._replace(initial="")


def program(drawn: Drawn) -> str:
    given = [f"capacity={drawn.capacity}"] if drawn.growing and drawn.capacity else []
    if drawn.initial:
        values = ", ".join(f"'h{i}': {shown(x)}" for i, x in enumerate(first_states(drawn)))
        given.append(f"initial={{{values}}}")
    made = f"sessions = [Net({drawn.backend!r}).session({', '.join(given)})]"
    lines = [HEAD, "import copy, pickle", "", source(drawn), "", made, "now = 0"]
    names = names_of(drawn)
    for action, n in drawn.actions:
        now = "sessions[now]"
        lines.append({
            "step": f"print({now}.step(np.random.default_rng({n}).standard_normal((1, {n}, 3)).astype(np.float32)))",
            "fork": f"sessions.append({now}.fork())", "switch": f"now = (now + {n}) % len(sessions)",
            "rewind": f"{now}.rewind({n})", "reset": f"{now}.reset()", "snapshot": f"{now}.snapshot()",
            "pickle": f"{now} = pickle.loads(pickle.dumps({now}))", "copy": f"sessions.append(copy.deepcopy({now}))",
            "fail": f"{now}  # a step fails here, {n}",
            "state": f"print({now}.state({names[n % len(names)]!r}))",
        }[action])  # fmt: skip
    lines.append(f"print([s.state(n) for s in sessions for n in {names}])")
    return "\n".join(lines)
