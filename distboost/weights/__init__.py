"""Weightings, statistics and reductions."""
