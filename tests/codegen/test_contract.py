"""INPUTS and OUTPUTS of models with caches: their code is short and gives every name unchanged."""

from __future__ import annotations

import random
import textwrap
from typing import Any

import pytest
from emberlet.codegen.emit.contract import Repeated, _listed
from emberlet.codegen.emit.expression import WIDTH
from support.rows import every

FLOAT = ("float32", ("batch", "past", 4))


def entries(names: list[str], *kinds: Any) -> list[Any]:
    return [(name, *(kinds or [FLOAT])[i % max(1, len(kinds))]) for i, name in enumerate(names)]


def value_of(lines: list[str], name: str) -> Any:
    """What a class has after these lines."""
    held: dict[str, Any] = {}
    exec("class C:\n" + "\n".join(lines), held)
    return getattr(held["C"], name)


def group(start: int, width: int, count: int, name: str = "past") -> Repeated:
    return Repeated(start, count, tuple(f"part{i}" for i in range(width)), name)


NAMES = [
    "past_key_values.{n}.{part}", "past_{part}_{n}", "{part}{n}", "{n}", "layers.{n}.self_attn.past_{part}",
    "{part}_in_{n}", "h2_{n}_{part}_7", "présent.{n}.{part}", "a b {n} {part}", "{{{n}}}{part}",
    "'{n}\"{part}", "{n}\\{part}",
]  # fmt: skip


@every("seed", range(150))
def test_every_entry_is_as_it_was(seed: int) -> None:
    draw = random.Random(seed)
    width, count = draw.choice([1, 2, 2, 3]), draw.randint(2, 9)
    words = draw.choice([["key", "value", "mem"], ["k", "v", "kv"], ["past_key", "past_value", "past_x"], list("ab7")])
    form = draw.choice(NAMES)
    start, step = draw.choice([(0, 1), (3, 1), (0, 2), (1, 4), (9, 1)])
    names = [form.format(n=start + step * n, part=words[m]) for n in range(count) for m in range(width)]
    if draw.random() < 0.3:  # names that follow no rule, in the first layer or anywhere
        names[draw.randrange(width if draw.random() < 0.5 else len(names))] = draw.choice(
            ["x", "odd.1", "", "a  b", "9"]
        )
    others = [f"input{i}" for i in range(draw.randint(0, 2))]
    kinds = [FLOAT] if draw.random() < 0.8 else [FLOAT, ("int64", (2,)), ("float16", None)][:width]
    label = draw.choice(["past", "inputs", "weights", "caches"])
    given = [*entries(others, ("int64", ("batch",))), *entries(names, *kinds)]
    lines = _listed("INPUTS", given, group(len(others), width, count, label))
    assert value_of(lines, "INPUTS") == tuple(given)
    escaped = "\\" in form or '"' in form
    assert escaped or all(len(line) <= WIDTH for line in lines), lines
    assert value_of(_listed("INPUTS", given, None), "INPUTS") == tuple(given)


@pytest.mark.parametrize(
    ("names", "width", "lines"),
    [
        ("past.0.key past.0.value past.1.key past.1.value", 2,
         """
         PAST = [f"past.{i}.{part}" for i in range(2) for part in ("key", "value")]
         INPUTS = tuple((n, "float32", ("batch", "past", 4)) for n in PAST)
         """),
        ("past_key.4 past_key.6 past_key.8", 1,
         """
         PAST = [f"past_key.{i}" for i in range(4, 10, 2)]
         INPUTS = tuple((n, "float32", ("batch", "past", 4)) for n in PAST)
         """),
        ("key value 4_key 4_value 5_key 5_value", 2,
         """
         PAST = ["key", "value"]
         PAST += [f"{i}_{part}" for i in range(4, 6) for part in ("key", "value")]
         INPUTS = tuple((n, "float32", ("batch", "past", 4)) for n in PAST)
         """),
        ("key value one two", 2,
         """
         INPUTS = tuple(
             (n, "float32", ("batch", "past", 4)) for n in ("key", "value", "one", "two")
         )
         """),
    ],
)  # fmt: skip
def test_names_are_written_as_a_loop_where_they_follow_a_rule(names: str, width: int, lines: str) -> None:
    said = names.split()
    found = _listed("INPUTS", entries(said), group(0, width, len(said) // width))
    assert "\n".join(found) == textwrap.indent(textwrap.dedent(lines).strip(), "    ")


@pytest.mark.parametrize("many", [8, 12, 30, 80])
def test_names_without_a_rule_are_words_of_a_text(many: int) -> None:
    draw = random.Random(many)
    names = ["".join(draw.choices("abcdefgh", k=draw.randint(3, 9))) for _ in range(2 * many)]
    found = _listed("OUTPUTS", entries(names), group(0, 2, many))
    assert value_of(found, "OUTPUTS") == tuple(entries(names))
    assert all(len(line) <= WIDTH for line in found)
    assert len(found) <= 6 + sum(map(len, names)) // 50
