"""Data sets that need CPython: files, data bases, data frames, and the workers of a DataLoader."""
