"""The declarations of the functional layer, and the tables, type stubs and documents generated from them."""
