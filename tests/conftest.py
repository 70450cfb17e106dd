"""Fixtures for what tests need beside Python packages; each skips (or, with CI=true, fails) where that is missing."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import zlib
from collections.abc import Generator
from pathlib import Path

import pytest
from emberlet import functional as F
from hypothesis import HealthCheck, settings
from support import draws, exact_sums

from tools import components, micropython
from tools.components import require

PORTS = {
    "unix": (("micropython-unix",), micropython.unix_port),
    "armhf": (("qemu-arm", "micropython-armhf"), micropython.armhf_port),
    "wasm": (("node", "micropython-wasm"), micropython.wasm_in_node),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--file-times", action="store_true", help="print the seconds of each test file at the end")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("file_times"):
        from support.file_times import FileTimes

        config.pluginmanager.register(FileTimes())
    # What was tuned on this machine must not decide which kernels are tested.
    os.environ.setdefault("EMBERLET_CACHE", tempfile.mkdtemp(prefix="emberlet-tests-"))
    draws.begin()
    exact_sums.use()
    # Small models are to test plans, too.
    os.environ["EMBERLET_PLANS"] = "always"
    # A shell that starts the tests in the background has them ignore interrupts, and so would the processes they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # An example may be the first to import something, and the machine may be busy.
    by_chance = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    spared = [*by_chance, HealthCheck.function_scoped_fixture]
    settings.register_profile("untimed", settings(settings.default, deadline=None, suppress_health_check=spared))
    settings.load_profile("untimed")
    config.addinivalue_line("markers", "needs(*components): skip, or fail in CI, where one of these is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The collector is off while tests are listed, which are some million objects, and leaves them alone afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000)  # compiling a model makes many objects, few of which are garbage: 5 % of the time


def pytest_runtest_setup(item: pytest.Item) -> None:
    F.manual_seed(zlib.crc32(item.nodeid.encode()))  # weights of layers are the same in each run
    for marker in item.iter_markers("needs"):
        for component in marker.args:
            require(component)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a package that is not installed is a failure, also where a test asks for it by importorskip."""
    report = yield
    if report.skipped and components.in_ci() and call.excinfo and "could not import" in str(call.excinfo.value):
        report.outcome = "failed"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """--dist=loadfile, but for a run that outlives its workers."""
    if config.getvalue("dist") != "loadfile":
        return None
    from support.workers import FileScheduling

    return FileScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    if error:
        from support.workers import how_it_ended

        print(f"\na worker's process ended {how_it_ended(node)}", flush=True)


def _port(name: str) -> micropython.Port:
    needed, start = PORTS[name]
    for component in needed:
        require(component)
    return start()


@pytest.fixture(scope="session")
def unix_port() -> micropython.Port:
    """MicroPython's Unix port on this machine's processor."""
    return _port("unix")


@pytest.fixture(scope="session")
def armhf_port() -> micropython.Port:
    """MicroPython's Unix port for 32-bit ARM, emulated."""
    return _port("armhf")


@pytest.fixture(scope="session")
def wasm_port() -> micropython.Port:
    """MicroPython's Wasm build under Node."""
    return _port("wasm")


@pytest.fixture(scope="session", params=list(PORTS))
def micropython_port(request: pytest.FixtureRequest) -> micropython.Port:
    """Each of MicroPython's ports in turn."""
    return _port(request.param)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real models and weight files that lies beside some checkouts; skips elsewhere, in CI too."""
    return Path(require("shared"))


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Chromium's executable."""
    return Path(require("chromium"))


@pytest.fixture(scope="session")
def wgpu_adapter() -> object:
    """A GPU adapter that wgpu-py can use, software ones included."""
    require("gpu-driver")
    wgpu = pytest.importorskip("wgpu")
    try:
        return wgpu.gpu.request_adapter_sync()
    except RuntimeError as error:
        reason = f"wgpu found no adapter: {error}"
        if components.in_ci():
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
