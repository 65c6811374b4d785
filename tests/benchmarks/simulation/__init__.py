"""A model of a round of a training run on many workers: `python -m tests.benchmarks.simulate` runs it."""
