"""Bools in WebAssembly are 0 or 1, whichever kernel computed them, vectorized or scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emberlet
import numpy as np
import pytest
from emberlet.backend import get_backend
from support.rows import every

OPERATIONS: dict[str, Callable[..., Any]] = {
    "logical_not": lambda f, a, b: f.logical_not(a),
    "bitwise_invert": lambda f, a, b: f.bitwise_invert(a),
    "logical_and": lambda f, a, b: f.logical_and(a, b),
    "logical_xor": lambda f, a, b: f.logical_xor(a, b),
    "bitwise_or": lambda f, a, b: f.bitwise_or(a, b),
    "bitwise_xor of an inverse": lambda f, a, b: f.bitwise_xor(f.bitwise_invert(a), b),
    "equal": lambda f, a, b: f.equal(a, b),
    "not_equal of an inverse": lambda f, a, b: f.not_equal(f.bitwise_invert(a), f.bitwise_invert(b)),
    "where": lambda f, a, b: f.where(f.bitwise_invert(a), b, a),
    "bitwise_not as a primitive": lambda f, a, b: ~a if f is np else a.backend.unary("bitwise_not", a),
    "any": lambda f, a, b: f.any(f.bitwise_invert(a), axis=-1),
    "all": lambda f, a, b: f.all(f.bitwise_invert(a), axis=-1),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("transposed", [False, True])
def test_operations_on_bools_give_numpys_results(name: str, transposed: bool) -> None:
    """transposed: the operands are not stored in the result's order, so they are read one by one."""
    wasm = get_backend("wasm")
    for shape in ((1,), (3,), (4,), (2, 5), (3, 8), (7, 9)):
        random = np.random.default_rng(len(shape))
        a, b = (random.random(shape) < 0.5 for _ in range(2))
        x, y = (emberlet.asarray(v, backend=wasm) for v in (a, b))
        if transposed:
            a, x = a.T.reshape(shape), x.permute_dims(tuple(range(len(shape)))[::-1]).reshape(shape)
        found = OPERATIONS[name](emberlet, x, y)
        assert found.dtype.name == "bool"
        assert found.tolist() == OPERATIONS[name](np, a, b).tolist()
        assert found.astype("int32").tolist() == OPERATIONS[name](np, a, b).astype(int).tolist()


@pytest.mark.parametrize("value", [True, False])
@every("op", ["logical_and", "logical_or", "logical_xor", "eq", "ne", "where"])
@pytest.mark.parametrize("shape", [(37,), (5, 8), ()], ids=str)
def test_constants_beside_bools(op: str, value: bool, shape: tuple[int, ...]) -> None:
    def both(k: Any, x: Any) -> Any:
        constant = k.full((), value, emberlet.bool)
        if op == "where":
            return k.where(constant, x, x * 2 + 1), k.where(x > 0, constant, x > 1)
        return k.binary(op, x > 0, constant), k.binary(op, constant, x > 0)

    numbers = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    found, wanted = (
        both(x.backend, x) for x in (emberlet.asarray(numbers, backend=name) for name in ("wasm", "numpy"))
    )
    for got, want in zip(found, wanted, strict=True):
        assert got.tolist() == want.tolist()
