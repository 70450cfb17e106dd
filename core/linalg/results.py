"""Results of several tensors: tuples whose parts are attributes too, as in the array API standard."""


class EighResult(tuple):
    """(eigenvalues, eigenvectors), also as attributes."""

    eigenvalues = property(lambda self: self[0])
    eigenvectors = property(lambda self: self[1])


class LUResult(tuple):
    """(P, L, U), also as attributes."""

    P = property(lambda self: self[0])
    L = property(lambda self: self[1])
    U = property(lambda self: self[2])


class QRResult(tuple):
    """(Q, R), also as attributes."""

    Q = property(lambda self: self[0])
    R = property(lambda self: self[1])


class SVDResult(tuple):
    """(U, S, Vh), also as attributes."""

    U = property(lambda self: self[0])
    S = property(lambda self: self[1])
    Vh = property(lambda self: self[2])


class SlogdetResult(tuple):
    """(sign, logabsdet), also as attributes."""

    sign = property(lambda self: self[0])
    logabsdet = property(lambda self: self[1])


class LstsqResult(tuple):
    """(solution, residuals, rank, singular_values), also as attributes."""

    solution = property(lambda self: self[0])
    residuals = property(lambda self: self[1])
    rank = property(lambda self: self[2])
    singular_values = property(lambda self: self[3])
