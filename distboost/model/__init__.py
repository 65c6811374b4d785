"""What a training run has learned, in memory and in files."""
