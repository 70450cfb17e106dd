"""The formats: one file each, which reads it; some also write it."""
