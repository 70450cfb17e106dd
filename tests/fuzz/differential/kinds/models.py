"""Random ONNX models through generated code, against onnxruntime and ONNX's reference.

One to three nodes, each of any operator of the standard that computes the same twice, drawn from its schema: attributes
at random, optional inputs absent, constant or dynamic, ranks 0 to 5, unit and empty axes, opsets 7 to 23. Inputs that
hold shapes, axes, sizes and indices get numbers that often fit. Models that onnxruntime refuses are not compared, but
reading them must end in code or in an error of the EmberletError family, raised on purpose.

**Tolerances.** Integers, bools, strings, dtypes and shapes are equal; floats are within 1e-5 + 1e-4 * |expected| of the
largest magnitude of their tensor for float32 and float64, 1e-2 for float16. A result is right if it agrees with
onnxruntime or with ONNX's reference: only a difference from both counts, or from the only one that gives a result.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from emberlet.codegen import load
from emberlet.codegen.onnx_backend import to_array, to_tensor
from emberlet.errors import EmberletError
from onnx import helper, numpy_helper

from .. import structured
from ..left_open import left_open
from ..onnxruntime_process import outputs

NEEDS: tuple[str, ...] = ()
DTYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(float16)": np.float16,
}  # fmt: skip
LEFT_OUT = {
    # random
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout",
    # no tensor to compare, or no input
    "ImageDecoder", "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement",
    "OptionalHasElement", "Constant",
    # drawn by structured.py
    "If", "Loop", "Scan", "StringNormalizer", "TfIdfVectorizer", "RegexFullMatch", "StringConcat", "StringSplit",
    "LSTM", "GRU", "RNN", "Attention", "Unique", "STFT", "DFT", "MelWeightMatrix", "MaxUnpool", "NonMaxSuppression",
    "RoiAlign", "DeformConv",
    "MaxRoiPool",  # onnxruntime's rounding of regions is its own, and the reference has no such operator
    "CastLike",  # a function of Cast
}  # fmt: skip

WORDS = {
    "auto_pad": ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"], "direction": ["LEFT", "RIGHT"],
    "reduction": ["none", "add", "mul", "max", "min", "mean", "sum"], "approximate": ["none", "tanh"],
    "padding_mode": ["zeros", "border", "reflection"], "coordinate_transformation_mode": [
        "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"],
    "nearest_mode": ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"],
    "mode": ["constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "bilinear", "DCR", "CRD"],
    "equation": ["ij->ji", "ij,jk->ik", "bij,bjk->bik", "i,j->ij", "ii->i", "...i->...", "ij->"],
}  # fmt: skip
POSITIVE = {"Div", "Mod", "BitShift", "Pow"}  # integers by zero end onnxruntime's process


class Input(NamedTuple):
    name: str
    array: Any
    constant: bool


class Step(NamedTuple):
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...]


class Case(NamedTuple):
    opset: int
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    backend: str


# -- drawing ----------------------------------------------------------------------------------------------------------


@cache
def operators(opset: int) -> list[Any]:
    """The schemas of the standard's operators at an opset, by name."""
    names = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""} - LEFT_OUT)
    found = []
    for name in names:
        try:
            schema = onnx.defs.get_schema(name, opset, "")
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated and not name.startswith("Sequence"):
            found.append(schema)
    return found


def draw(choose: random.Random) -> Case | None:
    opset = choose.choice([7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23])
    rank = choose.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5])
    shape = tuple(choose.choice([1, 1, 2, 2, 3, 4, 5] + [0] * (choose.random() < 0.15)) for _ in range(rank))
    inputs: list[Input] = []
    steps: list[Step] = []
    known: dict[str, Any] = {}  # value -> dtype, of what a later node may read
    count = choose.choice([1, 1, 2, 3])
    if choose.random() < 0.25:
        step = _structured(choose, opset, inputs, known)
        if step is None:
            return None
        steps.append(step)
        shape = inputs[0].array.shape
        count = choose.choice([0, 0, 0, 1])
    for _ in range(count):
        step = _step(choose, choose.choice(operators(opset)), shape, inputs, known, len(steps))
        if step is None:
            return None
        steps.append(step)
    if all(i.constant for i in inputs):
        inputs = [inputs[0]._replace(constant=False), *inputs[1:]] if inputs else inputs
    return Case(opset, tuple(inputs), tuple(steps), choose.choice(["numpy", "numpy", "python"]))


def _structured(choose: random.Random, opset: int, inputs: list[Input], known: dict[str, Any]) -> Step | None:
    """A node of structured.py as the first one."""
    drawn = choose.choice(structured.DRAWERS)(choose, opset)
    if drawn is None:
        return None
    operator, arrays, attributes, count = drawn
    names: list[str] = []
    for place, array in enumerate(arrays):
        if array is None:
            names.append("")
            continue
        names.append(f"i{len(inputs)}")
        inputs.append(Input(names[-1], array, bool(place) and choose.random() < 0.6))
    if operator.endswith("*"):  # tensors that the subgraphs read are not inputs of the node
        operator, names = operator[:-1], names[1:]
    while names and names[-1] == "":
        names.pop()
    outputs = tuple(f"o0_{i}" for i in range(count))
    first = inputs[0].array.dtype
    if first == np.float32 and operator not in ("Unique", "NonMaxSuppression"):
        known[outputs[0]] = np.float32
    return Step(operator, tuple(names), outputs, tuple(sorted(attributes.items())))


def _step(choose: random.Random, schema: Any, shape: Any, inputs: Any, known: Any, number: int) -> Step | None:
    bound: dict[str, Any] = {}
    names: list[str] = []
    formals = list(schema.inputs)
    if formals and formals[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic:
        formals = formals[:-1] + [formals[-1]] * choose.choice([1, 1, 2, 3])
    for place, formal in enumerate(formals):
        optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if optional and choose.random() < 0.5:
            names.append("")
            continue
        allowed = [DTYPES[t] for t in sorted(formal.types) if t in DTYPES]
        if not allowed:
            return None
        dtype = bound.get(formal.type_str)
        if dtype is None:
            dtype = np.float32 if np.float32 in allowed and choose.random() < 0.6 else choose.choice(allowed)
            bound[formal.type_str] = dtype
        earlier = [v for v, d in known.items() if d is dtype or d is None]
        if earlier and choose.random() < (0.9 if place == 0 else 0.2):
            names.append(choose.choice(earlier))
            continue
        name = f"i{len(inputs)}"
        array = _array(choose, schema.name, formal.name, place, dtype, shape)
        inputs.append(Input(name, array, choose.random() < (0.2 if place == 0 else 0.6)))
        if place == 0:
            known[name] = dtype
        names.append(name)
    while names and names[-1] == "":
        names.pop()
    outputs = []
    for i, formal in enumerate(schema.outputs):
        if i and (formal.option != onnx.defs.OpSchema.FormalParameterOption.Single and choose.random() < 0.5):
            break
        outputs.append(f"o{number}_{i}")
        known[outputs[-1]] = bound.get(formal.type_str, DTYPES.get(formal.type_str))
    attributes = []
    for name, attribute in sorted(schema.attributes.items()):
        if attribute.required or choose.random() < 0.35:
            value = _attribute(choose, name, attribute, len(shape))
            if value is not None:
                attributes.append((name, value))
    if dict(attributes).get("auto_pad", "NOTSET") != "NOTSET":
        attributes = [(k, v) for k, v in attributes if k != "pads"]
    attributes = [(k, len(outputs) if k == "num_outputs" else v) for k, v in attributes]
    arrays = {i.name: i.array for i in inputs}
    if left_open(schema.name, [arrays.get(n) for n in names], list(bound.values()), dict(attributes)):
        return None
    return Step(schema.name, tuple(names), tuple(outputs), tuple(attributes))


SMALL = {"axes", "axis", "shape", "repeats", "starts", "ends", "steps", "pads", "split", "K", "k", "depth", "indices",
         "sizes", "scales", "output_shape", "size", "block_shape", "image_shape"}  # fmt: skip


def _array(choose: random.Random, operator: str, name: str, place: int, dtype: Any, shape: tuple[int, ...]) -> Any:
    seed = np.random.default_rng(choose.randrange(1 << 30))
    rank = len(shape)
    if place and name in SMALL:
        count = choose.choice([rank, rank, 1, 1, 2, 2 * rank, 0])
        low, high = (
            (0, 4) if name in ("shape", "repeats", "sizes", "depth", "size", "output_shape") else (-rank, rank + 1)
        )
        if name in ("K", "k", "depth"):
            return np.asarray(choose.randrange(4), dtype).reshape(choose.choice([(), (1,)]))
        if name == "scales":
            return seed.choice([0.5, 1.0, 1.5, 2.0], rank).astype(dtype)
        if name == "indices":
            sizes = (
                shape if choose.random() < 0.5 else tuple(choose.choice([1, 2, 3]) for _ in range(choose.randrange(3)))
            )
            return seed.integers(0, max(1, min(shape, default=1)), sizes).astype(dtype)
        if name == "steps":
            return seed.choice([1, 1, 2, -1], count).astype(dtype)
        if name == "shape" and choose.random() < 0.5:
            return np.asarray(choose.choice([shape, shape[::-1], (-1,), (1, *shape)]), dtype)
        return seed.integers(low, max(high, low + 1), count).astype(dtype)
    sizes = shape
    if place:
        kind = choose.random()
        if kind < 0.25:
            sizes = tuple(d if choose.random() < 0.6 else 1 for d in shape)
        elif kind < 0.4 and rank:
            sizes = shape[choose.randrange(rank + 1) :]
        elif kind < 0.5 and rank >= 2:
            sizes = (*shape[:-2], shape[-1], choose.choice([1, 2, 3]))
        elif kind < 0.6 and rank >= 3:
            sizes = (choose.choice([1, 2, 4]), shape[1], *(choose.choice([1, 2, 3]) for _ in shape[2:]))
        elif kind < 0.7 and rank >= 2:
            sizes = (shape[1],)
        elif kind < 0.75:
            sizes = ()
    if dtype is np.bool_:
        return seed.integers(0, 2, sizes).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        low = 1 if operator in POSITIVE else 0 if np.dtype(dtype).kind == "u" else -4
        return seed.integers(low, 6, sizes).astype(dtype)
    values = seed.standard_normal(sizes)
    if choose.random() < 0.2:
        values = np.round(values * 2)
    if place and "scale" in name:
        values = np.abs(values) + 0.25  # what is divided by
    return values.astype(dtype)


def _attribute(choose: random.Random, name: str, attribute: Any, rank: int) -> Any:
    kind = attribute.type
    kinds = onnx.defs.OpSchema.AttrType
    spatial = max(rank - 2, 1)
    if kind == kinds.INT:
        if name in ("axis", "batch_axis", "time_axis", "seq_axis"):
            return choose.randrange(-rank, rank) if rank else choose.choice([0, -1])
        if name in ("to", "dtype"):
            return choose.choice([1, 6, 7, 9, 2, 3, 11, 10])
        if name in ("group", "blocksize", "num_groups", "p", "size", "num_outputs", "batch_dims"):
            return choose.choice([1, 1, 2, 3])
        return choose.choice([0, 1])
    if kind == kinds.FLOAT:
        return choose.choice([0.0, 0.5, 1.0, -1.0, 2.0, 1e-5])
    if kind == kinds.STRING:
        return choose.choice(WORDS[name]) if name in WORDS else None
    if kind == kinds.INTS:
        if name == "perm":
            return choose.sample(range(rank), rank)
        if name == "pads":
            return [choose.choice([0, 0, 1, 2]) for _ in range(2 * choose.choice([spatial, spatial, rank]))]
        if name in ("kernel_shape", "strides", "dilations"):
            return [choose.choice([1, 1, 2, 3]) for _ in range(spatial)]
        if name == "axes":
            return choose.sample(range(rank), choose.randint(0, rank)) if rank else None
        return [choose.choice([0, 1, 2]) for _ in range(choose.choice([1, spatial, rank]))]
    if kind == kinds.FLOATS:
        return [choose.choice([0.5, 1.0, 2.0]) for _ in range(rank)]
    return None


# -- comparing --------------------------------------------------------------------------------------------------------


def model(case: Case) -> onnx.ModelProto:
    nodes = [helper.make_node(s.operator, s.inputs, s.outputs) for s in case.steps]
    for node, step in zip(nodes, case.steps, strict=True):
        kinds = {k: onnx.AttributeProto.INTS for k, v in step.attributes if v == []}
        node.attribute.extend(helper.make_attribute(k, v, attr_type=kinds.get(k)) for k, v in step.attributes)
    infos = [
        helper.make_tensor_value_info(i.name, helper.np_dtype_to_tensor_dtype(i.array.dtype), i.array.shape)
        for i in case.inputs
        if not i.constant
    ]
    outputs = [onnx.ValueInfoProto(name=o) for s in case.steps for o in s.outputs]
    constants = [numpy_helper.from_array(i.array, i.name) for i in case.inputs if i.constant]
    graph = helper.make_graph(nodes, "drawn", infos, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)


def difference(case: Case) -> str:
    made = model(case)
    fed = {i.name: i.array for i in case.inputs if not i.constant}
    ours, error = _ours(made, fed, case.backend)
    runtime, reference = outputs(made.SerializeToString(), fed), _reference(made, fed)
    if error.startswith(("READ", "RAW")):
        return error
    if runtime is None:
        return ""  # the reference takes much that the standard does not allow
    if ours is None:
        # onnxruntime also takes more than the standard; both give results for empty tensors
        strict = reference is None or "is larger than input" in error
        return "" if strict else f"onnxruntime runs it, emberlet does not: {error}"
    said = [_unlike(made, ours, r) for r in (runtime, reference) if r is not None]
    return "" if "" in said else f"on {case.backend}: {said[0]}"


def _ours(made: Any, fed: Any, backend: str) -> tuple[list[Any] | None, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = load(made, backend)(*[to_tensor(x, backend) for x in fed.values()])
        return [to_array(x) for x in (found if isinstance(found, tuple) else (found,))], ""
    except EmberletError as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, EmberletError):
            return None, f"READ {type(error.__cause__).__name__} on the way: {error}"
        return None, str(error)
    except Exception as error:
        return None, f"RAW {type(error).__name__}: {error}"


def _reference(made: Any, fed: Any) -> list[Any] | None:
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return list(ReferenceEvaluator(made).run(None, fed))
    except Exception:
        return None


def _unlike(made: Any, ours: list[Any], theirs: list[Any]) -> str:
    for info, got, want in zip(made.graph.output, ours, theirs, strict=True):
        want = np.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{info.name} is {got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                return f"{info.name} is {got.tolist()!r:.200}, expected {want.tolist()!r:.200}"
            continue
        a, b = got.astype(np.float64), want.astype(np.float64)
        near = 1e-2 if want.dtype == np.float16 else 1e-4
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max(initial=0.0)
        with np.errstate(all="ignore"):
            lowest = (b <= -3.4e38) & ~(a > -3.4e38)  # onnxruntime's largest of nothing but NaN and -inf
            good = (
                lowest
                | (a == b)
                | (np.isnan(a) & np.isnan(b))
                | (np.abs(a - b) <= near * (0.1 + np.abs(b) + 0.1 * scale))
            )
        if not good.all():
            return f"{info.name} is {got.tolist()!r:.200}, expected {want.tolist()!r:.200}"
    return ""


# -- shrinking --------------------------------------------------------------------------------------------------------


def simpler(case: Case) -> Iterable[Case]:
    for k in range(len(case.steps) - 1, -1, -1):
        steps = case.steps[:k] + case.steps[k + 1 :]
        made = {o for s in case.steps[k : k + 1] for o in s.outputs}
        if steps and not any(n in made for s in steps for n in s.inputs):
            yield _tidy(case._replace(steps=steps))
    for k, step in enumerate(case.steps):
        for j in range(len(step.attributes)):
            less = step._replace(attributes=step.attributes[:j] + step.attributes[j + 1 :])
            yield case._replace(steps=(*case.steps[:k], less, *case.steps[k + 1 :]))
        if len(step.inputs) > 1:
            less = step._replace(inputs=step.inputs[:-1])
            yield _tidy(case._replace(steps=(*case.steps[:k], less, *case.steps[k + 1 :])))
        if len(step.outputs) > 1:
            less = step._replace(outputs=step.outputs[:-1])
            yield case._replace(steps=(*case.steps[:k], less, *case.steps[k + 1 :]))
    for k, i in enumerate(case.inputs):

        def put(new: Input, k: int = k) -> Case:
            return case._replace(inputs=(*case.inputs[:k], new, *case.inputs[k + 1 :]))

        for axis, n in enumerate(i.array.shape):
            if n > 1:
                yield put(i._replace(array=i.array.take(range(n // 2), axis)))
        simple = np.ones_like(i.array) if i.array.dtype.kind == "f" else i.array
        if not np.array_equal(simple, i.array):
            yield (
                put(i._replace(array=np.round(i.array)))
                if not np.array_equal(np.round(i.array), i.array)
                else put(i._replace(array=simple))
            )
        if i.constant:
            yield put(i._replace(constant=False))
    if case.backend != "numpy":
        yield case._replace(backend="numpy")


def _tidy(case: Case) -> Case:
    read = {n for s in case.steps for n in s.inputs}
    bodies = [v for s in case.steps for _, v in s.attributes if isinstance(v, onnx.GraphProto)]
    read |= {n for body in bodies for node in body.node for n in node.input}
    return case._replace(inputs=tuple(i for i in case.inputs if i.name in read))


def program(case: Case) -> str:
    """A program on a file with the model, which is written beside the working folder's other files."""
    path = Path(".cache") / "fuzz" / f"{'-'.join(s.operator for s in case.steps)}-{case.opset}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model(case), path)
    lines = [
        "import numpy as np, onnxruntime",
        "from emberlet.codegen import load",
        "from emberlet.codegen.onnx_backend import to_tensor",
        "",
        "# " + onnx.printer.to_text(model(case).graph).replace("\n", "\n# "),
        f"path, backend = {str(path)!r}, {case.backend!r}",
        "inputs = {",
        *(
            f"    {i.name!r}: np.array({i.array.tolist()!r}, np.{i.array.dtype.name}).reshape({i.array.shape}),"
            for i in case.inputs
            if not i.constant
        ),
        "}",
        "print(onnxruntime.InferenceSession(path).run(None, inputs))",
        "print(load(path, backend)(*[to_tensor(x, backend) for x in inputs.values()]))",
    ]
    return "\n".join(lines).replace("np.bool)", "np.bool_)")
