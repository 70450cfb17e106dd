"""The sizes that a session in the tab compiles: those of its first runs, then ranges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.processes import ran

from tools.paths import WEB

pytestmark = pytest.mark.needs("node")

DECODER = [
    {"past": past, "new": new, "past + new": past + new}
    for past, new in [(0, 6), (6, 1), (7, 1), (8, 1), (31, 1), (32, 1), (33, 1)]
]
TEXTS = [{"batch": 1, "length": n} for n in (5, 9, 12, 7, 40, 3, 9)]


def told(runs: list[dict[str, int]], refused: str = "false") -> list[dict[str, Any]]:
    """What is compiled for each run; refused: the JavaScript of whether the compiler refuses the ranges `found`."""
    script = f"""
      import {{ Lengths, ranged }} from {json.dumps((WEB / "package" / "lengths.mjs").as_uri())};
      const lengths = new Lengths();
      console.log(JSON.stringify({json.dumps(runs)}.map((sizes) => {{
        let found = lengths.of(sizes);
        while (ranged(found) && {refused}) found = lengths.instead(found, sizes);
        return found;
      }})));
    """
    return in_node(script)


def in_node(script: str) -> Any:
    command = ["node", "--input-type=module", "-e", script]
    return json.loads(ran(*command, check=True, timeout=60).stdout)


def test_a_decoder_is_compiled_for_its_prompt_its_first_step_and_all_others() -> None:
    short, long = {"past": [1, 32], "new": 1}, {"past": [1, 64], "new": 1}  # the sum follows
    assert told(DECODER) == [*DECODER[:2], *[short] * 4, long]


def test_texts_of_changing_lengths_share_a_model() -> None:
    short, long = {"batch": 1, "length": [1, 32]}, {"batch": 1, "length": [1, 64]}
    assert told(TEXTS) == [*TEXTS[:2], short, short, long, short, short]


def test_repeated_sizes_are_compiled_for_themselves() -> None:
    runs = [TEXTS[i] for i in (0, 1, 0, 0, 1, 0)]
    assert told(runs) == runs


def test_a_model_that_leaves_nothing_open_is_compiled_for_each_size() -> None:
    assert told(TEXTS, refused="true") == TEXTS


def test_a_refused_combination_of_ranges_leaves_others() -> None:
    runs = [{"batch": 1, "n": 5}, {"batch": 1, "n": 9}, {"batch": 2, "n": 7}, {"batch": 2, "n": 8}]
    found = told(runs, refused="Array.isArray(found.batch)")
    assert found == [*runs[:3], {"batch": 2, "n": [1, 32]}]


def test_a_range_begins_at_1_where_the_compiler_refuses_0() -> None:
    runs = [{"n": n} for n in (3, 2, 0, 1, 4)]
    found = told(runs, refused="found.n[0] === 0")
    assert found == [*runs[:3], *[{"n": [1, 32]}] * 2]


def test_overlapping_runs_of_a_refused_range_agree() -> None:
    script = f"""
      import {{ Lengths }} from {json.dumps((WEB / "package" / "lengths.mjs").as_uri())};
      const lengths = new Lengths();
      const runs = [3, 2, 0, 5, 6].map((n) => ({{ n }}));
      const open = runs.map((sizes) => lengths.of(sizes));
      console.log(JSON.stringify([open[2], ...[2, 3, 4].map((i) => lengths.instead(open[i], runs[i]))]));
    """
    assert in_node(script) == [{"n": [0, 32]}, {"n": 0}, {"n": [1, 32]}, {"n": [1, 32]}]


def test_a_sum_that_does_not_fit_its_parts_is_no_range() -> None:
    runs = [*DECODER[:3], {**DECODER[3], "past + new": 4}]
    assert told(runs)[3] == runs[3]


def test_a_range_reaches_0_where_a_size_was_0() -> None:
    runs = [{"past": n} for n in (3, 2, 0, 1)]
    assert told(runs)[2:] == [{"past": [0, 32]}] * 2
