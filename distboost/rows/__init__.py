"""What an algorithm sees of the training data, and what travels between coordinator and workers."""
