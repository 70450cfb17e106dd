"""Rendering: loops as WGSL text, and the templates in shaders/."""
