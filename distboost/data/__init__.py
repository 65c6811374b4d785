"""Sources of raw rows, their scan and binning, and the binned store."""
