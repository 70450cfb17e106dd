"""Attention in its forms, and the rotary embedding of positions."""
