"""The reference of docs/results: the formulas of the papers in NumPy, with all thresholds. It shares no code with the package."""
