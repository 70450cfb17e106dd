"""Types of emberlet.linalg."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..dtypes import DType
from ..functional import cross as cross
from ..functional import det as det
from ..functional import matmul as matmul
from ..functional import matrix_transpose as matrix_transpose
from ..functional import outer as outer
from ..functional import tensordot as tensordot
from ..functional import vecdot as vecdot
from ..functional import vector_norm as vector_norm
from ..tensor import Tensor

class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor

class LUResult(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor

class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor

class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class LstsqResult(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

def cholesky(x: Tensor, *, upper: bool = False) -> Tensor: ...
def eigh(x: Tensor) -> EighResult: ...
def eigvalsh(x: Tensor) -> Tensor: ...
def lu(x: Tensor) -> LUResult: ...
def qr(x: Tensor, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
def svd(x: Tensor, *, full_matrices: bool = True) -> SVDResult: ...
def svdvals(x: Tensor) -> Tensor: ...
def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = -1, *, epsilon: float = 1e-8) -> Tensor: ...
def diagonal(x: Tensor, *, offset: int = 0) -> Tensor: ...
def matrix_norm(x: Tensor, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] = "fro") -> Tensor: ...
def norm(
    x: Tensor,
    ord: float | Literal["fro", "nuc"] | None = None,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
) -> Tensor: ...
def trace(x: Tensor, *, offset: int = 0, dtype: DType | str | None = None) -> Tensor: ...
def inv(x: Tensor) -> Tensor: ...
def lstsq(x1: Tensor, x2: Tensor, *, rtol: float | None = None) -> LstsqResult: ...
def matrix_power(x: Tensor, n: int) -> Tensor: ...
def matrix_rank(x: Tensor, *, rtol: float | Tensor | None = None) -> Tensor: ...
def pinv(x: Tensor, *, rtol: float | Tensor | None = None) -> Tensor: ...
def slogdet(x: Tensor) -> SlogdetResult: ...
def solve(x1: Tensor, x2: Tensor) -> Tensor: ...
