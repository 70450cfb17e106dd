"""Plans: kernels, buffers and dispatches of one computation."""
