"""Metrics of a model on any number of rows, from exact sums over them."""
