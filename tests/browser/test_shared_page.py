"""What the tests that share a page rely on."""

from __future__ import annotations

import pytest
from serve import Server
from support.browser.shared_page import SharedPage

from tools.chromium import Browser, BrowserError


def test_a_page_that_crashed_is_opened_anew(browser: Browser, runtimes: Server) -> None:
    shared = SharedPage(browser, runtimes.url + "support/micropython.html")
    page = shared.page()
    assert shared.page() is page
    with pytest.raises(BrowserError):
        page.goto(url="chrome://crash")
    with pytest.warns(UserWarning, match="crashed"):
        again = shared.page()
    assert again.evaluate("(source) => runMicroPython(source)", "print('here')").strip() == "here"
    again.close()
