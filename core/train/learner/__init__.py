"""What stands around a training step, on CPython: the loop, checkpoints, loggers and renderers (docs/learner.md)."""
