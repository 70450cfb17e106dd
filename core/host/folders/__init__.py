"""Changing folders in which others may write too: only what is ours, and never through a link."""
