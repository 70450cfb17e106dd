"""Linear algebra: the array API standard's extension, and LU, least squares, norms and cosine similarity.

Matrices are the last two axes of a tensor; the axes before them are a batch. Results have the dtype of the input, and
integers become float32. The products, `det`, the norms of vectors, `diagonal` and `trace` are computed by the tensor's
backend. Decompositions and what follows from them are computed by NumPy's LAPACK on `numpy`, on the host for a GPU and
for WebAssembly, and by plain Python on `python`. All have gradients, but where a result is not unique.
"""

# file of this package -> its functions; "" for those of emberlet.functional
_FILES = {
    "": "cross det matmul matrix_transpose outer tensordot vecdot vector_norm",
    "decompositions": "cholesky eigh eigvalsh lu qr svd svdvals",
    "norms": "cosine_similarity diagonal matrix_norm norm trace",
    "solving": "inv lstsq matrix_power matrix_rank pinv slogdet solve",
}


def __getattr__(name):
    # Not by import statements: on MicroPython these would ask this function for the file.
    lookup = __import__("emberlet.lookup", None, None, ("__name__",))
    for file in _FILES:
        if name in _FILES[file].split():
            if file:
                found = getattr(__import__("emberlet.linalg." + file, None, None, ("__name__",)), name)
                found = lookup.gate(found) if lookup.gate else found
            else:
                found = lookup.function(name)
            globals()[name] = found
            return found
    return lookup.absent("emberlet.linalg", name)


def __dir__():
    return sorted([name for names in _FILES.values() for name in names.split()])
