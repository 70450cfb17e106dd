"""A page that the browser tests of a session share."""

from __future__ import annotations

import warnings

from tools.chromium import Browser, Page


class SharedPage:
    """A page that tests share, opened anew once its renderer has crashed: only the test that it crashed in fails."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self._url = browser, url
        self._page: Page | None = None

    def page(self) -> Page:
        """The page, ready.

        Raises:
            BrowserError: It did not start.
        """
        if self._page and not self._page.alive():
            warnings.warn(f"{self._url} crashed and is opened anew", stacklevel=2)
            self._page.close()
            self._page = None
        if not self._page:
            page = self._browser.open(self._url)
            page.wait("() => globalThis.ready || globalThis.failed", timeout=60000)
            failed = page.evaluate("() => globalThis.failed")
            assert not failed, failed
            self._page = page
        return self._page
