"""Binned stores: raw data binned once, on disk."""
