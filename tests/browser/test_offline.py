"""After the first visit the page needs no network; a new version downloads what changed and nothing else."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import build_page
import pytest
from serve import PAGE_POLICY, Server, start_server

from tools.chromium import Browser, Page

READY = "() => document.querySelector('main').dataset.state === 'ready'"
KEPT = """async () => {
  const registration = await navigator.serviceWorker.getRegistration();
  return Boolean(registration?.active) && registration.active.state === "activated";
}"""
READS = "() => document.querySelector('#bars .best b')?.textContent === '7'"


def sent_so_far(server: Server) -> int:
    """The bytes that were sent, once nothing has been sent for a second: a busy machine still writes after `KEPT`."""
    sent = -1
    while sent != server.sent:
        sent = server.sent
        time.sleep(1)
    return sent


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """The site, to be changed. Its service worker lists what there is: tests of the demos build more into `built`."""
    site = Path(shutil.copytree(built, tmp_path / "site"))
    build_page.write_service_worker(site)
    return site


def visit(browser: Browser, server: Server) -> Page:
    page = browser.open(f"{server.url}#runtime=micropython&device=wgpu&example=7")
    page.wait(READY, timeout=120000)
    page.wait(KEPT, timeout=120000)
    return page


def test_it_works_without_a_network_after_the_first_visit(browser: Browser, copy: Path) -> None:
    server = start_server(copy, policy=PAGE_POLICY)
    page = visit(browser, server)
    server.shutdown()
    server.server_close()
    page.evaluate("() => { globalThis.before = true; location.reload(); }")
    page.wait("() => !globalThis.before && " + READY.removeprefix("() => "), timeout=120000)
    page.wait(READS, timeout=120000)
    page.evaluate("() => { location.hash = 'runtime=micropython&device=python'; }")
    page.wait("() => document.getElementById('adapter').textContent.startsWith('the CPU')", timeout=120000)
    page.wait(READY, timeout=120000)
    policy = page.evaluate("() => fetch('/').then((response) => response.headers.get('content-security-policy'))")
    assert policy == PAGE_POLICY, "the kept page is as strict"
    page.close()


def test_a_new_version_downloads_what_changed(browser: Browser, copy: Path) -> None:
    server = start_server(copy, policy=PAGE_POLICY)
    page = visit(browser, server)
    index = copy / "index.html"
    index.write_text(index.read_text(encoding="utf-8").replace("Draw a digit</h2>", "Draw one</h2>"), encoding="utf-8")
    build_page.write_service_worker(copy)
    before = sent_so_far(server)
    page.evaluate("() => { navigator.serviceWorker.oncontrollerchange = () => (globalThis.taken = true); }")
    page.evaluate("async () => void (await (await navigator.serviceWorker.getRegistration()).update())")
    page.wait("() => globalThis.taken", timeout=120000)
    assert server.sent - before < 30_000, "of 0.5 MB only the service worker and the page"
    page.evaluate("() => { location.reload(); }")
    page.wait("() => document.getElementById('draw-title')?.textContent === 'Draw one'", timeout=120000)
    page.wait(READY, timeout=120000)
    keys = page.evaluate("""async () => (await (await caches.open("emberlet-page")).keys()).map(({ url }) => url)""")
    assert len([key for key in keys if "/index.html?" in key]) == 1, "the old version is gone"
    page.close()
    server.shutdown()


def test_a_page_without_service_workers_works(browser: Browser, site: Server) -> None:
    gone = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined })"
    page = browser.open(f"{site.url}#runtime=micropython&device=wgpu&example=7", before=gone)
    page.wait(READS, timeout=120000)
    assert page.log() == []
    page.close()
