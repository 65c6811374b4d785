"""Localized similarities as weak learners."""
