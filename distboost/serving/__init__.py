"""The page on which a team labels a pool."""
