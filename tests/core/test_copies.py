"""Which objects own their elements, share them or copy them: parameters, modules, records, pickles."""

from __future__ import annotations

import copy
import inspect
import itertools
import multiprocessing
import pickle
import random
import threading
import warnings

import emberlet as el
import numpy as np
import pytest
from emberlet import Param, nn
from emberlet import functional as F
from emberlet.errors import EmberletError, LoadError
from emberlet.host.interface.declarations import read
from support.every_backend import EVERY
from support.rows import every


class Net(nn.Module):
    def __init__(self, backend=None):
        self.first = nn.Linear(2, 3, backend=backend)
        self.rest = [nn.Lstm(3, 4, backend=backend), {"norm": nn.BatchNorm(3, backend=backend)}]
        self.constant = el.ones((3,), backend=backend)
        self.child = nn.Relu()
        self.child.parent = self

    def forward(self, x):
        return self.child(self.first(x) + self.constant)


def _assigned(x):
    x[0] = 99
    return x


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize(
    "copied",
    [
        lambda p: p.clone().val(),
        lambda p: copy.copy(p).val(),
        lambda p: copy.deepcopy(p).val(),
        lambda p: pickle.loads(pickle.dumps(p)).val(),
        lambda p: p.saved(),
        lambda p: p.clone().to(p.backend).val(),
    ],
    ids=["clone", "copy", "deepcopy", "pickle", "saved", "to"],
)
def test_assigning_to_a_copy_of_a_param_leaves_the_param(backend, copied):
    param = Param(el.asarray([1.0, 2.0], backend=backend))
    _assigned(copied(param))
    assert param.val().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize(
    "copied",
    [
        lambda m: m.clone(),
        lambda m: m.fork(m.constant.backend),
        lambda m: copy.deepcopy(m),
        lambda m: pickle.loads(pickle.dumps(m)),
    ],
    ids=["clone", "fork", "deepcopy", "pickle"],
)
def test_assigning_to_a_copied_module_leaves_the_original(backend, copied):
    module = Net(backend)
    x = el.ones((1, 2), backend=backend)
    before = module(x).tolist()
    for param in module.params():
        param.val()
    other = copied(module)
    assert other(x).tolist() == before
    assert [p.id for p in other.params()] == [p.id for p in module.params()]
    assert other.child.parent is other
    for param in other.params():
        _assigned(param.val())
    _assigned(other.constant)
    assert module(x).tolist() == before
    assert other(x).tolist() != before


@pytest.mark.parametrize("backend", EVERY)
def test_records_share_with_nobody_who_assigns(backend):
    module, other = nn.LayerNorm(3, backend=backend), nn.LayerNorm(3, backend=backend)
    record = module.to_record()
    _assigned(record["weight"])
    assert module.weight.val().tolist() == [1, 1, 1]
    weights = {"weight": el.ones((3,), backend=backend), "bias": el.zeros((3,), backend=backend)}
    other.load_record(weights)
    _assigned(weights["weight"])
    assert other.weight.val().tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", EVERY)
@every("dtype", [d for d in el.dtypes.ALL if d.kind != "string"])
def test_tensors_of_every_dtype_pickle_and_copy(backend, dtype):
    x = el.asarray([[1, 0, 1]], backend=backend).astype(dtype)
    before = x.tolist()  # float8_e8m0fnu has no 0
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert (other.dtype, other.shape, other.backend) == (dtype, (1, 3), x.backend)
        assert other.tolist() == before
        other[0] = 1
        assert x.tolist() == before


@pytest.mark.parametrize("backend", ["python", "numpy"])
def test_views_borrowed_bytes_and_strings_pickle(backend):
    x = el.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4), backend=backend)
    strings = el.asarray(["a", "é"], dtype="string", backend=backend)
    for view in (x[::-1, 1:], x.mT, el.broadcast_to(x[0, 0], (5, 4)), strings):
        assert pickle.loads(pickle.dumps(view)).tolist() == view.tolist()


@pytest.mark.parametrize("backend", EVERY)
def test_joblib_stores_tensors_and_modules(backend, tmp_path):
    joblib = pytest.importorskip("joblib")  # in CI a missing component is a failure
    layer, x = nn.Lstm(2, 3, backend=backend), el.asarray([[[1.0, 2.0]]], backend=backend)
    before = layer(x)[0].tolist()
    joblib.dump({"layer": layer, "x": x}, tmp_path / "stored")
    found = joblib.load(tmp_path / "stored")
    assert found["x"].backend is x.backend
    assert found["layer"](found["x"])[0].tolist() == before


def test_another_process_takes_a_module():
    layer = nn.Linear(2, 3, backend="numpy")
    x = el.ones((1, 2), backend="numpy")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(nn.Linear.forward, (layer, x)).tolist() == layer(x).tolist()


def test_a_module_that_knows_its_parent_prints():
    net = Net()
    net.rest.append(net.rest)
    assert repr(net).count("Net {...}") == 1
    assert f"params: {net.num_params()}\n}}" in repr(net)


def _elements(x):
    """Which object holds x's elements; the object itself would count as another that has them."""
    return id(x.data if x.backend.name == "numpy" else x.data.buffer if x.backend.name == "wgpu" else x.data[0])


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_assigning_to_a_large_tensor_of_ones_own_does_not_copy_it(backend, dtype):
    x = el.zeros((256, 256), dtype=dtype, backend=backend) + 1
    row = el.asarray([5, 6, 7, 8], dtype=dtype, backend=backend) + 0
    number = float if dtype == "float32" else int
    x[0, 0] = number(2)
    elements = _elements(x)
    want = np.ones((256, 256))
    for i in range(30):
        x[i, i] = number(i)
        x[i, 4:8] = row
        x[i, -1:-9:-2] = row
        want[i, i], want[i, 4:8], want[i, -1:-9:-2] = i, [5, 6, 7, 8], [5, 6, 7, 8]
    x[:, 100] = number(3)
    want[:, 100] = 3
    assert _elements(x) == elements
    assert np.array_equal(np.asarray(x), want)
    view = x[0, :4]
    x[0] = number(9)
    assert view.tolist() == [0, 1, 1, 1]
    assert x[0, :4].tolist() == [9, 9, 9, 9]


def _drawn_key(choose, shape):
    """A key of ints, slices, None and `...` for a shape, as NumPy takes them."""
    parts = []
    for n in shape[: choose.randint(0, len(shape))]:
        ends = [None, *range(-n - 1, n + 2)]
        kind = choose.random()
        if kind < 0.4 and n:
            parts.append(choose.randrange(-n, n))
        else:
            parts.append(slice(choose.choice(ends), choose.choice(ends), choose.choice([None, 1, 2, 3, -1, -2])))
    if choose.random() < 0.2:
        parts.insert(choose.randint(0, len(parts)), None)
    if choose.random() < 0.2:
        parts.append(Ellipsis)
    return tuple(parts)


@pytest.mark.parametrize("backend", EVERY)
@every("seed", range(6), share=2)
def test_assignments_give_numpys_values_and_no_other_tensor_changes(backend, seed):
    """Random keys, on tensors that share elements, are views or parts of others, or are not computed yet."""
    choose = random.Random(seed)
    for _ in range(30):
        shape = tuple(choose.choice([1, 2, 3, 5]) for _ in range(choose.randint(0, 4)))
        dtype = choose.choice(["float32", "float16", "int64", "int32", "uint8", "bool"])
        array = np.array([choose.randint(0, 1 if dtype == "bool" else 50) for _ in range(int(np.prod(shape)))], dtype)
        held = [(el.asarray(array.reshape(shape).copy(), backend=backend), array.reshape(shape).copy())]
        for _ in range(6):
            x, a = choose.choice(held)
            act = choose.choice(["assign", "assign", "assign", "alias", "view", "compute", "part"])
            if act == "alias":
                held.append((x.detach(), a.copy()))
            elif act == "view":
                held.append((x.reshape((-1,)), a.copy().reshape(-1)))
            elif act == "compute":
                y, b = (~x, ~a) if dtype == "bool" else (x + 1, a + np.ones((), dtype))
                held.append((y, np.asarray(b)))  # NumPy makes numbers of arrays without axes
            else:
                key = _drawn_key(choose, a.shape)
                if act == "part":
                    held.append((x[key], np.array(a[key])))
                    continue
                value = a[key][..., :1].copy() if a[key].ndim and choose.random() < 0.4 else a.dtype.type(1)
                if choose.random() < 0.3:
                    value = a[key].copy()
                    x[key] = x[key]  # of itself
                given = el.asarray(value, backend=backend) if isinstance(value, np.ndarray) else value.item()
                x[key] = given
                a[key] = value
                if choose.random() < 0.5:
                    continue  # not read at once, so that recorded operations meet the assignment
            for y, b in held:
                assert y.shape == b.shape
                assert y.tolist() == b.tolist()
        for y, b in held:
            assert y.tolist() == b.tolist()


@pytest.mark.parametrize("backend", EVERY)
def test_concurrent_writers_lose_no_update(backend):
    count = 200 if backend != "wgpu" else 25
    x = el.zeros((8, count), backend=backend)

    def write(row):
        for i in range(count):
            x[row, i] = float(i)

    threads = [threading.Thread(target=write, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.tolist() == [[float(i) for i in range(count)]] * 8


@pytest.mark.parametrize("backend", EVERY)
def test_readers_beside_a_writer_see_whole_assignments(backend):
    """What a reader computes from an alias of the tensor is from before or from after each assignment."""
    rounds = 200 if backend != "wgpu" else 25
    x = el.zeros((4, 64), backend=backend) + 0.0
    mixed, done = [], threading.Event()

    def read():
        while not done.is_set():
            row = (x[2] + 0.0).tolist()
            if len(set(row)) != 1:
                mixed.append(row)

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(rounds):
        x[2] = float(i)
    done.set()
    thread.join()
    assert not mixed


# -- loading ----------------------------------------------------------------------------------------------------------


class Table(nn.Module):
    def __init__(self, dtype, backend):
        self.table = Param.zeros((2,), dtype, backend)


@pytest.mark.parametrize("backend", EVERY)
@pytest.mark.parametrize(("mine", "fits", "does_not"), [("int16", 32767, 32768), ("uint8", 255, 256), ("uint8", 0, -1)])
def test_an_integer_that_does_not_fit_is_not_loaded(backend, mine, fits, does_not):
    module = Table(mine, backend)
    module.load_record({"table": el.asarray([1, fits], dtype="int64", backend=backend)})
    assert module.table.val().tolist() == [1, fits]
    with pytest.raises(LoadError, match=rf"int64 values from .* do not fit {mine}, which holds"):
        module.load_record({"table": el.asarray([1, does_not], dtype="int64", backend=backend)})
    assert module.table.val().tolist() == [1, fits]


def test_a_file_says_its_layout(tmp_path):
    layer = nn.Linear(2, 2)
    layer.save_file(tmp_path / "layer")
    nn.Linear(2, 2).load_file(tmp_path / "layer")
    with pytest.raises(LoadError, match=r"'burn'.*layout='pytorch'"):
        nn.Linear(2, 2).load_file(tmp_path / "layer", layout="pytorch")
    layer.save_file(tmp_path / "turned", metadata={"emberlet.layout": "pytorch"})
    other = nn.Linear(2, 2)
    other.load_file(tmp_path / "turned")
    assert other.weight.val().tolist() == layer.weight.val().mT.tolist()


# -- threads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5])
def test_threads_whose_params_initialize_each_other_are_told(size):
    """Each thread makes one Param, whose initializer uses the next one: without the check they wait for ever."""
    params = []
    begun = threading.Barrier(size, timeout=300)
    own = threading.local()

    def init_of(i):
        def init(shape, dtype, backend):
            if not hasattr(own, "begun"):
                own.begun = True
                begun.wait()
            return params[(i + 1) % size].val()

        return init

    params += [Param.uninitialized(init_of(i), (1,)) for i in range(size)]
    said = []

    def run(i):
        try:
            params[i].val()
        except EmberletError as error:
            said.append(str(error))

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert len(said) == size
    assert any("threads that initialize Params would deadlock" in text for text in said)


def test_a_shared_param_that_others_wait_for_is_no_circle():
    waiting = threading.Event()

    def slow(shape, dtype, backend):
        waiting.wait(0.2)
        return el.ones(shape)

    shared = Param.uninitialized(slow, (2,))
    users = [Param.uninitialized(lambda s, d, b: shared.val() + 1, (2,)) for _ in range(6)]
    found = []
    threads = [threading.Thread(target=lambda p=p: found.append(p.val().tolist())) for p in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[2, 2]] * 6


_SAME = {
    "activation": "returns a function as it is",
    "asarray": "documented: x itself where there is nothing to convert",
    "sequence_insert": "a list, which holds the tensor",
}


def test_no_function_returns_the_tensor_that_it_was_given():
    """Every public function, with arguments of every kind, most of which leave nothing to do."""
    found = set()
    for d in read():
        function = getattr(F, d.name, None)
        if d.kind not in ("method", "function") or d.name in _SAME or inspect.iscoroutinefunction(function):
            continue
        parameters = [p for p in d.parameters() if p.kind == ""]
        required = sum(p.default is None for p in parameters)
        for shape, dtype in [((3, 4), "float32"), ((1, 2, 4, 4), "float32"), ((1,), "int64"), ((), "bool")]:
            x = F.astype(F.ones(shape, backend="numpy"), dtype)
            n = len(shape)
            fills = [None, 0, 1, (), shape, dtype, [1.0] * n, [0] * n, [(0, 0)] * n, "numpy", x]
            for fill, count in itertools.product(fills, {max(required, 1), max(required, 1) + 1}):
                try:
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        y = function(x, *[fill] * min(count - 1, max(len(parameters) - 1, 0)))
                except EmberletError:
                    continue
                if any(part is x for part in (y if isinstance(y, (tuple, list)) else [y])):
                    found.add(d.name)
    assert not found, sorted(found)
