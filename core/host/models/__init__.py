"""Calls of models on CPython: what callers pass, bound to what `forward` takes."""
