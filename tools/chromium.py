"""A real Chromium, driven through Playwright by one node process; pages answer in JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import components

HERE = Path(__file__).resolve().parent


class BrowserError(Exception):
    """A command failed in the page or in the driver."""


NEEDED = ("node", "playwright", "chromium")


class Browser:
    """One Chromium with a fresh profile; `close` (or leaving the with block) ends it.

    webgpu: whether it has an adapter; flags: further ones of its command line.

    Raises:
        Missing: Node, Playwright's driver or Chromium is not installed.
    """

    def __init__(self, *, webgpu: bool = True, flags: Sequence[str] = ()) -> None:
        node, playwright, executable = (components.get(name).found() for name in NEEDED)
        self._process = subprocess.Popen(
            [
                node,
                str(HERE / "chromium_driver.mjs"),
                str(Path(playwright).with_name("index.mjs")),
                executable,
                "webgpu" if webgpu else "none",
                *flags,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._count = 0
        self.version = self.command("version")

    def command(self, do: str, **details: Any) -> Any:
        """Send one command and wait for its answer.

        Raises:
            BrowserError: The command failed; the message is what the page or the driver said.
        """
        assert self._process.stdin and self._process.stdout
        self._count += 1
        self._process.stdin.write(json.dumps({"id": self._count, "do": do, **details}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BrowserError(f"the browser driver ended (exit status {self._process.wait()})")
        answer = json.loads(line)
        if "error" in answer:
            raise BrowserError(answer["error"])
        return answer["value"]

    def open(self, url: str, **details: Any) -> Page:
        """A page of its own context (no shared storage).

        Args:
            url: Where it goes; it must answer.
            details: width and height of the window in CSS pixels; touch: a phone; scale: device pixels a CSS pixel;
                dark: prefers dark colors; forced: forced colors, as in high contrast; before: JavaScript to run before
                the page's own.
        """
        return Page(self, self.command("open", url=url, **details))

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Page:
    """One tab. Methods are the driver's commands: evaluate, wait, draw, screenshot, …"""

    def __init__(self, browser: Browser, number: int) -> None:
        self._browser = browser
        self._number = number

    def __getattr__(self, do: str) -> Any:
        if do.startswith("_"):
            raise AttributeError(do)
        return lambda **details: self._browser.command(do, page=self._number, **details)

    def evaluate(self, code: str, argument: Any = None, timeout: int = 60000) -> Any:
        """The JSON value of a JavaScript function of one argument, given as source; promises are awaited.

        Raises:
            BrowserError: It threw, or gave no answer within `timeout` milliseconds.
        """
        return self._browser.command("evaluate", page=self._number, code=code, argument=argument, timeout=timeout)

    def wait(self, code: str, timeout: int = 30000) -> None:
        """Wait until the JavaScript function returns a true value."""
        try:
            self._browser.command("wait", page=self._number, code=code, timeout=timeout)
        except BrowserError as error:
            raise BrowserError(f"{error}\nthe page's log: {self.log()}") from None

    def alive(self) -> bool:
        """Whether it still answers: a tab whose renderer crashed does not."""
        try:
            return bool(self.evaluate("() => true"))
        except BrowserError:
            return False

    def log(self) -> list[str]:
        """Console messages, uncaught errors and failed requests since the last call."""
        lines: list[str] = self._browser.command("log", page=self._number)
        return lines
