"""Blocks that stay on disk and are read for each question."""
