"""What a training has learned, in memory and in files."""
