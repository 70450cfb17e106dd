"""Making models smaller and saying what it costs: calibration, comparison with the float model, the report.

Needs NumPy.
"""
