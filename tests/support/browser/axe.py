"""Accessibility of a page, checked by axe."""

from __future__ import annotations

from pathlib import Path

from tools.chromium import Page
from tools.components import require
from tools.paths import ROOT

SHOTS = ROOT / "out" / "page"


def assert_accessible(page: Page, name: str) -> None:
    """Assert that axe finds nothing in light and in dark colors, and that a phone is wide enough; keeps a picture of
    each as out/page/phone-NAME-COLOR.png."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    for color in ("light", "dark"):
        page.color(scheme=color)
        assert violations(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth <= 360"), "wider than the screen"
        page.screenshot(path=str(SHOTS / f"phone-{name}-{color}.png"), full=True)


def violations(page: Page) -> list[str]:
    """The rules that axe finds broken in the page as it is now, each with the elements that break it."""
    axe = Path(require("axe")).read_text(encoding="utf-8")
    page.evaluate(f"() => {{ if (!globalThis.axe) {{ {axe} }} }}")
    found: list[str] = page.evaluate("""async () => {
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
    }""")
    return found
