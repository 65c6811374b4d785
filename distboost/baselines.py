"""The systems that the papers compare with, on the same engine: none is in this version yet."""
