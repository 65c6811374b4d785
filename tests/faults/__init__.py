"""Clusters that lose workers: the model is that of the undisturbed training, byte for byte, or there is one error in time."""
