"""Blocks that do not stay in memory."""
