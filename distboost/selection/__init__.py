"""Cross-validation and searches for parameters: the rows are binned once."""
