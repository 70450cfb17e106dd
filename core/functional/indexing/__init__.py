"""Picking and placing elements by key, index, mask or value."""
