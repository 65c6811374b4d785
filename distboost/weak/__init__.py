"""Weak learners, chosen from sums: no rows here."""
