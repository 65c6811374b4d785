"""Probabilities of classes from scores: a method, the rows that it is fitted on, and one rule where no rows were set aside."""
