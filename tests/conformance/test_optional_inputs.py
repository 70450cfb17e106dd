"""Every operator with every subset of its optional inputs: omitted at the end, named "", constant, or an input.

The inputs' values are those of ONNX's cases. Results are compared with onnxruntime's if it runs the model, else with
ONNX's reference; a model that neither runs must be refused with a ModelError, or run.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from emberlet.backend import get_backend
from emberlet.codegen import load
from emberlet.codegen.ops import REGISTRY
from emberlet.errors import EmberletError
from onnx import defs, helper, numpy_helper
from support.rows import every

from .cases import _run, compare, node_cases

MOST = 48  # ways per case: all of them with up to two optional inputs, some of them with more
WAYS = ("off", "empty", "constant", "given")
Way = tuple[str, ...]
Array = np.ndarray[Any, np.dtype[Any]]

SEQUENCES = ("SequenceInsert", "SequenceErase")  # their inputs are not tensors
# onnxruntime crashes on a DFT without an axis, and differs from ONNX on this case of MaxUnpool, so the reference is
# used.
REFERENCE_HOLDS = ("test_dft", "test_maxunpool_export_with_output_shape")
DRAW = "test_bernoulli"  # a case with random values: its dtype and shape are compared
NOISE = {"STFT": 2e-4}  # the error of onnxruntime's transform where the exact result is 0
# Optional inputs that no case gives: case -> (input, its value for the other inputs).
DRAWN: dict[str, tuple[int, Callable[[list[Array]], Array]]] = {
    "test_basic_conv_with_padding": (2, lambda x: np.full(x[1].shape[0], 0.5, np.float32)),
    "test_convtranspose": (2, lambda x: np.full(x[1].shape[1], 0.5, np.float32)),
    "test_qlinearconv": (8, lambda x: np.full(x[3].shape[0], 7, np.int32)),
}


def optional(node: onnx.NodeProto, version: int) -> list[int]:
    """Which inputs an operator's schema calls optional."""
    schema = defs.get_schema(node.op_type, version, node.domain)
    kind: Any = defs.OpSchema.FormalParameterOption.Optional
    return [i for i, formal in enumerate(schema.inputs) if formal.option == kind]


def chosen() -> dict[str, list[str]]:
    """Operator -> the names of its cases, one for each set of inputs that cases give."""
    found: dict[str, dict[Any, str]] = {}
    for name, case in sorted(node_cases().items()):
        graph = case.model.graph
        if len(graph.node) != 1 or graph.initializer or case.model.functions:
            continue
        node = graph.node[0]
        if (node.domain, node.op_type) not in REGISTRY or any(a.HasField("g") for a in node.attribute):
            continue
        inputs, outputs = case.data_sets[0]
        if any(v is None or (isinstance(v, np.ndarray) and v.dtype == object) for v in (*inputs, *outputs)):
            continue
        places = optional(node, version_of(case.model, node.domain))
        given = tuple(i < len(node.input) and bool(node.input[i]) for i in places)
        if any(given) or name in DRAWN:
            found.setdefault(node.op_type, {}).setdefault((given, len(node.output)), name)
    return {op: list(names.values()) for op, names in found.items()}


def version_of(model: onnx.ModelProto, domain: str) -> int:
    return max(o.version for o in model.opset_import if o.domain == domain)


def ways(name: str) -> Iterator[Way]:
    """How each input of a case is passed; one that is not optional is a constant or an input of the model."""
    node = node_cases()[name].model.graph.node[0]
    places = optional(node, version_of(node_cases()[name].model, node.domain))
    choices: list[tuple[str, ...]] = []
    for i, key in enumerate(keys(name)):
        if not key:
            choices.append(("empty",))
        elif i in places:
            choices.append(WAYS)
        else:
            choices.append(("given", "constant") if i and node.op_type not in SEQUENCES else ("given",))
    every = [w for w in itertools.product(*choices) if _trails(w)]
    every = [w for w in every if sensible(name, node.op_type, w)]
    yield from every if len(every) <= MOST else random.Random(name).sample(every, MOST)


def keys(name: str) -> list[str]:
    """The names of a case's inputs, with the one that is drawn for it."""
    found = list(node_cases()[name].model.graph.node[0].input)
    if name in DRAWN:
        found += [""] * (DRAWN[name][0] - len(found)) + ["drawn"]
    return found


def _trails(way: Way) -> bool:
    """Whether only inputs at the end are left off."""
    return "off" not in way or set(way[way.index("off") :]) == {"off"}


def sensible(name: str, op: str, way: Way) -> bool:
    """Whether ONNX defines the operator with these inputs: some inputs need each other."""
    left = {i for i, how in enumerate(way) if how in ("constant", "given")}
    if op == "Attention":  # a past key needs its value, and a mask is as long as past and present together
        return (4 in left) == (5 in left) and (4 in left or len(way) < 5 or 3 not in left)
    if op == "Resize":
        return (2 in left or 3 in left) and ("crop" not in name or 1 in left)
    return True


def told(name: str, way: Way) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A case's model with its inputs passed in this way, and the values of the model's inputs."""
    case = node_cases()[name]
    graph = case.model.graph
    inputs = [v if isinstance(v, list) else np.asarray(v) for v in case.data_sets[0][0]]
    values = dict(zip([i.name for i in graph.input], inputs, strict=True))
    infos = list(graph.input)
    if name in DRAWN:
        values["drawn"] = DRAWN[name][1](inputs)
        kind = helper.np_dtype_to_tensor_dtype(values["drawn"].dtype)
        infos.append(helper.make_tensor_value_info("drawn", kind, values["drawn"].shape))
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[0])
    del node.input[:]
    constants, given = {}, {}
    for key, how in zip(keys(name), way, strict=True):
        if how != "off":
            node.input.append("" if how == "empty" else key)
        if how == "constant":
            constants[key] = values[key]
        elif how == "given":
            given[key] = values[key]
    proto = helper.make_graph(
        [node],
        "told",
        [i for i in infos if i.name in given],
        [helper.make_value_info(o.name, _rankless(o.type)) for o in graph.output],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    model = helper.make_model(proto, opset_imports=case.model.opset_import, ir_version=case.model.ir_version)
    return model, given


def _rankless(t: onnx.TypeProto) -> onnx.TypeProto:
    out = onnx.TypeProto()
    out.CopyFrom(t)
    if out.HasField("tensor_type"):
        out.tensor_type.ClearField("shape")  # a left-out input may give another shape
    return out


def right(name: str, model: onnx.ModelProto, given: dict[str, Array]) -> list[Any] | None:
    """onnxruntime's results, else those of ONNX's reference; None if neither runs the model."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        if name in REFERENCE_HOLDS:
            raise NotImplementedError
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found: list[Any] = session.run(None, given)
        return found
    except Exception:  # for any reason
        pass
    try:
        reference: list[Any] = ReferenceEvaluator(model).run(None, given)
        return reference
    except Exception:
        return None


OPERATORS = chosen()


@pytest.mark.filterwarnings("ignore")
@every("op", sorted(OPERATORS))
def test_every_subset_of_the_optional_inputs_gives_the_outputs_of_the_reference(op: str) -> None:
    failures, compared, backend = [], 0, get_backend("numpy")
    for name in OPERATORS[op]:
        for way in ways(name):
            model, given = told(name, way)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = right(name, model, given)
                try:
                    got = _run(load(model, backend), list(given.values()), backend)
                    if want is not None:
                        compared += 1
                        for g, w in zip(got, want, strict=True):
                            compare(DRAW if op == "Dropout" else name, g, w, 1e-3, NOISE.get(op, 1e-5))
                except Exception as error:  # every failure is reported, whatever it is
                    if want is not None or not isinstance(error, EmberletError):
                        failures.append(f"{name} {way}: {type(error).__name__}: {str(error)[:200]}")
    assert not failures, f"{len(failures)} of {compared} differ:\n" + "\n".join(failures)
    assert compared
