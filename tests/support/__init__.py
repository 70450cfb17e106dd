"""Helpers of several tests."""
