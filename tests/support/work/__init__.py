"""How much work generated kernels do: what tests compare with a recorded table.

Which tile, how many workgroups, how an index is simplified, what is fused: none of it changes a result, so only a table
shows that it has changed. After a change that is meant to change kernels, write the tables anew and read their diff:

    python -m tests.support.work.write
"""
