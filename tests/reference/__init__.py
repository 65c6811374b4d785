"""The reference of docs/results: the papers' formulas in NumPy, with every threshold there is. It shares no code with distboost."""
