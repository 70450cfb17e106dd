"""Training steps (core/training_step) as plans of NumPy calls: the memory of parameters, and backward passes."""
