"""Resize and Upsample."""

from __future__ import annotations

from typing import Any

from emberlet import functional as F

from .call import Call, handles


@handles("Resize")
def resize(c: Call) -> Any:
    if len(c.arrays) == 2:  # opset 10
        return F.resize(
            c.tensor(0), c.values(1), mode=c.get("mode", "nearest"), coordinates="asymmetric", nearest_mode="floor"
        )
    return F.resize(
        c.tensor(0),
        c.values(2),
        c.values(3),
        axes=c.get("axes"),
        mode=c.get("mode", "nearest"),
        coordinates=c.get("coordinate_transformation_mode", "half_pixel"),
        nearest_mode=c.get("nearest_mode", "round_prefer_floor"),
        cubic_coeff_a=c.get("cubic_coeff_a", -0.75),
        exclude_outside=bool(c.get("exclude_outside", 0)),
        antialias=bool(c.get("antialias", 0)),
        roi=c.values(1),
        extrapolation_value=c.get("extrapolation_value", 0.0),
        keep_aspect_ratio_policy=c.get("keep_aspect_ratio_policy", "stretch"),
    )


@handles("Upsample")
def upsample(c: Call) -> Any:
    scales = c.values(1) or c.get("scales")
    return F.resize(c.tensor(0), scales, mode=c.get("mode", "nearest"), coordinates="asymmetric", nearest_mode="floor")
