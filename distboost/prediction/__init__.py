"""Scores of raw rows: now, lazily, or streamed out."""
