"""The work of the plans of the test models: some ten counters a model, in a table for each backend.

A plan that fuses less, copies more or needs more memory computes the same, so only these tables show it. After a change
that is meant to change plans, write them anew and read the difference:

    python -m tests.plans.write
"""
