"""Statistics: quantiles, counts, correlation, and reductions that leave out NaN."""
