"""Rearranging elements without computing: shapes, axes, joining, splitting."""
