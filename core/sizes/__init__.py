"""Symbolic sizes: integers with an expression, which flow through shapes, strides and index arithmetic.

A `Size` (size.py) is a polynomial (polynomial.py, arithmetic.py) over the *atoms* of its `Scope` (scope.py): symbols
("past", "batch"), and terms that are not polynomials (quotients, maxima). It acts as an integer. Comparisons are
answered in one of three ways (after Torch's symbolic shapes, Ansel et al. 2024):

- a comparison with the same result for all values of the symbols gets that result: `past + 1 > past`;
- otherwise it gets the result for the scope's typical values, which is noted as a *guard*: the recording is valid only
  for sizes for which every guard gives the same result;
- code that needs the number itself (`range(n)`, `int(n)`, `n * 0.5`) raises SizeNeeded, and the size is then fixed.

Code that works without an answer asks `surely_less` and the like (questions.py), which note nothing. Code that picks
the faster of two correct methods uses `typical(n)`.
"""
