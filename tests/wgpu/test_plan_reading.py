"""Saved plans are not trusted: inconsistent ones are refused with a message, and damage is detected."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest
from emberlet import dtypes
from emberlet.burnpack import Burnpack
from emberlet.burnpack.parts import FileParts
from emberlet.errors import FormatError
from emberlet.host import burnpack_writer
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.plan.data import KEY, VERSION
from soak import models


def content() -> dict:
    """The JSON of a small plan."""
    return json.loads(Burnpack.from_bytes(models.plan_bytes()).metadata[KEY])


def pack(metadata: str, more: dict[str, str] | None = None) -> bytes:
    """A plan of this JSON, with the tensors of the small one."""
    source = Burnpack.from_bytes(models.plan_bytes())
    tensors = {name: source.tensor(name, "numpy") for name in source.tensors}
    return burnpack_writer.dumps(tensors, {KEY: metadata, **(more or {})})


def refused(gpu, change) -> str:
    found = content()
    text = change(found)
    with pytest.raises(FormatError) as caught:
        plan_file.load(pack(text or json.dumps(found)), gpu.device)
    message = str(caught.value)
    assert message.startswith("plan: ") and not message.endswith("None"), message
    return message


def test_values_that_are_not_numbers_are_refused_with_a_message(gpu):
    def huge(found):
        found["buffers"][0][1] = 123456789
        return json.dumps(found).replace("123456789", "1e999")

    assert "a buffer's size is inf, not a whole number" in refused(gpu, huge)
    for value, said in [(None, "None"), (True, "True"), (1.5, "1.5"), ("4", "'4'"), ([4], "a list"), (-1, "-1")]:
        assert f"a buffer's size is {said}, not" in refused(gpu, lambda f, v=value: f["buffers"][0].__setitem__(1, v))


def test_shapes_of_many_dimensions_are_refused_at_once(gpu):
    message = refused(gpu, lambda found: found["inputs"][0].__setitem__(2, [1] * 50_000))
    assert "a shape has 50000 dimensions; at most 64 are supported" in message


def test_an_output_that_nothing_writes_is_refused(gpu):
    def unwritten(found):
        found["buffers"].append(["output", found["buffers"][found["outputs"][0][3]][1]])
        found["outputs"][0][3] = len(found["buffers"]) - 1

    assert "nothing writes the output output0" in refused(gpu, unwritten)


@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_an_input_or_output_larger_than_its_buffer_is_refused(gpu, which):
    def larger(found):
        port = found[which][0]
        size = 4 if port[1] == "float32" else pytest.fail("the plan's ports are not float32")
        port[2] = [found["buffers"][port[3]][1] // size + 1]

    assert "does not fit its buffer" in refused(gpu, larger)


@pytest.mark.parametrize(
    "size, fits", [(255, False), (128, False), (256, True), (384, False), (512, True), (1 << 20, True)]
)
def test_a_page_is_a_power_of_two(gpu, size, fits):
    if fits:
        found = content()
        found["page_bytes"] = size
        plan_file.load(pack(json.dumps(found)), gpu.device)
    else:
        said = refused(gpu, lambda found: found.__setitem__("page_bytes", size))
        assert f"page_bytes is {size}, not a power of two of at least 256" in said


@pytest.mark.parametrize("dtype", ["float7", "string", "complex64"])
@pytest.mark.parametrize("which", ["inputs", "outputs"])
def test_an_input_or_output_of_another_dtype_is_refused(gpu, which, dtype):
    said = refused(gpu, lambda found: found[which][0].__setitem__(1, dtype))
    assert f"{dtype!r} is not a dtype that a plan supports" in said


@pytest.mark.parametrize("pages", [[0], [2], [17]])
def test_pages_that_a_buffer_does_not_have_are_refused(gpu, pages):
    found = content()
    for steps in found["steps"].values():
        steps[0][3:] = [pages + [1] * (len(steps[0][2]) - 1)]
    with pytest.raises(FormatError, match="pages"):
        plan_file.load(pack(json.dumps(found)), gpu.device)


def test_what_a_plan_reads_before_it_writes_is_zero(gpu):
    stale = gpu.full((4096,), 7.0, dtypes.float32)
    gpu.realize(stale)
    del stale
    kernel = """@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>) { b[g.x] = a[g.x] + 1.0; }"""
    found = {
        "version": VERSION,
        "inputs": [],
        "outputs": [["y", "float32", [4096], 1]],
        "buffers": [["temporary", 16384], ["output", 16384]],
        "constants": [],
        "kernels": [["add", kernel]],
        "steps": {name: [[0, [64, 1, 1], [0, 1]]] for name in ("gpu", "software")},
    }
    plan = plan_file.load(burnpack_writer.dumps({}, {KEY: json.dumps(found)}), gpu.device)
    np.testing.assert_array_equal(models.array(plan.run()[0]), np.ones(4096))


def with_checksums(data: bytes) -> bytes:
    source = Burnpack.from_bytes(data)
    if getattr(source, "checksums", None):
        return data
    sums = "".join(f"{zlib.crc32(source.raw(name)):08x}" for name in sorted(source.tensors))
    return pack(source.metadata[KEY], {"emberlet.crc32": sums})


@pytest.mark.parametrize("as_file", [True, False])
def test_a_flipped_bit_is_found_where_it_is_looked_for(gpu, tmp_path, as_file):
    data = bytearray(with_checksums(models.plan_bytes()))
    source = Burnpack.from_bytes(bytes(data))
    entry = source.tensors["constant1"]
    x = models.given(4)

    def load(data, verify):
        path = tmp_path / "model.plan"
        path.write_bytes(data)
        return plan_file.load(str(path) if as_file else bytes(data), gpu.device, verify)

    np.testing.assert_allclose(models.array(load(data, True).run(x)[0]), models.wanted(x), atol=1e-4)
    data[entry.start + 5] ^= 4
    with pytest.raises(FormatError, match="'constant1'"):
        load(data, True)
    load(data, False).release()


def test_a_plan_without_checksums_loads(gpu):
    source = Burnpack.from_bytes(models.plan_bytes())
    plan = plan_file.load(pack(source.metadata[KEY]), gpu.device, verify=True)
    x = models.given(4)
    np.testing.assert_allclose(models.array(plan.run(x)[0]), models.wanted(x), atol=1e-4)


def test_a_refused_plan_leaves_no_gpu_memory(gpu):
    data = bytearray(with_checksums(models.plan_bytes()))
    entry = Burnpack.from_bytes(bytes(data)).tensors["constant0"]
    data[entry.start] ^= 1
    live = gpu.device.live_bytes
    with pytest.raises(FormatError):
        plan_file.load(bytes(data), gpu.device, verify=True)
    assert gpu.device.live_bytes == live


def test_a_file_that_ends_too_early_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(100))
    file = FileParts(str(path))
    assert len(file) == 100
    assert bytes(file[90:200]) == bytes(10)
    path.write_bytes(bytes(50))
    with pytest.raises(FormatError, match="ends 50"):
        file.read(0, 100)
    file.close()
