"""The variants of attention, and rotary positional embedding."""
