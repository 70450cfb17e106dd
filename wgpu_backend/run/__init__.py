"""Running plans: submission, and the layout of values in buffers."""
