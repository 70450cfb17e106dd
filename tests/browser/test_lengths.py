"""The sizes that a session in the tab compiles: those of its first runs, then ranges."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tools.paths import WEB

pytestmark = pytest.mark.needs("node")

DECODER = [
    {"past": past, "new": new, "past + new": past + new}
    for past, new in [(0, 6), (6, 1), (7, 1), (8, 1), (31, 1), (32, 1), (33, 1)]
]
TEXTS = [{"batch": 1, "length": n} for n in (5, 9, 12, 7, 40, 3, 9)]


def told(runs: list[dict[str, int]], refused: int = -1) -> list[dict[str, Any]]:
    """What is compiled for each run; the compiler refuses the ranges of run `refused`."""
    script = f"""
      import {{ Lengths }} from {json.dumps((WEB / "package" / "lengths.mjs").as_uri())};
      const lengths = new Lengths();
      console.log(JSON.stringify({json.dumps(runs)}.map((sizes, i) => {{
        const found = lengths.of(sizes);
        return i === {refused} && lengths.refused(found) ? lengths.of(sizes) : found;
      }})));
    """
    command = ["node", "--input-type=module", "-e", script]
    return json.loads(subprocess.run(command, capture_output=True, check=True, encoding="utf-8", timeout=60).stdout)


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
    assert told(TEXTS, refused=2) == TEXTS


def test_a_sum_that_does_not_fit_its_parts_is_no_range() -> None:
    runs = [*DECODER[:3], {**DECODER[3], "past + new": 4}]
    assert told(runs)[3] == runs[3]


def test_a_range_reaches_0_where_a_size_was_0() -> None:
    runs = [{"past": n} for n in (3, 2, 0, 1)]
    assert told(runs)[2:] == [{"past": [0, 32]}] * 2
