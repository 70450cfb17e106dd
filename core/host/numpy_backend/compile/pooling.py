"""Which windows of a pooling see elements."""

from __future__ import annotations

from .tracing import Call


def sees_elements(call: Call) -> bool:
    """Whether no pooling window lies entirely in the border, whose elements are less than 0."""
    _, x, kernel, stride, padding, dilation = call.args
    return all(
        any(0 <= start + k * d < n for k in range(taps))
        for n, out, taps, s, (low, _), d in zip(
            x.shape[2:], call.results[0].shape[2:], kernel, stride, padding, dilation, strict=True
        )
        for start in range(-low, out * s - low, s)
    )
