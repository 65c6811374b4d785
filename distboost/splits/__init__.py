"""Histograms, gains, and the search for the best split."""
