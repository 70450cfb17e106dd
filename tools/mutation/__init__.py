"""Mutation testing: seed one-line bugs, run the tests that concern them, name those that no test catches."""
