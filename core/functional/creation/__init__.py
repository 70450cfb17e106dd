"""Creating tensors, reading their values, and converting between dtypes and backends."""
