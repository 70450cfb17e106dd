"""A missing component skips a test on a developer's machine and fails it in CI; dev.py says how to install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import components, install
from tools.components import COMPONENTS, Component


@pytest.fixture
def sextant(monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component that no machine has."""
    component = Component("sextant", "a sextant", lambda: None, "buy one", source="apt", apt=("sextant",))
    monkeypatch.setitem(COMPONENTS, "sextant", component)
    monkeypatch.setattr(install, "_may_use_apt", lambda: False)
    return component


def test_missing_component_skips_locally(sextant: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="a sextant is missing: buy one"):
        components.require("sextant")


def test_missing_component_fails_in_ci(sextant: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="a sextant is missing: buy one"):
        components.require("sextant")


def test_a_component_is_missing_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    component = Component("sextant", "a sextant", lambda: "/a/sextant", "buy one", package="astrolabe_package")
    monkeypatch.setitem(COMPONENTS, "sextant", component)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="astrolabe_package"):
        components.require("sextant")


def test_what_belongs_to_no_checkout_skips_in_ci_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(components, "SHARED", Path("/nowhere"))
    with pytest.raises(pytest.skip.Exception):
        components.require("shared")


def test_what_cannot_be_installed_is_named_with_its_remedy(
    sextant: Component, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install.ensure(["sextant"]) == [sextant]
    assert "a sextant: buy one" in capsys.readouterr().out


def test_every_component_says_what_to_do() -> None:
    for name, component in COMPONENTS.items():
        assert component.name == name
        assert component.remedy
