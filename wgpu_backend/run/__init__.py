"""Running plans: submission, and how values lie in buffers."""
