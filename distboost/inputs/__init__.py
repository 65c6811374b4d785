"""What users pass as rows, labels and weights: one adapter for each kind of container."""
