"""Module: finding parameters among the attributes, mapping them, records in and out, printing."""

from dataclasses import dataclass
from typing import Any

import emberlet as el
import pytest
from emberlet.burnpack import Burnpack
from emberlet.errors import ArgumentError, DTypeError, EmberletError, LoadError, UnsupportedError
from emberlet.module import Module
from emberlet.module.display import DisplaySettings
from emberlet.module.record import Record
from emberlet.param import Param


def full(value):
    return lambda shape, dtype, backend: el.full(shape, value, dtype=dtype, device=backend)


class Scale(Module):
    """y = x * factor + offset, with as many numbers as it is told."""

    def __init__(self, n, value=1.0, dtype=None):
        self.factor = Param.uninitialized(full(value), (n,), dtype)
        self.offset = Param.uninitialized(full(0.0), (n,), dtype)

    def forward(self, x):
        return x * self.factor.val() + self.offset.val()


class Nest(Module):
    def __init__(self):
        self.first = Scale(2)
        self.blocks = [Scale(3), [Scale(4)], (Scale(5), None)]
        self.heads = {"cls": Scale(6), "box": None}
        self.choice = Scale(7)
        self.nothing = None
        self.constant = el.ones((9,))
        self.steps = 3
        self.loose = Param(el.ones((8,)))


NEST = [
    "first.factor", "first.offset", "blocks.0.factor", "blocks.0.offset", "blocks.1.0.factor", "blocks.1.0.offset",
    "blocks.2.0.factor", "blocks.2.0.offset", "heads.cls.factor", "heads.cls.offset", "choice.factor", "choice.offset",
    "loose",
]  # fmt: skip


def none_initialized(module):
    return not any(p.is_initialized for p in module.params())


def test_a_module_without_forward_says_so():
    with pytest.raises(UnsupportedError, match="Nest has no forward"):
        Nest()(1)


def test_parameters_are_found_to_any_depth_and_named_by_their_path():
    assert [name for name, _ in Nest().named_params()] == NEST


def test_a_plain_tensor_is_a_constant_and_not_in_records():
    assert "constant" not in Nest().to_record()


def test_parameters_are_counted_without_being_made():
    nest = Nest()
    nest.loose = Scale(1)
    assert nest.num_params() == 2 * (2 + 3 + 4 + 5 + 6 + 7) + 2
    assert none_initialized(nest)


def test_a_shared_parameter_counts_once_and_has_every_name():
    a, b = Scale(2), Scale(2)
    b.factor = a.factor
    both = Module()
    both.a, both.b = a, b
    assert both.num_params() == 6
    assert [name for name, _ in both.named_params()] == ["a.factor", "a.offset", "b.factor", "b.offset"]


def test_a_child_that_knows_its_parent_is_no_endless_loop():
    parent = Scale(2)
    parent.child = Scale(3)
    parent.child.parent = parent
    assert [n for n, _ in parent.named_params()] == ["factor", "offset", "child.factor", "child.offset"]


@pytest.mark.parametrize("as_object", [False, True])
def test_visit_sees_every_parameter_and_initializes_none(as_object):
    seen = []

    class Visitor:
        def visit(self, name, param):
            seen.append((name, param.shape))

    nest = Nest()
    nest.loose = None
    nest.visit(Visitor() if as_object else Visitor().visit)
    assert seen[:2] == [("first.factor", (2,)), ("first.offset", (2,))]
    assert len(seen) == len(NEST) - 1
    assert none_initialized(nest)


@pytest.mark.parametrize("as_object", [False, True])
def test_map_gives_a_copy_with_new_values_and_the_same_identities(as_object):
    class Mapper:
        def map(self, name, tensor):
            return tensor + (1 if name.endswith("factor") else 2)

    module = Scale(2)
    module.constant = el.zeros((1,))
    before = [p.val().tolist() for p in module.params()]
    mapped = module.map(Mapper() if as_object else Mapper().map)
    assert type(mapped) is Scale and mapped.constant is not module.constant
    assert mapped.factor.val().tolist() == [2.0, 2.0]
    assert mapped.offset.val().tolist() == [2.0, 2.0]
    assert [p.id for p in mapped.params()] == [p.id for p in module.params()]
    assert [p.val().tolist() for p in module.params()] == before


def test_a_mapper_that_returns_its_argument_shares_no_elements():
    module = Scale(2)
    same = module.map(lambda name, tensor: tensor)
    same.factor.val()[0] = 7
    assert module.factor.val().tolist() == [1.0, 1.0]


def test_a_mapper_that_assigns_in_place_does_not_change_the_module():
    layer = el.nn.Linear(4, 3, backend="python")
    before = layer.weight.val().tolist()

    def first_is_nine(name, x):
        x[0] = 9
        return x

    made = layer.map(first_is_nine)
    assert layer.weight.val().tolist() == before
    assert made.weight.val().tolist()[0] == [9.0] * len(before[0])


class BurnStyle:
    """Burn's ModuleVisitor and ModuleMapper: methods by kind, given the identity and the tensor."""

    def __init__(self):
        self.seen = []

    def visit_float(self, id, tensor):
        self.seen.append((id, tensor.tolist()))

    def map_float(self, id, tensor):
        self.seen.append((id, tensor.tolist()))
        return tensor * 3


@pytest.mark.parametrize("verb", ["visit", "map"])
def test_burns_visitors_and_mappers_are_given_identities_and_tensors_of_their_kind(verb):
    module = Scale(2)
    module.steps = Param(el.asarray([4], dtype="int32"))
    given = BurnStyle()
    result = getattr(module, verb)(given)
    assert given.seen == [(p.id, p.val().tolist()) for p in (module.factor, module.offset)]
    if verb == "map":
        assert [result.factor.val().tolist(), result.steps.val().tolist()] == [[3.0, 3.0], [4]]
    with pytest.raises(ArgumentError, match=f"{verb} takes a function"):
        getattr(module, verb)(object())


def test_map_changes_a_shared_parameter_once_and_keeps_it_shared():
    module = Module()
    module.a = module.b = Param(el.zeros((1,)))
    mapped = module.map(lambda name, tensor: tensor + 1)
    assert mapped.a is mapped.b and mapped.a.val().tolist() == [1.0]


def test_backends_are_known_without_making_anything():
    module = Scale(2)
    assert module.backends() == [el.get_backend()]
    module.offset.to("python")
    assert [repr(b) for b in module.backends()] == ["numpy", "python"]
    assert none_initialized(module)


def test_to_moves_parameters_and_constants_and_keeps_lazy_ones_lazy():
    nest = Nest()
    pair = nest.blocks[2]
    nest.tensors = (el.ones((1,)), {"k": el.ones((1,))})
    assert nest.to("python") is nest
    assert [repr(b) for b in nest.backends()] == ["python"]
    assert repr(nest.constant.backend) == repr(nest.tensors[0].backend) == "python"
    assert not nest.first.factor.is_initialized
    assert repr(nest.loose.val().backend) == "python"
    assert nest.blocks[2][0] is pair[0]
    assert nest.first.factor.val().tolist() == [1.0, 1.0]


def test_fork_leaves_the_original_where_it_is():
    nest = Nest()
    fork = nest.fork("python")
    assert [repr(b) for b in nest.backends()] == ["numpy"]
    assert [repr(b) for b in fork.backends()] == ["python"]
    assert [p.id for p in fork.params()] == [p.id for p in nest.params()]


def test_an_object_of_tensors_moves_too():
    class Starting(Module):
        def __init__(self):
            self.start = el.nn.LstmState(el.zeros((1, 2)), el.ones((1, 2)))

    module = Starting()
    fork = module.fork("python")
    assert repr(module.start.cell.backend) == "numpy" and module.clone().start is not module.start
    assert (repr(fork.start.cell.backend), repr(fork.start.hidden.backend)) == ("python", "python")
    assert fork.start.hidden.tolist() == [[1.0, 1.0]]
    moved = module.start
    assert module.to("python").start is moved and repr(moved.cell.backend) == "python"


def test_a_frozen_object_of_tensors_moves_too():
    @dataclass(frozen=True)
    class Range:
        low: Any

    class Limited(Module):
        def __init__(self):
            self.range = Range(el.ones((2,)))

    module = Limited()
    assert repr(module.fork("python").range.low.backend) == "python"
    assert repr(module.range.low.backend) == "numpy"


def test_a_clone_has_its_own_params_and_containers_and_keeps_sharing():
    nest = Nest()
    nest.again = nest.first.factor
    other = nest.clone()
    other.first.factor.set(el.zeros((2,)))
    other.blocks.append(Scale(1))
    other.heads["box"] = Scale(1)
    assert not nest.first.factor.is_initialized
    assert len(nest.blocks) == 3
    assert nest.heads["box"] is None
    assert other.again is other.first.factor
    assert other.steps == 3
    assert type(other) is Nest


# -- records ----------------------------------------------------------------------------------------------------------


def test_a_record_carries_values_and_identities_to_another_module():
    source = Nest().map(lambda name, tensor: tensor + len(name))
    target = Nest()
    assert target.load_record(source.to_record()) is target
    assert target.heads["cls"].factor.val().tolist() == [17.0] * 6
    assert [p.id for p in target.params()] == [p.id for p in source.params()]


def test_saving_and_loading_a_file_keeps_values_and_identities(tmp_path):
    source = Nest().map(lambda name, tensor: tensor * 0.1)
    size = source.save_file(tmp_path / "nest", metadata={"by": "test"})
    assert size == (tmp_path / "nest.bpk").stat().st_size
    assert Burnpack.from_file(tmp_path / "nest").metadata == {"by": "test", "emberlet.layout": "burn"}
    target = Nest()
    target.load_file(tmp_path / "nest")
    assert [p.id for p in target.params()] == [p.id for p in source.params()]
    assert [p.val().tolist() for p in target.params()] == [p.val().tolist() for p in source.params()]


def test_loading_never_runs_an_initializer(tmp_path):
    Scale(2).save_file(tmp_path / "m")
    module = Scale(2)

    def fail(*_):
        raise AssertionError("initialized")

    module.factor = Param.uninitialized(fail, (2,))
    module.load_file(tmp_path / "m")
    assert module.factor.val().tolist() == [1.0, 1.0]


def test_a_shared_parameter_is_stored_once_and_loads_from_either_name(tmp_path):
    def shared():
        module = Module()
        module.a = module.b = Param(el.asarray([3.0]))
        return module

    shared().save_file(tmp_path / "m")
    pack = Burnpack.from_file(tmp_path / "m")
    assert pack.tensors["a"].start == pack.tensors["b"].start
    target = shared()
    target.load_record({"b": el.asarray([4.0])})
    assert target.a.val().tolist() == [4.0]


def test_every_problem_is_listed_at_once_and_nothing_is_loaded():
    module = Scale(2)
    module.count = Param(el.zeros((1,), dtype=el.int64))
    module.more = Param(el.zeros((1,)))
    record = {"factor": el.ones((3,)), "offset": el.ones((2,)), "count": el.ones((1,)), "x": el.ones((1,))}
    with pytest.raises(LoadError) as error:
        module.load_record(record)
    assert str(error.value).split("\n") == [
        "the weights do not fit Scale; nothing was loaded",
        "  missing: more",
        "  unexpected: x",
        "  factor: shape (3,) where the module has (2,)",
        "  count: float32 where the module has int64",
    ]
    assert not module.offset.is_initialized


def test_loading_part_of_a_record_keeps_the_rest():
    module = Scale(2).load_record({"factor": el.zeros((2,)), "x": el.ones((1,))}, strict=False)
    assert module.factor.val().tolist() == [0.0, 0.0]
    assert not module.offset.is_initialized


def test_another_shape_is_refused_also_when_loading_part():
    with pytest.raises(LoadError, match="factor: shape"):
        Scale(2).load_record({"factor": el.zeros((3,))}, strict=False)


@pytest.mark.parametrize(
    ("precision", "floats", "integers"),
    [("double", "float64", "int64"), ("full", "float32", "int32"), ("half", "float16", "int16"),
     ("bfloat16", "bfloat16", "int16"), (None, "float32", "int64")],
)  # fmt: skip
def test_the_precision_saved_is_independent_of_the_one_computed_in(tmp_path, precision, floats, integers):
    module = Module()
    module.weight = Param(el.asarray([0.5, -2.0]))
    module.index = Param(el.asarray([1, 300], dtype=el.int64))
    module.byte = Param(el.asarray([1, 200], dtype=el.uint8))
    module.save_file(tmp_path / "m", precision)
    stored = Burnpack.from_file(tmp_path / "m").tensors
    assert {n: str(e.dtype) for n, e in stored.items()} == {"weight": floats, "index": integers, "byte": "uint8"}
    loaded = module.clone().map(lambda name, tensor: tensor * 0)
    loaded.load_file(tmp_path / "m")
    assert loaded.weight.val().dtype is el.float32
    assert loaded.weight.val().tolist() == [0.5, -2.0]
    assert loaded.index.val().dtype is el.int64
    assert loaded.index.val().tolist() == [1, 300]


def test_an_integer_that_does_not_fit_is_not_saved_wrong(tmp_path):
    module = Module()
    module.index = Param(el.asarray([70000], dtype=el.int64))
    with pytest.raises(DTypeError, match=r"'index'.*int16"):
        module.save_file(tmp_path / "m", "half")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DTypeError, match=r"'index'.*int16"):
        module.to_record().with_precision("half")


def test_an_unknown_precision_is_refused_with_those_there_are():
    with pytest.raises(DTypeError, match=r"'quarter'.*bfloat16"):
        Scale(1).to_record().with_precision("quarter")


def test_a_record_in_another_precision_keeps_sharing():
    t = el.asarray([1.0])
    record = Record({"a": t, "b": t}).with_precision("half")
    assert record["a"] is record["b"]
    assert record["a"].dtype is el.float16


def test_save_and_load_mappers_work_on_files(tmp_path):
    module = Scale(2)
    module.factor.save_mapper(lambda t: t + 1).load_mapper(lambda t: t * 10)
    module.save_file(tmp_path / "m")
    module.load_file(tmp_path / "m")
    assert module.factor.val().tolist() == [20.0, 20.0]


def test_two_parameters_of_one_name_are_refused():
    module = Module()
    module.heads = {"a.b": Param(el.ones((1,))), "a": {"b": Param(el.ones((1,)))}}
    with pytest.raises(EmberletError, match=r"Module.*'heads.a.b'"):
        module.to_record()


def test_a_record_reads_like_a_dict():
    record = Scale(2).to_record()
    assert list(record) == list(record.keys()) == ["factor", "offset"]
    assert len(record) == 2
    assert "factor" in record
    assert [name for name, _ in record.items()] == ["factor", "offset"]
    assert repr(record) == "Record(factor, offset)"


# -- printing ---------------------------------------------------------------------------------------------------------


class Layer(Module):
    SHOWN = "size rate padding"

    def __init__(self):
        self.size = (3, 3)
        self.rate = 0.5
        self.padding = ((1, 1), (2, 2))
        self.weight = Param.uninitialized(full(0.0), (3, 3))


class Plain(Module):
    pass


def test_a_layer_prints_optional_attributes_where_they_are_not_none():
    class Bounded(Module):
        SHOWN = "low? high?"
        low, high = None, 0

    assert repr(Bounded()) == "Bounded {high: 0}"


def test_a_module_prints_like_the_books():
    model = Module()
    model.layer = Layer()
    model.stack = [Layer(), Plain()]
    model.bias = Param(el.zeros((2, 2)))
    model.activation = Plain()
    model.hidden = 4
    assert repr(model) == (
        "Module {\n"
        "  layer: Layer {size: [3, 3], rate: 0.5, padding: Explicit(1, 2), params: 9}\n"
        "  stack: list {\n"
        "    0: Layer {size: [3, 3], rate: 0.5, padding: Explicit(1, 2), params: 9}\n"
        "    1: Plain\n"
        "    params: 9\n"
        "  }\n"
        "  bias: Tensor {rank: 2, shape: [2, 2], kind: float}\n"
        "  activation: Plain\n"
        "  params: 22\n"
        "}"
    )
    assert not model.layer.weight.is_initialized


def test_display_can_be_customized():
    class Custom(Module):
        def __init__(self):
            self.inner = Scale(2)
            self.other = Scale(3)

        def custom_settings(self):
            return DisplaySettings().with_show_num_parameters(False).with_indentation_size(4)

        def custom_content(self, content):
            return content.add("inner", self.inner).add("anything", "anything_else")

    assert repr(Custom()) == (
        "Custom {\n"
        "    inner: Scale {\n"
        "        factor: Tensor {rank: 1, shape: [2], kind: float}\n"
        "        offset: Tensor {rank: 1, shape: [2], kind: float}\n"
        "    }\n"
        "    anything: anything_else\n"
        "}"
    )


def test_all_attributes_on_one_line_with_ids():
    class Custom(Module):
        def __init__(self):
            self.weight = Param(el.zeros((2,)), id=0)
            self.flag = True
            self.nothing = None

        def custom_settings(self):
            settings = DisplaySettings().with_show_all_attributes(True).with_show_param_id(True)
            return settings.with_new_line_after_attribute(False)

    assert repr(Custom()) == (
        "Custom {weight: Tensor {rank: 1, shape: [2], kind: float, id: 0000000000000}, flag: true, nothing: none, "
        "params: 2}"
    )
