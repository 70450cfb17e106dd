"""Lowering: fused nodes as loops over index expressions."""
