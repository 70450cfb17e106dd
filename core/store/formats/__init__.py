"""The formats: one file each reads, and some write."""
