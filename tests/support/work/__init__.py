"""Measures how much work generated kernels do, for tests that compare it with a recorded table.

Tiles, numbers of workgroups, simplified indices and fusions do not affect results, so only a table shows changes in
them. After a change that is meant to change kernels, write the tables anew and read their diff:

    python -m tests.support.work.write
"""
