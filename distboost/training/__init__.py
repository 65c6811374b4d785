"""The loop over rounds and what surrounds it."""
