"""The page of training: a network learns to read digits in the tab, and its weights can be taken along."""

from __future__ import annotations

import base64
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import nn
from emberlet.burnpack import Burnpack
from serve import Server

from tools.chromium import Browser, Page
from tools.paths import ROOT

SHOTS = ROOT / "out" / "page"
FACTS = """() => Object.fromEntries(["adapter", "epoch", "accuracy", "status"].map((id) => [
  id, document.getElementById(id).textContent]))"""
KEPT = "() => { URL.createObjectURL = (blob) => ((globalThis.saved = blob), 'blob:none'); }"
SAVED = """async () => {
  const bytes = new Uint8Array(await saved.arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
}"""


def state(page: Page, wanted: str) -> dict[str, Any]:
    """Wait for the end of the training; returns what the page shows."""
    page.wait("() => ['done', 'error'].includes(document.querySelector('main').dataset.state)", timeout=120000)
    found: dict[str, Any] = page.evaluate(FACTS)
    assert page.evaluate("() => document.querySelector('main').dataset.state") == wanted, found
    return found


@pytest.mark.needs("gpu-driver")
def test_a_network_learns_in_the_tab(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "train.html")
    page.evaluate(KEPT)
    page.click(selector="#start")
    found = state(page, "done")
    log = page.log()
    page.click(selector="#save")
    page.wait("() => globalThis.saved")
    content = base64.b64decode(page.evaluate(SAVED))
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(SHOTS / "training.png"), full=True)
    page.close()
    assert log == [] and "swiftshader" in found["adapter"] and found["epoch"] == "20 of 20"
    model = nn.Sequential(nn.Linear(64, 64, backend="numpy"), nn.Relu(), nn.Linear(64, 10, backend="numpy"))
    model.load_record(Burnpack.from_bytes(content))
    with np.load(ROOT / "examples" / "digits" / "heldout.npz") as data:
        images, labels = data["images"][270:].reshape(-1, 64).astype(np.float32) / 16, data["labels"][270:]
    right = float((np.asarray(model(emberlet.asarray(images, backend="numpy"))).argmax(1) == labels).mean())
    assert found["accuracy"] == f"{100 * right:.1f} %" and right > 0.85


@pytest.mark.needs("gpu-driver")
def test_it_stops_after_the_epoch_and_begins_anew(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "train.html")
    page.click(selector="#start")
    page.wait("() => !document.getElementById('stop').disabled", timeout=60000)
    page.click(selector="#stop")
    assert "Stopped after" in state(page, "done")["status"]
    page.evaluate("() => { document.querySelector('main').dataset.state = ''; }")
    page.click(selector="#start")
    assert state(page, "done")["epoch"] == "20 of 20"
    page.close()


def test_a_browser_without_a_gpu_is_told(browser: Browser, site: Server) -> None:
    page = browser.open(site.url + "train.html")
    page.prepend(pattern="**/train_worker.mjs", code="Object.defineProperty(navigator, 'gpu', { value: undefined });")
    page.click(selector="#start")
    assert state(page, "error")["status"] == "It cannot train here: this browser has no WebGPU"
    page.close()
