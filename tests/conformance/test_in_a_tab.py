"""The benchmark of files in tabs ends its browser whatever happens, and says how many rows it has not tried."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance import in_a_tab

ONE, OTHER = "package/one", "package/other"


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What has ended; a file of two packages in stand-ins of the browser and of the page, with an empty table."""
    found: list[str] = []
    model = tmp_path / "model.onnx"
    model.touch()
    browser = SimpleNamespace(version="1", close=lambda: found.append("browser"))
    server = SimpleNamespace(url="", shutdown=lambda: found.append("server"))
    modules: dict[str, Any] = {
        "build_package": SimpleNamespace(build_package=lambda _: None),
        "build_page": SimpleNamespace(build=lambda site: site.mkdir()),
        "serve": SimpleNamespace(start_server=lambda *_, **__: server),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(in_a_tab, "Browser", lambda: browser)
    monkeypatch.setattr(in_a_tab, "PAGE", tmp_path / "tab.md")
    works = [(n, lambda n=n: in_a_tab.Work(n, model, [], [], 1.0)) for n in (ONE, OTHER)]
    monkeypatch.setattr(in_a_tab, "published", lambda: iter(works))
    monkeypatch.setattr(in_a_tab, "of_the_tests", lambda: iter(()))
    return found


def started(monkeypatch: pytest.MonkeyPatch, answered: Any, *arguments: str) -> int:
    monkeypatch.setattr(in_a_tab, "answered", answered)
    monkeypatch.setattr(sys, "argv", ["in_a_tab", *arguments])
    return in_a_tab.main()


@pytest.mark.parametrize("error", [KeyboardInterrupt, AssertionError])
def test_the_browser_ends_on_errors_and_interrupts(
    ended: list[str], monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def answered(*_: Any) -> Any:
        raise error

    with pytest.raises(error):
        started(monkeypatch, answered)
    assert ended == ["browser", "server"]


def test_the_table_says_how_many_rows_are_missing(ended: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(_: Any, __: str, ___: Path, work: Any, way: str) -> Any:
        return in_a_tab.Row(work, way, failure="" if way == "WebGPU" else "no")

    assert started(monkeypatch, answered, ONE, "--way", "WebGPU", "--way", "WebAssembly", "--write") == 1
    text = in_a_tab.PAGE.read_text(encoding="utf-8")
    counts = {cells[0]: cells[1:] for line in text.splitlines() if len(cells := in_a_tab.cells_of(line)) == 3}
    assert counts["all"] == ["1 of 2; 6 not tried", "0 of 0; 0 not tried"]
    of_packages = [counts[way][0] for way in in_a_tab.WAYS]
    assert of_packages == ["0 of 1; 1 not tried", "1 of 1; 1 not tried", *["0 of 0; 2 not tried"] * 2]
    assert text.count(ONE) == 2 and ended == ["browser", "server"]
