"""A model of a round of a training on many workers: `python -m tests.benchmarks.simulate` runs it."""
