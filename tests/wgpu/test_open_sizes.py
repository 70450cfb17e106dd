"""Plans with open sizes give NumPy's results at every size and build or allocate nothing for it. The contract draws
programs for the values at every size; here is what plans do for them."""

import random

import emberlet
import numpy as np
import pytest
from emberlet import codegen
from emberlet import functional as F
from emberlet.errors import FormatError, ModelError
from emberlet.model import Model
from emberlet.wgpu_backend import plan_file
from emberlet.wgpu_backend.compiled import compile
from emberlet.wgpu_backend.device import open_device
from support.rows import every

MODELS = "tests/models"


BACKENDS = pytest.mark.parametrize("backend", ["wgpu", "wasm"])


def _llama(rng, batch, past, new):
    caches = [rng.standard_normal((batch, 4, past, 4)).astype(np.float32) for _ in range(4)]
    return [rng.integers(0, 80, (batch, new)), *caches]


def test_a_growing_cache_takes_one_plan_and_no_memory():
    model = codegen.load(f"{MODELS}/llama/model.onnx", "numpy")
    rng = np.random.default_rng(0)
    compiled = model.compile(*_llama(rng, 1, 3, 1), backend="wgpu", dims={"past": 64})
    device = compiled.backend.device
    compiled(*_llama(rng, 1, 1, 1))
    before = device.created_buffers, len(device.pipelines)
    for past in (1, 2, 3, 7, 31, 32, 33, 63, 64):
        inputs = _llama(rng, 1, past, 1)
        for got, wanted in zip(compiled(*inputs), model(*inputs), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-4, atol=1e-5)
    assert (device.created_buffers, len(device.pipelines)) == before
    assert (len(compiled._open), len(compiled._plans)) == (1, 0)
    assert "past 1 to 64" in repr(compiled)


def test_one_plan_serves_a_prompt_and_single_tokens():
    rng = np.random.default_rng(5)
    model = codegen.load(f"{MODELS}/llama/model.onnx", "numpy")
    opened = model.compile(*_llama(rng, 1, 3, 2), backend="wgpu", dims={"past": 64, "new": 32})
    device = open_device()
    opened(*_llama(rng, 1, 3, 2))
    before = device.created_buffers, len(device.pipelines)
    for past, new in ((1, 32), (33, 1), (34, 1), (2, 17), (60, 2), (64, 1), (1, 1)):
        given = _llama(rng, 1, past, new)
        for got, want in zip(opened(*given), model(*given), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), atol=1e-4, err_msg=f"{past} {new}")
    assert (device.created_buffers, len(device.pipelines)) == before
    assert len(opened._open) == 1 and not opened._plans and not opened.fixed


class Reader(Model):
    """A handwritten module, which does not declare its inputs."""

    def forward(self, x, past):
        seen = F.concat((past, x))
        return F.softmax(x @ seen.permute(1, 0), axis=-1) @ seen, seen


def test_a_module_written_by_hand_names_its_open_axes():
    rng, model = np.random.default_rng(0), Reader()
    x, past = (emberlet.asarray(rng.standard_normal((n, 4)).astype(np.float32), backend="numpy") for n in (1, 2))
    compiled = model.compile(x, past, backend="wgpu", dims={"past": {0: "past"}})
    for _ in range(40):
        (got, grown), (want, seen) = compiled(x, past), model(x, past)
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), atol=1e-5)
        np.testing.assert_array_equal(np.asarray(grown), np.asarray(seen))
        past = seen
    assert len(compiled._open) == 1 and not compiled._plans


@BACKENDS
def test_memory_grows_by_doubling_where_no_limit_is_given(backend):
    def function(x):
        return F.softmax(x @ x.permute(1, 0)) * 2.0

    compiled = compile(function, backend=backend, dims={"x": {0: "n"}})
    for n in (3, 5, 40, 41, 42, 43, 200, 7):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        wanted = np.asarray(function(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-4, atol=1e-6)
    assert (len(compiled._open), len(compiled._plans)) == (1, 0)


def test_a_call_with_the_sizes_of_the_last_one_costs_what_a_plan_for_one_size_costs(monkeypatch):
    def function(x, y):
        return F.softmax(x @ y.permute(1, 0)) * 2.0

    compiled = compile(function, backend="wgpu", dims={"x": {0: "n"}, "y": {0: "n"}})
    rng = np.random.default_rng(3)
    counts, queue = type(_counts(compiled, rng)), type(compiled.backend.device.queue)
    told = []
    for owner, name in ((counts, "refusal"), (queue, "write_buffer")):
        whole = getattr(owner, name)

        def heard(*arguments, _whole=whole, _name=name):
            told.append(_name)
            return _whole(*arguments)

        monkeypatch.setattr(owner, name, heard)
    last = None
    for n in (4, 4, 7, 7, 7, 4, 7, 7):
        x, y = rng.standard_normal((2, n, 3)).astype(np.float32)
        told.clear()
        got = np.asarray(compiled(x, y))
        wanted = np.asarray(function(*(emberlet.asarray(v, backend="numpy") for v in (x, y))))
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
        assert (told == ["write_buffer"] * 2) == (n == last), (n, told)
        last = n
    with pytest.raises(emberlet.ShapeError):
        compiled(x, y[:-1, :2])
    assert (len(compiled._open), len(compiled._plans)) == (1, 0)


def _counts(compiled, rng):
    """The Counts of a plan that has run once."""
    compiled(*rng.standard_normal((2, 5, 3)).astype(np.float32))
    return compiled._open[0].plan.counts


@BACKENDS
def test_axes_that_a_model_names_are_opened_when_a_second_size_is_met(backend):
    model = codegen.load(f"{MODELS}/bert_traced/model.onnx", "numpy")
    rng = np.random.default_rng(1)
    compiled = model.compile(backend=backend)
    for length in (5, 8, 1, 33, 64):
        ids = rng.integers(0, 60, (2, length))
        mask = np.ones((2, length), np.int64)
        inputs = [ids, mask, np.zeros_like(ids)]
        for got, wanted in zip(compiled(*inputs), model(*inputs), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-4, atol=1e-5)
    assert len(compiled._open) == 1
    assert [name for name, _, _ in compiled._open[0].plan.counts.symbols] == ["length"]
    assert len(compiled._plans) == 1


def test_a_size_needed_as_a_number_gets_a_plan_for_each_value_and_says_so():
    def unrolled(x):
        total = x[0]
        for i in range(1, x.shape[0]):
            total = F.tanh(total) + x[i]
        return total

    compiled = compile(unrolled, backend="wgpu", dims={"x": {0: "steps"}})
    for n in (2, 5):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        wanted = np.asarray(unrolled(emberlet.asarray(x, backend="numpy")))
        np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-5, atol=1e-6)
    assert "by unrolled" in str(compiled.fixed["steps"])
    assert not compiled._open


def _number(n, like):
    return F.full((1,), n, dtype=emberlet.int64, backend=like.backend)


ON_SHAPES = (
    lambda a, b: a + b,
    F.maximum,
    lambda a, b: F.where(a == a, a, b),
    lambda a, b: F.floor_divide(a * 4, _number(3, a)),
    lambda a, b: F.concat((a, b))[1:][:1],
    lambda a, b: F.where(F.logical_and(a > 0, F.logical_not(b < 1)), b, a),
    lambda a, b: F.minimum(a, b).astype(emberlet.int32).astype(emberlet.int64),
)


@every("seed", range(12), share=3)
def test_shapes_put_together_as_tensors_stay_open(seed):
    def function(x, y):
        r = random.Random(seed)
        whole = F.asarray(x.shape, dtype=emberlet.int64, backend=x.backend)
        pool = [whole[:1], whole[1:2], F.asarray((y.shape[0],), dtype=emberlet.int64, backend=x.backend), whole[:1] * 2]
        for _ in range(r.randint(2, 6)):
            pool.append(r.choice(ON_SHAPES)(r.choice(pool), r.choice(pool)))
        rows, columns = F.concat((pool[-1], r.choice(pool))).tolist()
        return F.broadcast_to(F.sum(x), (rows, columns)) + F.sum(pool[-1]).astype(emberlet.float32)

    compiled = compile(function, backend="wgpu", dims={"x": {0: "rows", 1: "columns"}, "y": {0: "others"}})
    for n, m, k in ((3, 5, 2), (7, 4, 9), (2, 11, 5), (6, 6, 6)):
        x, y = np.ones((n, m), np.float32), np.ones(k, np.float32)
        wanted = np.asarray(function(emberlet.asarray(x, backend="numpy"), emberlet.asarray(y, backend="numpy")))
        got = np.asarray(compiled(x, y))
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted)
    assert compiled._open
    assert not compiled.fixed


def test_draws_leave_no_open_size_in_the_state_of_later_ones():
    from emberlet.functional.randomness import draws

    def noisy(x):
        return x + F.uniform(x.shape, backend=x.backend)

    compiled = compile(noisy, backend="wgpu", dims={"x": {0: "n"}})
    for n in (3, 6, 4):
        got = np.asarray(compiled(np.ones((n, 2), np.float32)))
        assert got.shape == (n, 2)
        assert ((got >= 1.0) & (got < 2.0)).all()
        assert type(draws._state[1]) is int
    assert "n" in compiled.fixed
    assert F.random_bits((4,), backend="numpy").shape == (4,)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(the model, its plan as a file) of a text encoder with open lengths and batches."""
    model = codegen.load(f"{MODELS}/bert_traced/model.onnx", "numpy")
    path = str(tmp_path_factory.mktemp("plan") / "bert.plan")
    examples = [emberlet.zeros((2, 8), dtype="int64")] * 3
    plan_file.save(path, model, *examples, dims={"length": (1, 64), "batch": (1, 3)})
    return model, path


def _texts(rng, batch, length):
    ids = rng.integers(0, 60, (batch, length))
    return [ids, np.ones_like(ids), np.zeros_like(ids)]


def test_a_saved_plan_runs_every_size_and_grows_no_memory(saved):
    model, path = saved
    plan = plan_file.load(path)
    assert repr(plan.inputs[0]) == "input_ids: int64 (batch, length)"
    rng = np.random.default_rng(3)
    before = None
    for batch, length in [(2, 8), (1, 1), (3, 64), *[(rng.integers(1, 4), rng.integers(1, 65)) for _ in range(8)]]:
        inputs = _texts(rng, batch, length)
        for got, wanted in zip(plan.run(*inputs), model(*inputs), strict=True):
            assert got.shape == wanted.shape
            np.testing.assert_allclose(np.asarray(got.to_list()), np.asarray(wanted), rtol=1e-4, atol=1e-5)
        device = plan.program.device
        before = before or (device.created_buffers, len(device.pipelines))
        assert (device.created_buffers, len(device.pipelines)) == before
    plan.release()


def test_inputs_that_do_not_fit_a_saved_plan_are_refused_in_words(saved):
    plan = plan_file.load(saved[1])
    rng = np.random.default_rng(4)
    with pytest.raises(FormatError, match="length between 1 and 64"):
        plan.run(*_texts(rng, 1, 65))
    ids, mask, kinds = _texts(rng, 2, 9)
    with pytest.raises(FormatError, match="where batch is 2 and length is 9"):
        plan.run(ids, mask[:, :8], kinds)
    with pytest.raises(FormatError, match="needs an input that determines"):
        plan.run(None, None, None)
    plan.run(ids, mask, kinds)
    (again, _), (first, _) = plan.run(ids, None, None), plan.run(ids, mask, kinds)
    assert again.to_list() == first.to_list()
    with pytest.raises(FormatError, match="pass it again"):
        plan.run(ids[:, :5], None, kinds[:, :5])
    plan.release()


@pytest.mark.parametrize("dims", [None, {"x": {0: ("n", 4)}}])
@pytest.mark.parametrize("given", [[[1.0, 2.0]], "text", 3])
def test_inputs_that_are_no_arrays_are_refused_in_words(tmp_path, dims, given):
    path = str(tmp_path / "m.plan")
    plan_file.save(path, lambda x: x + 1, np.ones((1, 2), np.float32), dims=dims)
    plan = plan_file.load(path)
    with pytest.raises(FormatError, match=r"takes an array or bytes for x.*, but got "):
        plan.run(given)
    plan.release()


def test_multiples_are_one_plan_and_other_lengths_are_refused(tmp_path):
    def function(x):
        return F.softmax(x @ x.permute(1, 0)) * 2.0

    path = str(tmp_path / "multiples.plan")
    x = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    plan_file.save(path, function, x[:16], dims={"x": {0: ("n", range(16, 65, 16))}})
    plan = plan_file.load(path)
    assert repr(plan.inputs[0]) == "x: float32 (n, 8)"
    for n in (16, 48, 64):
        (got,) = plan.run(x[:n])
        wanted = np.asarray(function(emberlet.asarray(x[:n], backend="numpy")))
        np.testing.assert_allclose(got.to_list(), wanted, rtol=1e-4, atol=1e-6)
    for n in (8, 17, 40):
        with pytest.raises(FormatError, match=r"got another size|made for other sizes"):
            plan.run(x[:n])
    plan.release()
    compiled = compile(function, backend="wgpu", dims={"x": {0: ("n", range(16, 65, 16))}})
    for n in (16, 32, 7, 64):
        wanted = np.asarray(function(emberlet.asarray(x[:n], backend="numpy")))
        np.testing.assert_allclose(np.asarray(compiled(x[:n])), wanted, rtol=1e-4, atol=1e-6)
    assert (len(compiled._open), len(compiled._plans)) == (1, 1)


def test_bytes_tell_the_one_length_that_is_open(tmp_path):
    def function(x):
        return F.cumulative_sum(x, axis=0)

    path = str(tmp_path / "sum.plan")
    plan_file.save(path, function, emberlet.zeros((3, 2)), dims={"x": {0: ("n", 50)}})
    plan = plan_file.load(path)
    for n in (1, 7, 50):
        x = np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
        (got,) = plan.run(x.tobytes())
        np.testing.assert_allclose(got.to_list(), np.cumsum(x, axis=0), rtol=1e-5, atol=1e-5)
    with pytest.raises(FormatError, match="got another size"):
        plan.run(bytes(4))


def test_what_cannot_be_left_open_in_a_file_is_told(tmp_path):
    def unrolled(x):
        return sum((x[i] for i in range(x.shape[0])), F.zeros((2,), backend=x.backend))

    def short(x):
        return x + emberlet.ones((4, 2)).to_device(x.backend)[: x.shape[0]]

    path = str(tmp_path / "not.plan")
    with pytest.raises(ModelError, match=r"n cannot be left open: the number .* by .* in "):
        plan_file.save(path, unrolled, emberlet.zeros((3, 2)), dims={"x": {0: ("n", 50)}})
    with pytest.raises(ModelError, match="no single plan serves all of these sizes"):
        plan_file.save(path, short, emberlet.zeros((3, 2)), dims={"x": {0: ("n", 5)}})
    with pytest.raises(ModelError, match="give 'n' a limit"):
        plan_file.save(path, short, emberlet.zeros((3, 2)), dims={"x": {0: "n"}})


def test_a_range_from_0_that_is_refused_names_the_size_and_one_that_works(tmp_path):
    path = str(tmp_path / "not.plan")
    x = emberlet.zeros((2, 5))
    dims = {"x": {0: ("b", (0, 3)), 1: ("n", (0, 8))}}
    with pytest.raises(ModelError, match=r"; n cannot be 0 here: take n from 1 to 8$"):
        plan_file.save(path, lambda x: F.max(x, axis=1), x, dims=dims)  # as in NumPy
    plan_file.save(path, lambda x: F.max(x, axis=1), x, dims={"x": {0: ("b", (0, 3)), 1: ("n", (1, 8))}})


def test_a_division_whose_bounds_exceed_32_bits_is_right():
    """The row of a product, within a gather of open sizes: its known lower bound is -3e11."""
    sizes = [(2, 4, 5), (1, 1, 5)], {"x": {0: "a", 1: "b", 2: "c"}, "y": {2: "c"}}

    def work(x, y):
        return F.matmul(x[3:, [-4], 5::3, None], y)

    model = compile(work, *[emberlet.zeros(s) for s in sizes[0]], backend="wgpu", dims=sizes[1])
    for a, b, c in ((8, 7, 7), (4, 5, 12), (5, 4, 9)):
        x = emberlet.asarray(np.arange(a * b * c, dtype="float32").reshape(a, b, c), device="numpy")
        y = emberlet.asarray(np.arange(c, dtype="float32").reshape(1, 1, c), device="numpy")
        np.testing.assert_allclose(np.asarray(model(x, y)), np.asarray(work(x, y)))


@pytest.mark.parametrize("backend", ["wgpu", "wasm", "native"])
def test_a_length_that_is_taken_for_1_broadcasts(backend):
    def model(x):
        later = F.cumsum(x, 0, exclusive=True, reverse=True)  # asks whether the length is 1
        wide = F.ones((3, 5), device=x.backend)
        products = F.reshape(x, (-1, 1, 1)) @ F.ones((5, 1, 2), device=x.backend)
        return later, F.broadcast_to(x, (3, 5)), x + wide, F.where(wide > 0, x, wide), products

    fast = compile(model, backend=backend, dims={"x": {0: "n"}})
    for values in ([0.0, 1.0, 2.0, 3.0, 4.0], [7.0], [3.0]):
        x = np.array(values, np.float32)
        for found, want in zip(fast(emberlet.asarray(x, device=backend)), model(emberlet.asarray(x)), strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-6)
