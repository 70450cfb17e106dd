"""Emission: from a graph to Python source that reads as if written by hand."""
