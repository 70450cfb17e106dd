"""Param: lazy, initialized exactly once, with an identity and mappers that all operations keep."""

import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import emberlet as el
import pytest
from emberlet.errors import DTypeError, EmberletError, ShapeError
from emberlet.param import Param
from emberlet.param.identity import ParamId
from support.interrupted import interrupted


def zeros(shape, dtype, backend):
    return el.zeros(shape, dtype=dtype, device=backend)


def counted(calls, value=0.0):
    """An initializer that notes each of its calls."""

    def init(shape, dtype, backend):
        calls.append(shape)
        return el.full(shape, value, dtype=dtype, device=backend)

    return init


def lazy(calls=None, shape=(2, 3), **more):
    return Param.uninitialized(counted([] if calls is None else calls), shape, **more)


def test_shape_dtype_backend_and_require_grad_are_known_without_making_the_value():
    calls = []
    p = lazy(calls, dtype=el.float16, backend="numpy", require_grad=False)
    assert (p.shape, p.dtype, repr(p.backend), p.size, p.require_grad) == ((2, 3), el.float16, "numpy", 6, False)
    assert repr(p) == "Param((2, 3), float16, lazy)"
    assert not p.is_initialized
    assert calls == []


def test_a_param_prints_which_mappers_it_has():
    p = lazy().load_mapper(lambda t: t)
    assert repr(p) == "Param((2, 3), float32, lazy, load mapper)"
    assert repr(p.clone().save_mapper(lambda t: t)) == "Param((2, 3), float32, lazy, load mapper, save mapper)"
    assert not p.is_initialized


def test_the_first_use_makes_the_value_and_later_ones_keep_it():
    calls = []
    p = lazy(calls)
    first = p.val()
    assert p.val() is first
    assert p.is_initialized
    assert calls == [(2, 3)]


def of_racing_threads(use):
    """What eight threads get that use a param at the same time."""
    gate = threading.Barrier(8)

    def run(_):
        gate.wait()
        return use()

    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(run, range(8)))


def test_eight_racing_threads_make_it_once_and_see_the_same():
    calls = []

    def slow(shape, dtype, backend):
        calls.append(threading.get_ident())
        time.sleep(0.02)
        return zeros(shape, dtype, backend)

    p = Param.uninitialized(slow, (2, 3))
    seen = of_racing_threads(p.val)
    assert len(calls) == 1
    assert all(v is seen[0] for v in seen)


def test_racing_threads_get_one_identity():
    p = lazy()
    assert len(set(of_racing_threads(lambda: p.id))) == 1


def test_an_initializer_that_raises_leaves_it_lazy_and_the_next_use_tries_again():
    calls = []

    def init(shape, dtype, backend):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("not yet")
        return zeros(shape, dtype, backend)

    p = Param.uninitialized(init, (2,))
    with pytest.raises(OSError, match="not yet"):
        p.val()
    assert not p.is_initialized
    assert p.val().shape == (2,)
    assert len(calls) == 2


@pytest.mark.parametrize("use", [Param.val, Param.clone, lambda p: p.set(el.ones((2, 3)), id=ParamId(1))])
def test_an_interrupt_at_any_line_lets_the_next_use_go_on(use):
    lines, stopped = 0, True
    while stopped:
        p = lazy()
        lines += 1
        stopped = interrupted(lambda p=p: use(p), lines)
        assert not p._lock.locked()
        assert p.set(el.ones((2, 3))).val().tolist() == [[1.0] * 3] * 2
    assert lines > 10


def test_a_signal_may_use_another_param_at_any_line():
    lines, came = 0, True
    while came:
        p, other = lazy(), lazy()
        lines += 1
        came = interrupted(p.val, lines, other.val)
        assert p.val().tolist() == [[0.0] * 3] * 2
        assert other.is_initialized is came
    assert lines > 10


def test_a_raise_in_one_thread_lets_a_waiting_one_try():
    calls = []
    entered = threading.Event()

    def init(shape, dtype, backend):
        calls.append(1)
        if len(calls) == 1:
            entered.set()
            time.sleep(0.02)
            raise OSError("not yet")
        return zeros(shape, dtype, backend)

    p = Param.uninitialized(init, (2,))

    def first():
        with pytest.raises(OSError):
            p.val()

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    assert p.val().shape == (2,)
    thread.join()
    assert len(calls) == 2


def test_an_initializer_that_uses_its_own_param_is_an_error_not_a_standstill():
    p = Param.uninitialized(lambda *_: p.val(), (2,))
    with pytest.raises(EmberletError, match="used that same Param"):
        p.val()
    assert not p.is_initialized


def test_an_initializer_may_use_another_param():
    other = lazy()
    p = Param.uninitialized(lambda *_: other.val() + 1, (2, 3))
    assert p.val().tolist() == [[1.0] * 3] * 2


def test_setting_a_value_never_runs_the_initializer():
    calls = []
    p = lazy(calls)
    identity = p.id
    value = el.ones((2, 3))
    p.set(value)
    assert p.val() is value
    assert p.id == identity
    assert calls == []


def test_loading_into_a_lazy_param_never_runs_its_initializer():
    calls = []
    p = lazy(calls, dtype=el.float32).init_mapper(lambda t: t * 100)
    p.set(p.loaded(el.ones((2, 3), dtype=el.float16)))
    assert p.val().dtype is el.float32
    assert p.val().tolist() == [[1.0] * 3] * 2
    assert calls == []


def test_a_clone_keeps_identity_and_mappers_stays_lazy_and_makes_its_own_value():
    calls = []
    p = lazy(calls).load_mapper(lambda t: t + 1).save_mapper(lambda t: t - 1)
    c = p.clone()
    assert c.id == p.id
    assert not c.is_initialized
    assert c.val() is not p.val()
    assert len(calls) == 2
    assert c.loaded(el.zeros((2, 3))).tolist() == [[1.0] * 3] * 2
    assert c.saved().tolist() == [[-1.0] * 3] * 2


def test_initializing_a_clone_leaves_the_original_lazy():
    p = lazy()
    p.clone().val()
    assert not p.is_initialized


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copying_is_cloning(make):
    p = lazy()
    c = make(p)
    assert c is not p
    assert c.id == p.id
    assert not c.is_initialized


def test_map_keeps_identity_and_mappers():
    p = lazy().save_mapper(lambda t: t * 2)
    identity = p.id
    assert p.map(lambda t: t + 3) is p
    assert p.id == identity
    assert p.val().tolist() == [[3.0] * 3] * 2
    assert p.saved().tolist() == [[6.0] * 3] * 2


def test_init_mappers_compose_while_lazy_without_running():
    calls = []
    p = lazy(calls).init_mapper(lambda t: t + 1).init_mapper(lambda t: t * 10)
    assert calls == []
    assert not p.is_initialized
    assert p.val().tolist() == [[10.0] * 3] * 2


def test_an_init_mapper_applies_at_once_to_what_is_there():
    p = Param(el.ones((2,)))
    p.init_mapper(lambda t: t + 1)
    assert p.val().tolist() == [2.0, 2.0]


def test_an_init_mapper_of_a_clone_leaves_the_original():
    p = lazy()
    p.clone().init_mapper(lambda t: t + 1)
    assert p.val().tolist() == [[0.0] * 3] * 2


def test_the_load_mapper_sees_the_params_own_dtype():
    p = lazy(dtype=el.float32).load_mapper(lambda t: t * 0.1)
    assert p.loaded(el.ones((2, 3), dtype=el.float16)).dtype is el.float32


def test_the_load_mapper_may_bring_the_shape():
    p = lazy(shape=(3, 2)).load_mapper(lambda t: t.permute_dims((1, 0)))
    assert p.loaded(el.ones((2, 3))).shape == (3, 2)


def test_another_shape_is_refused_with_both():
    with pytest.raises(ShapeError, match=r"shape \(3, 2\) where the module has \(2, 3\)"):
        lazy().loaded(el.ones((3, 2)))


@pytest.mark.parametrize(("given", "mine"), [("int32", "float32"), ("float32", "int32"), ("bool", "int32")])
def test_another_kind_of_number_is_refused_with_both(given, mine):
    with pytest.raises(DTypeError, match=f"{given} where the module has {mine}"):
        lazy(dtype=mine).loaded(el.zeros((2, 3), dtype=el.dtypes.dtype(given)))


@pytest.mark.parametrize(("given", "mine"), [("float16", "float64"), ("int64", "int32"), ("uint8", "int64")])
def test_another_width_is_converted(given, mine):
    assert lazy(dtype=mine).loaded(el.zeros((2, 3), dtype=el.dtypes.dtype(given))).dtype is el.dtypes.dtype(mine)


def test_require_grad_is_carried_and_changes_nothing_else():
    calls = []
    p = lazy(calls)
    assert p.require_grad
    assert p.set_require_grad(False) is p
    assert not p.require_grad
    assert not p.clone().require_grad
    assert not lazy(dtype=el.int64).require_grad
    assert calls == []


def test_moving_a_lazy_one_makes_it_there():
    calls = []
    p = lazy(calls, backend="numpy").to("python")
    assert repr(p.backend) == "python"
    assert calls == []
    assert repr(p.val().backend) == "python"


def test_moving_an_initialized_one_moves_its_value():
    p = Param(el.ones((2,), device="numpy")).to("python")
    assert repr(p.val().backend) == "python"
    assert p.val().tolist() == [1.0, 1.0]


def test_an_identity_is_written_as_burn_writes_it():
    # Base 32 (RFC 4648's hex alphabet, lower case, no padding) of the little-endian bytes.
    assert str(ParamId(0)) == "0" * 13
    assert str(ParamId((1 << 64) - 1)) == "v" * 12 + "u"
    assert str(ParamId(0x0123456789ABCDEF)) == "tv6qn2b78khg2"


def test_identities_are_random_equal_by_value_and_hashable():
    assert ParamId() != ParamId()
    assert ParamId(5) == ParamId(5)
    assert len({ParamId(5), ParamId(5), ParamId(6)}) == 2


def test_the_same_holds_on_micropython(unix_port):
    script = """
import _thread, time
import emberlet as el
from emberlet.param import Param
calls = []
def init(shape, dtype, backend):
    calls.append(1)
    if len(calls) == 1:
        raise OSError("not yet")
    time.sleep(0.01)
    return el.zeros(shape, dtype=dtype, device=backend)
p = Param.uninitialized(init, (2,)).init_mapper(lambda t: t + 1)
try:
    p.val()
except OSError:
    print(p, p.shape, p.is_initialized)
c = p.clone()
seen = []
guard = _thread.allocate_lock()  # this port's lists are not safe between threads
def see():
    value = p.val()
    with guard:
        seen.append(value)
for _ in range(8):
    _thread.start_new_thread(see, ())
while len(seen) < 8:
    time.sleep(0.001)
print(len(calls), all([v is seen[0] for v in seen]), seen[0].tolist(), c.is_initialized, c.id == p.id, len(str(p.id)))
p.load_mapper(lambda t: t * 2)
p.set(p.loaded(el.asarray([1, 2], dtype=el.float64)))
print(p.val().tolist(), p.dtype, p.map(lambda t: t + 1).saved().tolist())
"""
    said = unix_port.run(script).check().stdout
    assert said == (
        "Param((2,), float32, lazy) (2,) False\n2 True [1.0, 1.0] False True 13\n[2.0, 4.0] float32 [3.0, 5.0]\n"
    )
