"""A test of every row runs for all of them, and hides neither a failure nor a skip."""

from __future__ import annotations

import pytest
from support import draws
from support.rows import every


def tried(rows: list[str]) -> list[str]:
    ran: list[str] = []

    @every("row", rows)
    def test(row: str) -> None:
        ran.append(row)
        if row == "wrong":
            raise ValueError(row)
        if row == "skipped":
            pytest.skip(row)

    test()
    return ran


def test_every_row_runs_and_each_failure_is_named() -> None:
    assert tried(["a", "b"]) == ["a", "b"]
    with pytest.raises(pytest.fail.Exception, match=r"(?s)2 of 4 rows.*wrong: ValueError.*wrong: ValueError"):
        tried(["wrong", "a", "wrong", "b"])


def test_rows_are_skipped_all_together_or_not_at_all() -> None:
    with pytest.raises(pytest.skip.Exception):
        tried(["skipped", "skipped"])
    with pytest.raises(pytest.fail.Exception, match="1 of 2 rows"):
        tried(["skipped", "a"])
    with pytest.raises(ValueError, match="no rows"):
        tried([])
    with pytest.raises(ValueError, match="there are 2"):
        every("row", [1, 2], share=3)


def test_a_run_has_a_share_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(draws.WHOLE, raising=False)
    ran: list[int] = []
    test = every("row", range(10), share=3)(lambda row: ran.append(row))
    test()
    assert ran == list(range(ran[0], 10, 3))
    found = draws.some("abcdefghij", 3, "x")
    assert len(found) == 3 and found == sorted(found)
    monkeypatch.setenv(draws.WHOLE, "1")
    ran.clear()
    test()
    assert ran == list(range(10))
    assert draws.some("abcdefghij", 3, "x") == list("abcdefghij")


def test_the_seed_of_a_run_is_shown_and_repeats_its_share(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(draws.WHOLE, raising=False)

    def begins(seed: int) -> int:
        monkeypatch.setenv("EMBERLET_TESTS_SEED", str(seed))
        ran: list[int] = []
        every("row", range(10), share=3)(lambda row: ran.append(row))()
        assert f"EMBERLET_TESTS_SEED={seed} " in capsys.readouterr().out
        return ran[0]

    firsts = [begins(seed) for seed in range(20)]
    assert firsts == [begins(seed) for seed in range(20)]
    assert set(firsts) == {0, 1, 2}
