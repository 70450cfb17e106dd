"""Tensors of images, and images of tensors, beside those of onnxruntime-web (whose part onnxruntime-common makes them)
in the same tab."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve import start_server

from tools.chromium import Browser

PAGE = '<!doctype html><link rel="icon" href="data:," />'
BOTH = """
const { Tensor: Ours } = await import("/emberlet-web/onnxruntime.mjs");
const { Tensor: Theirs } = await import("/ort/index.js");
const colors = Uint8ClampedArray.from({ length: 4 * 5 * 3 }, (_, i) => (37 * i + 11) % 256);
const clear = () => new ImageData(colors.slice(), 5, 3);
const opaque = () => new ImageData(colors.map((one, i) => (i % 4 === 3 ? 255 : one)), 5, 3);
"""


@pytest.fixture
def found(browser: Browser, packed: Path, onnxruntime_common: Path, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """What an asynchronous function of a body returns, in a page with both classes."""
    shutil.copytree(packed.with_name("built"), tmp_path / "emberlet-web")
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    server = start_server(tmp_path, mounts={"/ort/": onnxruntime_common})
    page = browser.open(server.url)
    yield lambda script: page.evaluate(f"async () => {{ {BOTH} {script} }}")
    page.close()
    server.shutdown()


def test_images_become_the_tensors_that_onnxruntime_makes(found: Callable[[str], Any]) -> None:
    rows = found(
        """
        const { canvas, context } = (() => {
          const canvas = Object.assign(document.createElement("canvas"), { width: 5, height: 3 });
          return { canvas, context: canvas.getContext("2d") };
        })();
        context.putImageData(clear(), 0, 0);
        const address = canvas.toDataURL();
        const element = Object.assign(new Image(), { src: address });
        await element.decode();
        const bitmap = await createImageBitmap(canvas);
        const norm = { mean: [58.395, 57.12, 57.375], bias: [-123.675, -116.28, -103.53] };
        const cases = [
          [opaque()],
          [clear()],
          [clear(), {}],
          [opaque(), { tensorFormat: "BGR", norm: { mean: 127.5, bias: -127.5 } }],
          [opaque(), { tensorFormat: "RBG", norm, dataType: "uint8" }],
          [clear(), { tensorFormat: "RGBA", norm: { mean: [1, 2, 3, 4], bias: [5, 6, 7, 8] } }],
          [opaque(), { norm: { mean: Float32Array.of(1, 2, 3), bias: Float32Array.of(5, 6, 7) } }],
          [opaque(), { resizedWidth: 7, resizedHeight: 2 }],
          [element],
          [element, { resizedWidth: 4, resizedHeight: 6 }],
          [bitmap, { tensorFormat: "RGBA" }],
          [bitmap, { norm }],
          [address],
          [address, { tensorFormat: "BGR", resizedWidth: 2, resizedHeight: 2 }],
        ];
        const rows = [];
        for (const [image, options] of cases) {
          const made = [];
          for (const one of [Ours, Theirs]) {
            const { type, dims, data } = await one.fromImage(image, options && { ...options });
            made.push([type, [...dims], [...data]]);
          }
          rows.push(made);
        }
        return rows;
        """,
    )
    assert len(rows) == 14
    for ours, theirs in rows:
        assert ours == theirs


def test_tensors_become_the_images_that_onnxruntime_draws(found: Callable[[str], Any]) -> None:
    rows = found(
        """
        const drawn = (one, type, values, dims, options) => {
          const tensor = new one(type, values, dims);
          const { width, height, data } = tensor.toImageData(options && { ...options });
          const address = dims[1] === 3 ? tensor.toDataURL(options && { ...options }) : "";
          return [width, height, [...data], address];
        };
        const floats = (n) => Float32Array.from({ length: n }, (_, i) => ((37 * i) % 256) / 255);
        const signed = floats(45).map((x) => 2 * x - 1);
        const bytes = Uint8Array.from({ length: 45 }, (_, i) => 37 * i);
        const cases = [
          ["float32", floats(45), [1, 3, 3, 5]],
          ["float32", floats(60), [1, 4, 3, 5], { format: "RGBA" }],
          ["float32", signed, [1, 3, 3, 5], { format: "RGB", norm: { mean: 127.5, bias: -1 } }],
          ["uint8", bytes, [1, 3, 3, 5], { format: "RGB", norm: { mean: 1, bias: 0 } }],
          ["float32", floats(90), [2, 3, 3, 5]],
        ];
        return cases.map((one) => [drawn(Ours, ...one), drawn(Theirs, ...one)]);
        """,
    )
    assert len(rows) == 5
    for ours, theirs in rows:
        assert ours == theirs


def test_every_format_and_layout_comes_back_as_the_same_image(found: Callable[[str], Any]) -> None:
    rows = found(
        """
        const rows = [];
        for (const format of ["RGB", "RGBA", "BGR", "RBG"]) {
          for (const tensorLayout of ["NCHW", "NHWC"]) {
            const tensor = await Ours.fromImage(opaque(), { tensorFormat: format, tensorLayout });
            const { data } = tensor.toImageData({ format, tensorLayout });
            rows.push([format, tensorLayout, tensor.dims, [...tensor.data], [...data]]);
          }
        }
        return [rows, [...opaque().data]];
        """,
    )
    given = np.reshape(rows[1], (3, 5, 4))
    for form, layout, dims, values, back in rows[0]:
        wanted = given[..., ["RGBA".index(color) for color in form]][None] / 255
        wanted = wanted if layout == "NHWC" else wanted.transpose(0, 3, 1, 2)
        assert tuple(dims) == wanted.shape
        np.testing.assert_allclose(np.reshape(values, dims), wanted, atol=1e-7)
        assert back == rows[1]
