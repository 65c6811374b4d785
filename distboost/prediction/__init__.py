"""Predictions for raw rows: lazily, or streamed to a store."""
