"""Elementwise functions: arithmetic, comparisons, exponentials, activations."""
