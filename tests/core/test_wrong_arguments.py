"""Every public function, called with random and mostly wrong arguments, computes a result or raises an error of the
EmberletError family, and no call takes long."""

from __future__ import annotations

import inspect
import os
import pickle
import random
import time
import warnings
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet import functional as F
from emberlet import nn
from emberlet.backend import get_backend
from emberlet.errors import DTypeError, EmberletError, IndexingError, ShapeError
from emberlet.host.interface.declarations import read
from support.draws import draw
from support.every_backend import WGPU
from support.rows import every

DECLARED = [
    d for d in read() if d.kind in ("method", "function") and not inspect.iscoroutinefunction(getattr(F, d.name))
]
# EMBERLET_CALLS=1000 asks for more of them.
CALLS = int(os.environ.get("EMBERLET_CALLS", "6"))
SHAPES = [(), (0,), (1,), (3,), (2, 3), (3, 2), (3, 3), (1, 2, 3), (2, 0, 3), (1, 2, 4, 4), (2, 1, 3, 3)]
DTYPES = "float32 float32 float32 float64 float16 bfloat16 int64 int32 uint8 bool string".split()
HUGE = [1 << 62, 10**30, -(1 << 63)]
WRONG = [None, "abc", "", [], [[1.0, 2.0], [3.0, 4.0]], [[1], [2, 3]], {}, {"a": 1}, object(), (), (1, None), b"ab",
         2.5, -1, 0, 7, True, *HUGE, float("nan"), float("inf"), slice(1, 2), 1j, int, lambda x: x]  # fmt: skip


def _tensor(choose: random.Random, backend: Any) -> Any:
    dtype, shape = choose.choice(DTYPES), choose.choice(SHAPES)
    if dtype == "string":
        return F.asarray(np.full(shape, "ab"), backend="python" if backend.name != "numpy" else "numpy")
    numbers = np.random.default_rng(choose.randrange(1 << 30)).integers(0 if dtype == "uint8" else -3, 4, shape)
    return F.astype(F.asarray(numbers, backend=backend), dtype)


def _argument(choose: random.Random, said: str, backend: Any) -> Any:
    """An argument of the declared type, or of another one."""
    if choose.random() < 0.25:
        return choose.choice(WRONG) if choose.random() < 0.7 else _tensor(choose, backend)
    if "Sequence[Tensor" in said:
        return [_tensor(choose, backend) for _ in range(choose.randrange(4))]
    if "Tensor" in said:
        return _tensor(choose, backend)
    if "Sequence" in said and choose.random() < 0.6:
        return [choose.randint(-3, 5) for _ in range(choose.randrange(6))]
    if said.startswith("int"):
        return choose.choice(HUGE) if choose.random() < 0.2 else choose.randint(-4, 6)
    if said.startswith("float"):
        return choose.choice([-1.0, 0.0, 0.5, 1, 2])
    if said.startswith("bool"):
        return choose.random() < 0.5
    if "DType" in said:
        return choose.choice(DTYPES)
    return backend if "Backend" in said else choose.choice(WRONG)


def _shown(x: Any) -> str:
    return f"tensor {x.dtype.name} {x.shape}" if isinstance(x, emberlet.Tensor) else repr(x)


def _read(x: Any) -> None:
    for item in x if isinstance(x, tuple) else (x,):
        if isinstance(item, emberlet.Tensor) and item.size < 10_000:
            F.tolist(item)


@pytest.mark.parametrize("name", ["numpy", "python", WGPU])
def test_wrong_arguments_end_in_an_error_of_the_family(name: str) -> None:
    backend = get_backend(name)
    seed = draw(__name__).randrange(1 << 32)
    drawn = random.Random(seed).sample(DECLARED, 60) if name == "wgpu" else DECLARED  # each compiles kernels
    for d in drawn:
        choose = random.Random(f"{seed}/{d.name}")
        for _ in range(CALLS if name == "numpy" else max(CALLS // 3, 1)):
            positional, named, said = [], {}, []
            for p in d.parameters():
                left_out = p.kind in ("mark", "**") or (p.default is not None and choose.random() < 0.5)
                if left_out and p.kind == "":
                    break
                if left_out:
                    continue
                value = _argument(choose, d.type_of(p), backend)
                said.append(f"{p.name}={_shown(value)}")
                if p.kind == "keyword":
                    named[p.name] = value
                else:
                    positional.append(value)
            call = f"{d.name}({', '.join(said)}), seed {seed} on {name}"
            start = time.process_time()
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    _read(getattr(F, d.name)(*positional, **named))
            except EmberletError as error:
                assert len(str(error)) > 15, call
            except MemoryError:
                pass
            except Exception as error:
                raise AssertionError(f"{call} raises {type(error).__name__}: {error}") from error
            assert time.process_time() - start < 60, call


X = F.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
# A call, and how its error begins.
SAYS = """
F.avg_pool2d(None, 2) | avg_pool2d: x is None; it takes a tensor
F.avg_pool2d([[1.0]], 2) | avg_pool2d: x is the list [[1.0]]; it takes a tensor; emberlet.asarray(…) makes one
F.take(X, "ab") | take: indices is the str 'ab'; it takes a tensor
F.take(X, "a" * 70) | take: indices is a str, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…; it takes a tensor
F.clip(X, "a") | clip: min is the str 'a'; it takes a tensor or None
F.where(X, object(), X) | where: x1 is a object; it takes a tensor
X.softmax("a") | softmax: axis is the str 'a'; it takes an int
X.softmax(1.5) | softmax: axis is 1.5; it takes an int
F.sum(X, [1, None]) | sum: axis is the list [1, None]; it takes an int, a list of ints or None
F.permute_dims(X, "ab") | permute_dims: axes is the str 'ab'; it takes an int or a list of ints
F.slice_assign(X, 3, X) | slice_assign: ranges is 3; it takes a list (a slice or a list of ints each)
F.dict_vectorize(3, ["a"], "float32") | dict_vectorize: x is 3; it takes a dict
F.tensordot(X, X, "1") | tensordot: axes is the str '1'; it takes an int or a tuple[Sequence[int], Sequence[int]]
F.concat([X, None]) | concat: arrays is a list of a tensor float32 (2, 3), None; it takes a list (a tensor each)
F.concat([X, 1.0, 2, 3, None]) | concat: arrays is a list of a tensor float32 (2, 3), 1.0, 2, 3, …; it takes a list
F.exp() | exp: missing a required argument: 'x'; it is called as exp(x)
F.softmax(X, 1, 2) | softmax: too many positional arguments; it is called as softmax(x, axis=-1)
F.sum(X, over=1) | sum: got an unexpected keyword argument 'over'; it is called as sum(x, axis=None
nn.Rnn(3, 2)("abc") | nn.Rnn: x is the str 'abc'; it takes a tensor
nn.Linear(3, 2)(None) | nn.Linear: x is None; it takes a tensor
nn.MaxPool2d(2)([1.0]) | nn.MaxPool2d: x is the list [1.0]; it takes a tensor; emberlet.asarray(…) makes one
nn.BatchNorm2d(3)(nn.Relu()) | nn.BatchNorm: x is a Relu; it takes a tensor
nn.Lstm(3, 2)(X[None], "abc") | nn.Lstm: state is the str 'abc'; it is called as nn.Lstm(…)(x, state=None)
nn.MSELoss()(X) | nn.MSELoss: missing a required argument: 'targets'; it is called as nn.MSELoss
nn.Sequential(nn.Conv2d(1, 2, 3))("abc") | nn.Conv2d: x is the str 'abc'
"""


@every(("call", "words"), [line.split(" | ") for line in SAYS.strip().splitlines()])
def test_the_error_names_the_function_the_argument_and_what_it_takes(call: str, words: str) -> None:
    with pytest.raises(DTypeError) as caught:
        eval(call)
    assert str(caught.value).startswith(words)
    assert isinstance(caught.value, TypeError)


def test_an_error_that_no_argument_of_a_layer_causes_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.Linear(3, 2)
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: self.no_such_field)
    with pytest.raises(AttributeError, match="no_such_field"):
        layer(F.zeros((1, 3)))


def test_what_fits_its_declaration_but_cannot_be_computed_is_refused_with_all_arguments() -> None:
    with pytest.raises(ShapeError, match=r"lp_pool cannot .*: x is a tensor float32 \(1, 2, 3\), kernel_size is"):
        F.lp_pool(X.reshape((1, 2, 3)), 2, p=0)


@pytest.mark.parametrize("number", [1 << 40, 10**30])
def test_a_number_that_no_memory_holds_is_refused_before_anything_is_counted_to_it(number: int) -> None:
    x = F.arange(6)
    assert [len(p) for p in F.chunk(x, number)] == [1] * 6
    assert F.chunk(x[:0], number)[0].shape == (0,)
    for make in (
        F.eye,
        lambda n, backend: F.linspace(0, 1, n, backend=backend),
        lambda n, backend: F.tril_mask((n, 2), backend=backend),
    ):
        with pytest.raises((MemoryError, ShapeError)):
            make(number, backend="python")
    images = F.zeros((1, 2, 3, 3))
    for call in (
        lambda: F.adaptive_avg_pool(images, [number, 1]),
        lambda: F.im2col(images, [number, 1]),
        lambda: F.col2im(images[0], [3, 3], [1, number]),
        lambda: F.interpolate(images, size=[number, 1]),
        lambda: F.interpolate(images, scale_factor=float(number), mode="linear"),
        lambda: F.split(x, number),
        lambda: F.hann_window(number),
        lambda: F.blackman_window(-number),
        lambda: F.mel_weight_matrix(number, 16, 8000, 0, 4000),
        lambda: F.mel_weight_matrix(8, number, 8000, 0, 4000),
        lambda: F.one_against_one(X, number),
        lambda: F.pairwise_coupling(X, [1.0], [1.0], number),
    ):
        with pytest.raises(ShapeError):
            call()


def test_errors_of_a_callers_own_code_stay_as_they_are() -> None:
    class Own:
        def __array__(self, *given: Any, **named: Any) -> Any:
            raise KeyError("of my own")

    with pytest.raises(KeyError, match="of my own"):
        F.exp(Own())


def test_functions_behind_the_gate_pickle_and_show_their_signatures() -> None:
    for d in DECLARED:
        function = getattr(F, d.name)
        assert pickle.loads(pickle.dumps(function)) is function
    assert str(inspect.signature(F.softmax)) == "(x, axis=-1)"


@pytest.mark.parametrize("count", [1 << 40, 1 << 62, 10**30])
def test_a_copy_larger_than_memory_is_refused_before_it_begins(count: int) -> None:
    """Otherwise lists would grow until the machine runs out of memory and the process is killed."""
    x = F.ones((2, 3), backend="python")
    start = time.process_time()
    for call in (lambda: F.tile(x, count), lambda: F.repeat(x, count), lambda: F.broadcast_to(x, (count, 2, 3)) + x):
        with pytest.raises((MemoryError, EmberletError)):
            call()
    assert time.process_time() - start < 10


def test_a_list_that_is_converted_is_not_taken_for_the_mistake() -> None:
    x = F.zeros((2, 3))
    for call, kind, words in (
        (lambda: F.take(x, [7], axis=1), IndexingError, "index 7 is outside axis 1"),
        (lambda: F.repeat(x, (1, 2), axis=1), ShapeError, "got 2 repeats for axis 1"),
        (lambda: F.layer_norm(x, [1.0, 2.0]), ShapeError, "broadcast"),
        (lambda: F.split_to_sequence(x, [2, 2], axis=1), ShapeError, "does not add up to the 3 of axis 1"),
    ):
        with pytest.raises(kind, match=words):
            call()
