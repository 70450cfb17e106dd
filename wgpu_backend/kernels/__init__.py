"""Kernels: one file per kind, and the table that chooses among them."""
