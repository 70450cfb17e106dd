"""The steps of a plan as one call of C: products, NumPy's own loops over elements, copies.

NumPy's functions compute without Python's lock, but each call of them from Python takes it before and after.
With several threads, one waits for the other there, and small models spend more time between their steps than in them.
So `machine.py` has a few instructions that call one C function after the other from a table, `records.py` writes a
plan's steps into such a table, and `ufuncs.py` finds the loops of NumPy's ufuncs. Results are those of the ufuncs; only
exp, tanh and the like may differ in the last bit where an array has gaps. Steps that are something else, such as a sum
along an axis, are called from Python between two tables.
"""
