"""What `emberlet quantize` does: reads samples, makes variants of a model, and measures them."""
