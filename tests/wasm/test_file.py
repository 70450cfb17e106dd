"""Saved compiled models run in Python and in JavaScript, and damaged ones are refused with a message."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import codegen, dtypes
from emberlet import functional as F
from emberlet.errors import BackendError, FormatError, IndexingError, ModelError
from emberlet.wgpu_backend import plan_file, wasm
from emberlet.wgpu_backend.plan.storing import encoded
from emberlet.wgpu_backend.record import host_evaluation
from emberlet.wgpu_backend.wasm import assembler, engine, file, sections, writer
from emberlet.wgpu_backend.wasm.opcodes import unsigned
from models.index import Case, cases
from support.processes import ran

from tools.paths import ROOT

RUNTIME = ROOT / "web" / "package" / "wasm.mjs"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "digits.wasm"
    model = codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")
    example = emberlet.zeros((1, 1, 8, 8), dtype="float32", backend="numpy")
    plan_file.save(str(path), model, example, inputs=["image"], outputs=["logits"])
    return path


def image() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).random((1, 1, 8, 8), np.float32)


def expected(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    model = codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")
    return np.asarray(model(x))


def in_node(script: str, *options: str) -> str:
    source = f'import {{ readFileSync }} from "fs";\nimport {{ load }} from {json.dumps(RUNTIME.as_uri())};\n{script}'
    command = ["node", *options, "--input-type=module", "-e", source]
    done = ran(*command)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_saved_model_runs_in_python(digits: Path) -> None:
    plan = plan_file.load(str(digits))
    x = image()
    (logits,) = plan.run(x)
    np.testing.assert_allclose(np.asarray(logits.to_list()), expected(x), rtol=1e-5, atol=1e-5)
    assert repr(plan.inputs) == "[image: float32 (1, 1, 8, 8)]"
    plan.release()
    with pytest.raises(BackendError, match="released"):
        plan.run(x)


def test_bytes_are_loaded_like_files(digits: Path) -> None:
    (logits,) = plan_file.load(digits.read_bytes()).run(image())
    np.testing.assert_allclose(np.asarray(logits.to_list()), expected(image()), rtol=1e-5, atol=1e-5)


def test_without_relaxed_simd_the_other_code_runs(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "relaxed", lambda: False)
    found = file.load(digits.read_bytes())
    (logits,) = found.run(image())
    np.testing.assert_allclose(np.asarray(logits.to_list()), expected(image()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("relaxed", [True, False])
def test_a_file_for_one_kind_of_engine_has_only_its_code(
    digits: Path, tmp_path: Path, relaxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.wasm"
    model = codegen.load(str(ROOT / "examples" / "digits" / "digits.onnx"), backend="numpy")
    example = emberlet.zeros((1, 1, 8, 8), dtype="float32", backend="numpy")
    plan_file.save(str(path), model, example, inputs=["image"], outputs=["logits"], relaxed=relaxed)
    monkeypatch.setattr(engine, "relaxed", lambda: relaxed)
    found, whole = (np.asarray(plan_file.load(str(file)).run(image())[0].to_list()) for file in (path, digits))
    np.testing.assert_array_equal(found, whole)
    assert path.stat().st_size < digits.stat().st_size
    if not relaxed:
        monkeypatch.setattr(engine, "relaxed", lambda: True)
        np.testing.assert_array_equal(plan_file.load(str(path)).run(image())[0].to_list(), found)
        return
    monkeypatch.setattr(engine, "relaxed", lambda: False)
    with pytest.raises(FormatError, match=r"one\.wasm needs WebAssembly.s relaxed SIMD, .* a newer one") as refusal:
        plan_file.load(str(path))
    assert "damaged" not in str(refusal.value)


@pytest.mark.needs("node")
@pytest.mark.parametrize("options", [(), ("--experimental-wasm-relaxed-simd",)], ids=["simd", "relaxed"])
def test_saved_model_runs_in_javascript(digits: Path, options: tuple[str, ...]) -> None:
    said = in_node(
        f"""
        const model = await load(readFileSync({json.dumps(str(digits))}));
        const {{ logits }} = await model.run({{ image: new Float32Array({image().ravel().tolist()}) }});
        console.log(JSON.stringify([...logits]));
        """,
        *options,
    )
    np.testing.assert_allclose(json.loads(said), expected(image())[0], rtol=1e-5, atol=1e-5)


@pytest.mark.needs("node")
def test_every_dtype_has_its_typed_array(tmp_path: Path) -> None:
    names = ["float64", "float32", "int64", "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8"]

    def function(*tensors: Any) -> Any:
        return tuple(F.logical_not(x) if x.dtype is dtypes.bool else x * 2 for x in tensors)

    examples = [emberlet.asarray([1, 2, 3], dtype=name, backend="numpy") for name in [*names, "bool"]]
    path = tmp_path / "all.wasm"
    plan_file.save(str(path), function, *examples, inputs=[*names, "bool"], outputs=[*names, "bool"])
    said = in_node(
        f"""
        const model = await load(readFileSync({json.dumps(str(path))}));
        const given = Object.fromEntries(model.inputs.map((port) => {{
          const wide = port.array === BigInt64Array || port.array === BigUint64Array;
          const last = port.dtype === "bool" ? 0 : 5;
          return [port.name, port.array.from([1, 0, last], wide ? (n) => BigInt(n) : (n) => n)];
        }}));
        const found = await model.run(given);
        for (const [name, values] of Object.entries(found)) console.log(name, values.constructor.name, `${{values}}`);
        """
    )
    kinds = {name: f"{name.capitalize()}Array" for name in names}
    kinds |= {"int64": "BigInt64Array", "uint64": "BigUint64Array", "bool": "Uint8Array"}
    lines = said.splitlines()
    assert len(lines) == len(names) + 1
    for line in lines:
        name, kind, values = line.split()
        assert kind == kinds[name]
        assert values == ("0,1,1" if name == "bool" else "2,0,10"), name


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("model.run({})", 'the input "image" takes a Float32Array of 64 (float32, 1×1×8×8); found: undefined'),
        ("model.run({ image: new Float32Array(3) })", "found: Float32Array of 3"),
        ("model.run({ picture: 1 })", 'the model has no input "picture"; it takes image'),
        ("load(bytes.subarray(0, 5000))", "is not a compiled model, or it is damaged"),
        ("load(new Uint8Array([60, 104, 116, 109, 108, 62, 0, 0, 0]))", "is a web page, not a model"),
        ("load(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))", "not one that `emberlet compile` wrote"),
        ("model.release().then(() => model.run({ image: new Float32Array(64) }))", "the model was released"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(digits: Path, call: str, message: str) -> None:
    said = in_node(
        f"""
        const bytes = new Uint8Array(readFileSync({json.dumps(str(digits))}));
        const model = await load(bytes);
        console.log(await {call}.then(() => "nothing", (error) => error.message));
        """
    )
    assert message in said
    assert said.count("\n") == 1


def flipped(whole: bytes, choose: random.Random) -> bytes:
    """With one bit of one byte changed."""
    data = bytearray(whole)
    data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    return bytes(data)


def without_checksum(whole: bytes) -> bytes:
    """As earlier releases wrote the file."""
    promise = b'"checksum": "crc32", '
    begin = sections.sections(whole)[-1][-1]
    return whole[:begin].replace(promise, b" " * len(promise))


def test_every_flipped_byte_is_refused_in_words(digits: Path) -> None:
    whole = digits.read_bytes()
    choose = random.Random(7)
    for _ in range(100):
        with pytest.raises(FormatError, match=r"damaged compiled model: \w.*\w"):
            file.load(flipped(whole, choose))


@pytest.mark.needs("node")
def test_every_flipped_byte_is_refused_in_words_by_javascript(digits: Path) -> None:
    choose = random.Random(8)
    whole = digits.read_bytes()
    copies = [base64.b64encode(flipped(whole, choose)).decode() for _ in range(100)]
    listed = digits.with_name("flipped.json")
    listed.write_text(json.dumps(copies), encoding="utf-8")
    said = in_node(
        f"""
        for (const copy of JSON.parse(readFileSync({json.dumps(str(listed))}, "utf8"))) {{
          console.log(await load(Buffer.from(copy, "base64")).then(() => "loaded", (error) => error.message));
        }}
        """
    ).splitlines()
    assert len(said) == 100
    words = ("is damaged", "is not a compiled model", "not one that `emberlet compile` wrote")
    assert [line for line in said if not any(word in line for word in words)] == []


@pytest.mark.needs("node")
def test_a_file_without_a_checksum_loads(digits: Path) -> None:
    old = without_checksum(digits.read_bytes())
    (logits,) = file.load(old).run(image())
    np.testing.assert_allclose(np.asarray(logits.to_list()), expected(image()), rtol=1e-5, atol=1e-5)
    path = digits.with_name("old.wasm")
    path.write_bytes(old)
    assert in_node(f"console.log((await load(readFileSync({json.dumps(str(path))}))).device)") == "wasm\n"


@pytest.mark.needs("node")
def test_a_file_that_lost_its_checksum_is_refused(digits: Path) -> None:
    whole = digits.read_bytes()
    part = whole[: sections.sections(whole)[-1][-1]]
    with pytest.raises(FormatError, match="its checksum is missing"):
        file.load(part)
    path = digits.with_name("part.wasm")
    path.write_bytes(part)
    said = in_node(f"console.log(await load(readFileSync({json.dumps(str(path))})).catch((error) => error.message))")
    assert "its bytes do not match its checksum" in said


HOSTILE = [None, True, -1, 1 << 31, 1 << 64, 1.5, "", "float32", [], [[]], {}, [1] * 5, ["a"]]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the parts of some JSON are."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """A copy with one part replaced."""
    if not path:
        return by
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


def described_by(whole: bytes, text: bytes) -> bytes:
    """The file with another description, and the checksum of that."""
    _, *rest = sections.sections(whole)
    name = file.NAME.encode()
    content = unsigned(len(name)) + name + text
    kept = b"".join(whole[begin:end] for _, _, _, end, begin in rest[:-1])
    out = whole[:8] + b"\0" + unsigned(len(content)) + content + kept
    return out + sections.checksum(out)


def test_whatever_a_description_says_instead_is_refused_in_words(digits: Path) -> None:
    whole = digits.read_bytes()
    described = sections.sections(whole)[0]
    content = {**json.loads(whole[described[2] : described[3]]), "indices": [[0, 5]]}
    texts = [json.dumps(replaced(content, path, by)).encode() for path in paths(content) for by in HOSTILE]
    for text in [*texts, b"", b"{", b"\xff", b"[" * 100_000, b'{"version":' + b"1" * 5000 + b"}"]:
        try:
            file.load(described_by(whole, text))
        except FormatError as error:
            assert not re.search("iterable|unpack|NoneType|instances|indices must", str(error)), error
        else:
            assert text in texts


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.wasm"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(FormatError, match=r"page\.wasm.*does not start like a WebAssembly module"):
        plan_file.load(str(path))
    empty = assembler.Function("run", ()).finish()
    path.write_bytes(assembler.module([("run", empty)], ["run"], 1))
    with pytest.raises(FormatError, match="no section 'emberlet'"):
        plan_file.load(str(path))


def test_an_index_that_is_given_is_checked(tmp_path: Path) -> None:
    table = emberlet.asarray(np.arange(12, dtype=np.float32).reshape(4, 3), backend="wasm")
    path = tmp_path / "take.wasm"
    at = emberlet.asarray([0, 1], dtype="int32", backend="wasm")
    values = np.asarray(table)

    def take(i: Any) -> Any:
        return F.take(emberlet.asarray(values, backend=i.backend), i, 0)

    plan_file.save(str(path), take, at, inputs=["i"])
    plan = plan_file.load(str(path))
    assert plan.run(np.array([3, -1], np.int32))[0].to_list() == [[9, 10, 11], [9, 10, 11]]
    with pytest.raises(IndexingError, match="length 4"):
        plan.run(np.array([4, 0], np.int32))


@pytest.mark.parametrize("ending", ["plan", "wasm"])
@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], ["a", "a"]])
def test_each_input_and_result_is_named_once(tmp_path: Path, ending: str, names: list[str]) -> None:
    def both(x: Any, y: Any) -> Any:
        return x + y, x * y

    x = emberlet.asarray([1.0, 2.0], backend="numpy")
    path = str(tmp_path / f"both.{ending}")
    with pytest.raises(ModelError, match="2 inputs: name each once"):
        plan_file.save(path, both, x, x, inputs=names)
    with pytest.raises(ModelError, match="2 outputs: name each once"):
        plan_file.save(path, both, x, x, outputs=names)
    assert not list(tmp_path.iterdir())


def in_fewer_bits(folder: Path, how: str) -> tuple[Path, list[np.ndarray[Any, Any]], float]:
    """(a saved model that returns its weights, the weights as a plan restores them, its size relative to float32).

    The lengths are not multiples of a block.
    """
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(n) * 10.0 ** rng.uniform(-6, 3, n) for n in (4100, 33333, 1 << 15)]
    weights[1][:2000] = 0.0

    def model(x: Any) -> Any:
        return tuple(emberlet.asarray(w.astype(np.float32), backend=x.backend) + x for w in weights)

    paths = [folder / "plain.wasm", folder / "small.wasm"]
    for path, stored in zip(paths, (None, how), strict=True):
        plan_file.save(str(path), model, emberlet.zeros((1,), dtype="float32", backend="numpy"), weights=stored)
    restored = []
    for w in weights:
        parts = encoded(how, w.astype(np.float32).tobytes())
        scale = np.repeat(parts[1].astype(np.float32), 32)[: len(w)] if how == "q8" else np.float32(1)
        restored.append(parts[0].astype(np.float32) * scale)
    return paths[1], restored, paths[1].stat().st_size / paths[0].stat().st_size


@pytest.mark.parametrize("relaxed", [True, False])
@pytest.mark.parametrize(("how", "most"), [("q8", 0.30), ("float16", 0.53)])
def test_weights_in_fewer_bits_are_those_of_a_plan(
    tmp_path: Path, how: str, most: float, relaxed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, restored, size = in_fewer_bits(tmp_path, how)
    assert size < most
    monkeypatch.setattr(engine, "relaxed", lambda: relaxed)
    found = file.load(path.read_bytes()).run(np.zeros(1, np.float32))
    for y, wanted in zip(found, restored, strict=True):
        np.testing.assert_array_equal(np.asarray(y), wanted)


@pytest.mark.needs("node")
@pytest.mark.parametrize("how", ["q8", "float16"])
def test_javascript_expands_weights_in_fewer_bits(tmp_path: Path, how: str) -> None:
    path, restored, _ = in_fewer_bits(tmp_path, how)
    said = in_node(
        f"""
        const model = await load(readFileSync({json.dumps(str(path))}));
        const [{{ name }}] = model.inputs;
        for (const values of Object.values(await model.run({{ [name]: new Float32Array(1) }})))
          console.log(Buffer.from(values.buffer).toString("base64"));
        """
    )
    for line, wanted in zip(said.split(), restored, strict=True):
        np.testing.assert_array_equal(np.frombuffer(base64.b64decode(line), np.float32), wanted)


@pytest.mark.parametrize("ending", ["wasm", "plan"])
def test_weights_of_8_bits_are_stored_without_computing_their_floats(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    levels = rng.integers(-128, 128, (96, 64), np.int8)
    scales = rng.random(64, np.float32)
    widened = []
    cast = host_evaluation._EVALUATE["cast"]

    def watched(host: Any, node: Any, srcs: Any) -> Any:
        widened.append(node.count)
        return cast(host, node, srcs)

    def model(x: Any) -> Any:
        scale = emberlet.asarray(scales, backend=x.backend)
        return x @ F.dequantize_linear(emberlet.asarray(levels, backend=x.backend), scale)

    monkeypatch.setitem(host_evaluation._EVALUATE, "cast", watched)
    path = tmp_path / f"model.{ending}"
    plan_file.save(str(path), model, emberlet.zeros((3, 96), dtype="float32", backend="numpy"))
    assert levels.size not in widened
    assert path.stat().st_size < 3 * levels.size or ending == "plan"
    if ending == "wasm":
        x = rng.standard_normal((3, 96), np.float32)
        (found,) = plan_file.load(str(path)).run(x)
        np.testing.assert_allclose(np.asarray(found), x @ (levels * scales), rtol=1e-4, atol=1e-3)


def test_an_unknown_encoding_of_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="float16 or q8"):
        weight = np.ones(2, np.float32)
        plan_file.save(
            str(tmp_path / "x.wasm"), lambda x: x + emberlet.asarray(weight, backend=x.backend), weight, weights="q3"
        )


def test_a_model_that_decides_by_values_is_refused(tmp_path: Path) -> None:
    def decides(x: Any) -> Any:
        return x + 1 if F.sum(x).item() > 0 else x - 1

    with pytest.raises(ModelError, match="control flow"):
        plan_file.save(str(tmp_path / "x.wasm"), decides, emberlet.asarray([1.0], backend="numpy"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("case", list(cases())[::7], ids=lambda case: case.id)
def test_saved_test_model_gives_onnxruntimes_outputs(case: Case, tmp_path: Path) -> None:
    import onnx

    model = codegen.load(case.model, backend="numpy")
    given = case.inputs()
    order = [i.name for i in onnx.load(case.model).graph.input if i.name in given]
    tensors = [emberlet.asarray(given[name], backend="numpy") for name in order]
    path = tmp_path / "model.wasm"
    try:
        plan_file.save(str(path), model, *tensors)
    except ModelError as error:  # two of the models branch on computed values
        assert "cannot be saved" in str(error) or "live on the GPU" in str(error)
        return
    found = plan_file.load(str(path)).run(*tensors)
    for (name, want), result in zip(case.outputs().items(), found, strict=True):
        got = np.asarray(result.to_tensor("numpy"))
        assert got.shape == want.shape, name
        atol = case.atol if want.dtype.kind == "f" else 1 if want.dtype.itemsize == 1 else 0
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), atol=atol, rtol=case.rtol)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], "an array or bytes .* but got list"),
        ("12345678", "an array or bytes .* but got str"),
        (np.array([1, 2], np.dtype("float32").newbyteorder()), "byte order"),
        (np.array([1 + 2j], np.complex64), "complex64"),
        (np.array(["a", "b"], "U1"), "got str"),
        (np.array([object()]), "got object"),
    ],
)
def test_what_is_not_of_the_inputs_dtype_is_refused(tmp_path: Path, given: Any, message: str) -> None:
    path = tmp_path / "double.wasm"
    plan_file.save(str(path), lambda x: x + x, emberlet.zeros((2,), dtype="float32"))
    plan = plan_file.load(str(path))
    with pytest.raises(FormatError, match=message):
        plan.run(given)
    assert plan.run(np.array([4, 1, 2], np.float32)[2:0:-1])[0].to_list() == [4, 2]


def test_a_model_of_strings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="input 0"):
        plan_file.save(str(tmp_path / "x.wasm"), lambda x: x, emberlet.asarray(["a", "b"], backend="numpy"))
    assert not list(tmp_path.iterdir())


def endless(digits: Path, start: bool = False) -> bytes:
    """The model's file with a `run` that never ends, or with a start function."""
    whole = digits.read_bytes()
    found = sections.sections(whole)
    content = next(json.loads(whole[a:b]) for _, name, a, b, _ in found if name == "emberlet")
    content.pop("checksum")
    f = assembler.Function("run", ())
    if not start:
        f.begin_loop()
        f.branch_if(assembler.i32(1), 0)
        f.end()
    pages = 1 + max(at + size for _, _, _, at, size in content["inputs"] + content["outputs"]) // 65536
    made = assembler.module([("run", f.finish())], ["run"], pages, [("emberlet", json.dumps(content).encode())])
    if not start:
        return made
    number = next(begin for n, _, _, _, begin in sections.sections(made) if n == 10)
    return made[:number] + b"\x08\x01\x00" + made[number:]


def test_a_run_that_does_not_end_is_ended(digits: Path) -> None:
    plan = plan_file.load(endless(digits))
    before = wasm.set_seconds(0.3)
    try:
        with pytest.raises(BackendError, match=r"emberlet\.wgpu_backend\.wasm\.set_seconds"):
            plan.run(image())
    finally:
        assert wasm.set_seconds(before) == 0.3


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_ctrl_c_ends_a_run(digits: Path, tmp_path: Path, in_a_loop: bool) -> None:
    (tmp_path / "endless.wasm").write_bytes(endless(digits))
    script = (
        "import asyncio, os, signal, sys, threading\nimport numpy as np\nfrom emberlet.wgpu_backend import plan_file\n"
        # A background process of a shell ignores SIGINT, and so do its children, unless they say otherwise.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nplan = plan_file.load(sys.argv[1])\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "async def in_a_loop():\n    plan.run(np.zeros((1, 1, 8, 8), np.float32))\n"
        "try:\n    asyncio.run(in_a_loop()) if len(sys.argv) > 2 else plan.run(np.zeros((1, 1, 8, 8), np.float32))\n"
        "except (KeyboardInterrupt, asyncio.CancelledError) as error:\n    print('ended')\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "endless.wasm"), *["loop"] * in_a_loop]
    done = ran(*command)
    assert "ended" in done.stdout or (in_a_loop and "it was interrupted" in done.stdout), done.stdout + done.stderr


def test_a_file_that_runs_as_it_is_loaded_is_refused(digits: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="it has a start function"):
        plan_file.load(endless(digits, start=True))
    (tmp_path / "x.wasm").write_bytes(endless(digits, start=True))
    said = in_node(
        f"await load(readFileSync({json.dumps(str(tmp_path / 'x.wasm'))})).catch(e => console.log(e.message));"
    )
    assert "has a start function" in said


@pytest.mark.parametrize("count, taken", [(4000, True), (100_000, False)])
def test_a_file_of_many_empty_functions_is_refused_before_it_is_compiled(
    digits: Path, count: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = digits.read_bytes()
    data = next(whole[a:b] for _, name, a, b, _ in sections.sections(whole) if name == "emberlet")
    content = {key: value for key, value in json.loads(data).items() if key != "checksum"}
    pages = 1 + max(at + size for _, _, _, at, size in content["inputs"] + content["outputs"]) // 65536
    empty = assembler.Function("run", ()).finish()
    functions = [("run", empty)] + [(f"f{i}", empty) for i in range(count - 1)]
    made = assembler.module(functions, ["run"], pages, [("emberlet", json.dumps(content).encode())])
    if taken:
        plan_file.load(made)
        return
    monkeypatch.setattr(engine, "opened", lambda module: pytest.fail("it is compiled"))
    with pytest.raises(FormatError, match=r"it has 100000 functions in \d+ bytes, which take too much memory"):
        plan_file.load(made)


def test_the_memory_of_a_file_cannot_grow(digits: Path) -> None:
    instance = engine.opened(digits.read_bytes()).instance()
    with pytest.raises(Exception, match="failed to grow"):
        instance.memory.grow(instance.store, 1)


def test_a_file_larger_than_browsers_accept_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.wasm"
    given = emberlet.zeros((3,), dtype="float32", backend="python")
    plan_file.save(str(path), lambda x: x + 1, given)
    size = path.stat().st_size
    monkeypatch.setattr(writer, "MOST", size)
    plan_file.save(str(path), lambda x: x + 1, given)
    monkeypatch.setattr(writer, "MOST", size - 1)
    with pytest.raises(ModelError, match=f"{size} bytes.* {size - 1}"):
        plan_file.save(str(path), lambda x: x + 1, given)
