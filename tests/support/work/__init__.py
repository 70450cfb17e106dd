"""Measures how much work generated kernels do, for tests that compare it with a recorded table.

Tiles, numbers of workgroups, simplified indices and fusions do not affect results, so only a table shows changes in
them. Below a program's numbers is a digest of its plans, the text of every kernel included. After a change that is
meant to change kernels, write the tables anew and read their diff; to see the text of kernels, show a program before
and after the change:

    python -m tests.support.work.write
    python -m tests.support.work.show PROGRAM
"""
