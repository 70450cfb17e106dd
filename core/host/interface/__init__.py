"""What the functional layer declares of its functions, and the tables, type stubs and documents made from it."""
