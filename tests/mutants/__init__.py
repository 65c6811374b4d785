"""Faults that the tests must catch: each is made alone, in a copy, and the tests that should notice it are run."""
