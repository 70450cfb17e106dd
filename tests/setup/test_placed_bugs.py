"""A bug placed by hand is applied where its old text is; one that does not fit the tree is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutation import placed
from tools.paths import ROOT
from tools.steps import StepError

LIST = """
first = ["programs"]
backends = ["numpy"]

[[bug]]
file = "sums.py"
what = "the last number is left out"
old = "numbers"
new = "numbers[:-1]"
"""


@pytest.mark.parametrize(("text", "times"), [("sum(numbers) / len(numbers)", 2), ("max(values)", 0)])
def test_a_bug_whose_old_text_is_not_there_once_is_refused(tmp_path: Path, text: str, times: int) -> None:
    (tmp_path / "sums.py").write_text(text, encoding="utf-8")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "sums.toml").write_text(LIST, encoding="utf-8")
    with pytest.raises(StepError, match=f"sums.toml, bug 1 .*occurs {times} times in sums.py"):
        placed.bugs(tmp_path, tmp_path / "lists")


def test_a_bug_is_applied_where_its_old_text_is(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text("sum(numbers)", encoding="utf-8")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "sums.toml").write_text(LIST, encoding="utf-8")
    (bug,) = placed.bugs(tmp_path, tmp_path / "lists")
    assert bug.apply(b"sum(numbers)") == b"sum(numbers[:-1])"
    assert (bug.room, bug.first, bug.backends) == ("sums", ("programs",), ("numpy",))


def test_all_bugs_fit_the_tree() -> None:
    assert len(placed.bugs(ROOT)) >= 200
